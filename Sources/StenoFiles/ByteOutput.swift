internal import Glibc
package import StenoAudio

/// A file that is written: what reached it is in the system's hands, and survives the end of this process.
package final class ByteOutput {
    package let name: String
    /// The errno of the first failure.
    package private(set) var failure: Int32?
    /// Where the encoder stands.
    package var position: Int64 = 0
    private var descriptor: Int32

    /// Makes the file, or empties it.
    package init(path: String) throws(StenoError) {
        name = path
        descriptor = unsafe Glibc.open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw .system(errno, "creating", path, otherwise: .fileWriteFailed) }
    }

    deinit { close() }

    /// Writes all of `bytes` at `offset`; returns how many went in, fewer after a failure.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Int {
        var done = 0
        while done < bytes.count, let address = bytes.baseAddress {
            let count = unsafe pwrite(descriptor, address + done, bytes.count - done, Int(offset) + done)
            if count >= 0 {
                done += count
            } else if errno != EINTR {
                failure = failure ?? errno
                break
            }
        }
        return done
    }

    func write(_ bytes: [UInt8], at offset: Int64) {
        unsafe bytes.withUnsafeBytes { _ = unsafe write($0, at: offset) }
    }

    /// Writes at the position all of `bytes` or, after any failure, nothing: half a packet would damage the file.
    package func writePacket(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard failure == nil else { return 0 }
        guard unsafe write(bytes, at: position) == bytes.count else {
            truncate(to: position)
            return 0
        }
        position += Int64(bytes.count)
        return bytes.count
    }

    /// Cuts off what lies behind `size`.
    func truncate(to size: Int64) { if ftruncate(descriptor, Int(size)) != 0 { failure = failure ?? errno } }

    package func read(into target: UnsafeMutableRawBufferPointer) -> Int {
        let count = unsafe max(0, pread(descriptor, target.baseAddress, target.count, Int(position)))
        position += Int64(count)
        return count
    }

    package var size: Int64 { max(0, Int64(lseek(descriptor, 0, SEEK_END))) }

    package func seek(_ offset: Int64, from whence: Int32) -> Int64 {
        let origin = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? position : size
        position = max(0, origin + offset)
        return position
    }

    /// Waits until the disk holds what was written.
    package func synchronize() { if fsync(descriptor) != 0 { failure = failure ?? errno } }

    package func close() {
        guard descriptor >= 0 else { return }
        if Glibc.close(descriptor) != 0 { failure = failure ?? errno }
        descriptor = -1
    }
}
