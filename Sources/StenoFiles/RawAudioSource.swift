public import StenoAudio

/// Reads samples without a header, of which the caller knows the format, from a file or a pipe.
///
/// The samples come as they lie there, interleaved, in the byte order of the machine. Nothing in the content is taken for a
/// header: a WAV file read so begins with a click.
///
/// A file is read to the size that it had when it was opened. A pipe is read forward in 64 KiB; opening one does not wait.
///
/// Not `Sendable`: one thread at a time.
@safe public final class RawAudioSource: CaptureStream {
    /// The path, or what the descriptor was called.
    public let name: String
    public let format: AudioFormat
    /// Whole frames in the file; nil for a pipe.
    public let frameCount: Int64?
    /// Frames that were read so far.
    public private(set) var framesRead: Int64 = 0
    /// What is odd about the end: each a `fileWarning`.
    public private(set) var warnings: [TimelineEvent] = []
    /// The ``warnings``.
    public var events: [TimelineEvent] { warnings }
    /// ``frameCount`` as a time.
    public var duration: MediaTime? { frameCount.map { MediaTime(frames: $0, sampleRate: format.sampleRate) } }

    private let input: ByteInput
    private let isBigEndian: Bool
    private var hasEnded = false

    /// Opens a file. The path may hold any character; none has a meaning.
    ///
    /// - Throws: `invalidArgument` for a planar format; `fileNotFound`, `filePermissionDenied`, `fileIsDirectory`,
    ///   `fileEmpty` or `fileReadFailed`.
    public convenience init(path: String, format: AudioFormat, isBigEndian: Bool = false) throws(StenoError) {
        try self.init(input: ByteInput(path: path), format: format, isBigEndian: isBigEndian)
    }

    /// Reads an open descriptor from where it stands, seekable or a pipe: standard input is descriptor 0.
    ///
    /// - Parameters:
    ///   - name: What to call it in messages.
    ///   - closesDescriptor: Whether the descriptor is closed in the end, also when this throws.
    /// - Throws: As ``init(path:format:isBigEndian:)``.
    public convenience init(
        descriptor: Int32, name: String = "standard input", closesDescriptor: Bool = false, format: AudioFormat,
        isBigEndian: Bool = false
    ) throws(StenoError) {
        let input = try ByteInput(descriptor: descriptor, name: name, closesDescriptor: closesDescriptor)
        try self.init(input: input, format: format, isBigEndian: isBigEndian)
    }

    private init(input: ByteInput, format: AudioFormat, isBigEndian: Bool) throws(StenoError) {
        guard format.isInterleaved else {
            throw StenoError(.invalidArgument, "\(quoted(input.name)): raw samples are interleaved, not \(format)")
        }
        self.input = input
        self.format = format
        self.isBigEndian = isBigEndian
        name = input.name
        let size = input.available(from: 0)
        frameCount = size.map { $0 / Int64(format.bytesPerFrame) }
        guard size != 0 else { throw emptyError }
        input.endOpening()
    }

    /// Replaces the content of `buffer` with the next frames, at most `buffer.frameCapacity` of them.
    ///
    /// Blocks for the disk. On a pipe it returns what has come, and `nothing` when that is less than a frame for 100 ms.
    /// Allocates nothing once `buffer` is in ``format``.
    ///
    /// - Throws: `fileReadFailed` when not one frame could be read, `fileEmpty` when a pipe ends with nothing in it. After
    ///   real audio a failure is a warning and the end.
    /// - Precondition: `buffer` has room for a frame.
    public func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead {
        precondition(buffer.frameCapacity > 0, "a buffer without room takes no frames")
        if buffer.format != format { buffer = AudioBuffer(format: format, frameCapacity: buffer.frameCapacity) }
        buffer.removeAll()
        if hasEnded { return .end }
        let frameBytes = format.bytesPerFrame
        var wanted = buffer.frameCapacity
        if !input.isSeekable {
            let ready = input.wait(for: frameBytes, milliseconds: 100) / frameBytes
            if ready == 0, !input.hasEnded { return .nothing }
            wanted = min(wanted, max(1, ready))
        }
        var rest = 0
        unsafe buffer.withUnsafeMutableBytes { bytes in
            let count = unsafe input.read(into: .init(rebasing: bytes[..<(wanted * frameBytes)]))
            rest = count % frameBytes
            if isBigEndian { unsafe swapBytes(.init(rebasing: bytes[..<(count - rest)])) }
            return count / frameBytes
        }
        framesRead += Int64(buffer.frameCount)
        if buffer.frameCount == wanted { return .frames }
        hasEnded = true
        if let number = input.failure {
            let error = StenoError.system(number, "reading", name, otherwise: .fileReadFailed)
            guard framesRead > 0 else { throw error }
            warn("the audio ends at a fault: \(error)")
        } else if framesRead == 0, rest == 0, !input.isSeekable {
            throw emptyError
        } else if rest > 0 {
            warn("\(rest) bytes at the end are no whole frame of \(frameBytes) and are left out")
        }
        return buffer.frameCount > 0 ? .frames : .end
    }

    private var emptyError: StenoError {
        StenoError(.fileEmpty, "\(quoted(name)) is empty, 0 bytes; expected samples in \(format)")
    }

    private func swapBytes(_ bytes: UnsafeMutableRawBufferPointer) {
        let size = format.sampleFormat.byteCount
        for start in stride(from: 0, to: bytes.count, by: size) {
            for at in 0..<size / 2 { unsafe bytes.swapAt(start + at, start + size - 1 - at) }
        }
    }

    private func warn(_ detail: String) {
        let now = MediaTime(frames: framesRead, sampleRate: format.sampleRate)
        warnings.append(TimelineEvent(.fileWarning, range: MediaTimeRange(start: now, end: now), detail: detail))
    }
}
