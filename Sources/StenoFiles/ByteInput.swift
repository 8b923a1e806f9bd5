internal import Glibc
package import StenoAudio

/// The bytes that a decoder sees: those of a file or a pipe, with another header in front where the real one is wrong.
///
/// A pipe is read forward only. While the file is being opened, all that came is held (up to ``openingLimit``), so that
/// the header can be read twice; from then on only what was not yet consumed. A place further ahead reads as the end,
/// which stops the search for chunks behind the audio and keeps memory bounded. One thread at a time.
package final class ByteInput {
    package let name: String
    /// Whether the input has a size and can be read anywhere.
    package let isSeekable: Bool
    /// The errno of the last failure to read.
    package private(set) var failure: Int32?

    private let descriptor: Int32
    private let closesDescriptor: Bool
    /// Where the input begins: a descriptor may have been read from before.
    private let base: Int64
    /// Bytes of a seekable input.
    private let size: Int64

    // What libsndfile sees: `head`, then the input from `bodyStart` for `bodyLength` bytes.
    private var head: [UInt8] = []
    private var bodyStart: Int64 = 0
    /// Nil: through to the end of a pipe.
    private var bodyLength: Int64?
    package private(set) var position: Int64 = 0

    // What was read from a pipe and is held: `windowCount` bytes from `windowStart`.
    private var window: [UInt8] = []
    private var windowStart: Int64 = 0
    private var windowCount = 0
    private var isOpening = true
    private var pipeEnded = false

    /// The most of a pipe that is held to find its audio.
    static let openingLimit = 16 << 20
    /// Bytes that one wait takes from a pipe.
    static let windowSize = 1 << 16

    package convenience init(path: String) throws(StenoError) {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system(errno, "opening", path, otherwise: .fileReadFailed) }
        try self.init(descriptor: descriptor, name: path, closesDescriptor: true)
    }

    package init(descriptor: Int32, name: String, closesDescriptor: Bool) throws(StenoError) {
        self.name = name
        self.descriptor = descriptor
        self.closesDescriptor = closesDescriptor
        var status = stat()
        let result = unsafe fstat(descriptor, &status)
        let kind = status.st_mode & S_IFMT
        isSeekable = kind == S_IFREG
        base = isSeekable ? max(0, Int64(lseek(descriptor, 0, SEEK_CUR))) : 0
        size = isSeekable ? max(0, Int64(status.st_size) - base) : 0
        bodyLength = isSeekable ? size : nil
        guard result == 0 else { throw .system(errno, "opening", name, otherwise: .fileReadFailed) }
        guard kind != S_IFDIR else {
            throw StenoError(.fileIsDirectory, "\(quoted(name)) is a directory; expected an audio file")
        }
    }

    deinit { if closesDescriptor { close(descriptor) } }

    /// Bytes from `offset` to the end of the input; nil for a pipe.
    package func available(from offset: Int64) -> Int64? { isSeekable ? max(0, size - offset) : nil }

    /// The input's own bytes, fewer at its end. Blocks; for use while opening.
    package func bytes(at offset: Int64, count: Int) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = unsafe read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        }
    }

    /// From now on libsndfile sees `head` and after it `length` bytes of the input from `start`.
    package func present(head: [UInt8], bodyStart start: Int64, bodyLength length: Int64?) {
        (self.head, bodyStart, bodyLength, position) = (head, start, length, 0)
    }

    /// Ends the opening: what was consumed of a pipe is no longer held.
    package func endOpening() { isOpening = false }

    /// Bytes that libsndfile sees in all; the largest number where nobody knows.
    package var totalLength: Int64 { bodyLength.map { Int64(head.count) + $0 } ?? .max }

    /// Moves to an absolute position, or says -1. The end of a pipe of unknown length is nowhere.
    package func seek(_ offset: Int64, from whence: Int32) -> Int64 {
        let origin: Int64
        switch whence {
        case SEEK_SET: origin = 0
        case SEEK_CUR: origin = position
        default:
            guard bodyLength != nil else { return -1 }
            origin = totalLength
        }
        let (target, overflow) = origin.addingReportingOverflow(offset)
        guard !overflow, target >= 0 else { return -1 }
        position = target
        return target
    }

    /// Fills `target` from the position on, blocking; less at the end or after a failure.
    package func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        var done = 0
        if position < head.count {
            done = min(target.count, head.count - Int(position))
            unsafe head.withUnsafeBytes {
                unsafe target.copyMemory(from: .init(rebasing: $0[Int(position)..<Int(position) + done]))
            }
        }
        if done < target.count {
            let bodyPosition = position + Int64(done) - Int64(head.count)
            let wanted = Int(min(Int64(target.count - done), max(0, (bodyLength ?? .max) - bodyPosition)))
            done += unsafe read(into: .init(rebasing: target[done..<done + wanted]), at: bodyStart + bodyPosition)
        }
        position += Int64(done)
        return done
    }

    private func read(into target: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
        isSeekable ? unsafe readFile(into: target, at: offset) : unsafe readPipe(into: target, at: offset)
    }

    private func readFile(into target: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
        var done = 0
        while done < target.count, let address = target.baseAddress, offset < size {
            let count = unsafe pread(descriptor, address + done, target.count - done, Int(base + offset) + done)
            if count > 0 {
                done += count
            } else if count == 0 {
                break
            } else if errno != EINTR {
                failure = errno
                break
            }
        }
        return done
    }
}

