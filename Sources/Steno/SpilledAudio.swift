import Foundation
import StenoAudio

/// Where frames that no longer fit into memory lie until the analyzer gets to them: in the recorded file itself where it
/// holds plain samples, else in a file beside it that has no name and vanishes with the process.
///
/// One thread keeps, one reads.
final class SpilledAudio: Sendable {
    private let format: AudioFormat
    /// The format in the file: `format`, or `int24` for `int24in32`.
    private let stored: AudioFormat
    private let descriptor: Int32
    /// Where frame 0 lies in the file.
    private let offset: Int64
    private let isSpool: Bool

    /// Reads back a recording that goes on being written.
    init(path: String, offset: Int64, stored: AudioFormat, format: AudioFormat) throws(StenoError) {
        self.format = format
        self.stored = stored
        self.offset = offset
        isSpool = false
        descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failed("reading back \(path)") }
    }

    /// A file without a name in `folder`.
    init(spoolIn folder: String, format: AudioFormat) throws(StenoError) {
        self.format = format
        stored = format
        offset = 0
        isSpool = true
        // The six letters are the part of the name that mkstemp(3) fills in.
        var name = Array("\(folder)/.steno-XXXXXX".utf8CString)
        descriptor = unsafe mkstemp(&name)
        guard descriptor >= 0 else { throw Self.failed("making a file in \(folder)") }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        unsafe unlink(name)
    }

    deinit { close(descriptor) }

    /// Keeps frames that a recording does not hold as they are.
    func keep(_ buffer: AudioBuffer, at frame: Int64) throws(StenoError) {
        guard isSpool else { return }
        let count = buffer.frameCount * format.bytesPerFrame
        try unsafe buffer.withUnsafeBytes { (bytes) throws(StenoError) in
            var done = 0
            while done < count {
                let start = unsafe bytes.baseAddress.unsafelyUnwrapped + done
                let written = unsafe pwrite(
                    descriptor, start, count - done, Int(frame) * format.bytesPerFrame + done)
                if written < 0 && errno == EINTR { continue }
                guard written > 0 else { throw Self.failed("keeping audio for the analyzer") }
                done += written
            }
        }
    }

    /// Frees the room of frames that were read.
    func forget() {
        // Failing to free it costs only room.
        if isSpool { _ = ftruncate(descriptor, 0) }
    }

    /// Replaces the content of `buffer` with the frames of `range`, which the file must hold.
    func read(_ range: Range<Int64>, into buffer: inout AudioBuffer) throws(StenoError) {
        let count = range.count
        buffer.reserveCapacity(count)
        try unsafe buffer.withUnsafeMutableBytes { (bytes) throws(StenoError) in
            let length = count * stored.bytesPerFrame
            var done = 0
            while done < length {
                let start = unsafe bytes.baseAddress.unsafelyUnwrapped + done
                let position = Int(offset) + Int(range.lowerBound) * stored.bytesPerFrame + done
                let read = unsafe pread(descriptor, start, length - done, position)
                if read < 0 && errno == EINTR { continue }
                guard read > 0 else { throw Self.failed("reading back the recording at byte \(position)") }
                done += read
            }
            if stored != format { unsafe Self.widen(bytes, samples: count * format.channelCount) }
            return count
        }
    }

    /// Three bytes to four, from the end so that nothing is overwritten before it is read.
    private static func widen(_ bytes: UnsafeMutableRawBufferPointer, samples: Int) {
        for index in (0..<samples).reversed() {
            let (low, middle, high) = unsafe (bytes[3 * index], bytes[3 * index + 1], bytes[3 * index + 2])
            unsafe bytes[4 * index] = low
            unsafe bytes[4 * index + 1] = middle
            unsafe bytes[4 * index + 2] = high
            unsafe bytes[4 * index + 3] = high & 0x80 == 0 ? 0 : 0xFF
        }
    }

    private static func failed(_ action: String) -> StenoError {
        let code = errno
        return StenoError(.backlogFailed, "\(action): \(unsafe String(cString: strerror(code)))", nativeCode: Int(code))
    }
}

extension StenoError.Code {
    /// Audio that waits for the analyzer could not be kept or read back. The recording is not touched by it.
    public static let backlogFailed = StenoError.Code(rawValue: "live.backlogFailed")
}
