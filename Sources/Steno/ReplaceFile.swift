package import Foundation
package import StenoAudio

/// Writes a file that appears whole, in place of one that is there, or not at all, also when the machine loses power.
/// Blocks.
///
/// - Throws: `fileNotFound` for a folder that is not there, `filePermissionDenied`, `diskFull`, `fileWriteFailed`. What was
///   there stays.
package func replaceFile(at path: String, with data: Data) throws(StenoError) {
    let url = URL(fileURLWithPath: path)
    let partial = url.deletingLastPathComponent().appendingPathComponent(".\(url.lastPathComponent).partial").path
    let descriptor = unsafe open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else { throw .system(errno, "writing", path, otherwise: .fileWriteFailed) }
    let isWritten = writeAll(data, to: descriptor) && fsync(descriptor) == 0
    let number = errno
    close(descriptor)
    if isWritten, unsafe rename(partial, path) == 0 {
        // The name is on the disk when its folder is.
        let folder = unsafe open(url.deletingLastPathComponent().path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        fsync(folder)
        close(folder)
        return
    }
    let reason = isWritten ? errno : number
    unsafe _ = unlink(partial)
    throw .system(reason, "writing", path, otherwise: .fileWriteFailed)
}

/// False when the system takes no more; errno says why.
func writeAll(_ data: Data, to descriptor: Int32) -> Bool {
    var rest = data[...]
    while !rest.isEmpty {
        let count = unsafe rest.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { return false }
        rest = rest.dropFirst(count)
    }
    return true
}