// Pipes.
extension ByteInput {
    /// Waits until `needed` bytes lie ready behind the position or the pipe ends, but no longer than `milliseconds`;
    /// then takes in what is there without waiting. Returns the bytes that can be read without blocking.
    package func wait(for needed: Int, milliseconds: Int) -> Int {
        let offset = bodyStart + position - Int64(head.count)
        guard offset >= windowStart else { return 0 }
        discard(before: offset)
        let deadline = monotonicMilliseconds() + milliseconds
        while windowCount < needed, !hasEnded {
            let left = deadline - monotonicMilliseconds()
            var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard left >= 0, unsafe poll(&request, 1, Int32(left)) > 0 else { break }
            takeIn()
        }
        return windowCount
    }

    /// Whether nothing more will come into the window.
    package var hasEnded: Bool { pipeEnded || failure != nil }

    private func readPipe(into target: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
        guard offset >= windowStart else { return 0 }
        let (end, overflow) = offset.addingReportingOverflow(Int64(target.count))
        if !isOpening { discard(before: offset) }
        guard !overflow, end - windowStart <= Int64(Self.openingLimit) else { return 0 }
        reserve(Int(end - windowStart))
        while windowStart + Int64(windowCount) < end, !hasEnded { takeIn() }
        let first = Int(min(offset - windowStart, Int64(windowCount)))
        let count = min(target.count, windowCount - first)
        unsafe window.withUnsafeBytes { unsafe target.copyMemory(from: .init(rebasing: $0[first..<first + count])) }
        return count
    }

    /// Room in the window for `count` bytes. Allocates only where a reader asks for more than ever before.
    private func reserve(_ count: Int) {
        let capacity = max(count, Self.windowSize)
        if window.count < capacity {
            window += [UInt8](repeating: 0, count: max(capacity, 2 * window.count) - window.count)
        }
    }

    private func discard(before offset: Int64) {
        reserve(0)
        let consumed = Int(min(offset - windowStart, Int64(windowCount)))
        guard consumed > 0 else { return }
        unsafe window.withUnsafeMutableBytes {
            unsafe $0.copyMemory(from: .init(rebasing: $0[consumed..<windowCount]))
        }
        windowStart += Int64(consumed)
        windowCount -= consumed
    }

    /// One read from the pipe into the free part of the window; blocks until something comes.
    private func takeIn() {
        let free = windowCount..<window.count
        let count = unsafe window.withUnsafeMutableBytes { bytes in
            unsafe Glibc.read(descriptor, bytes.baseAddress! + free.lowerBound, free.count)
        }
        if count > 0 {
            windowCount += count
        } else if count == 0 {
            pipeEnded = true
        } else if errno == EAGAIN {
            var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            unsafe poll(&request, 1, -1)
        } else if errno != EINTR {
            failure = errno
        }
    }
}

private func monotonicMilliseconds() -> Int {
    var now = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}
