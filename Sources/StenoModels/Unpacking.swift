internal import CArchive
import Foundation
internal import StenoAudio

/// Unpacks an archive into a new folder: plain files and folders, and nothing outside of it. Blocks.
///
/// - Parameter limit: bytes that may come out.
/// - Throws: `modelArchiveInvalid` for a damaged archive, one that holds links or names that lead out of the folder, and
///   one that swells beyond `limit`.
func unpack(
    _ archive: String, into folder: String, limit: Int64, isCancelled: () -> Bool
) throws(StenoError) {
    func invalid(_ reason: String) -> StenoError {
        StenoError(.modelArchiveInvalid, "The archive \(archive.debugDescription) \(reason).")
    }
    try makeFolder(folder)
    let reader = unsafe archive_read_new()
    defer { unsafe _ = archive_read_free(reader) }
    func reason() -> String {
        unsafe archive_error_string(reader).map { unsafe String(cString: $0) } ?? "no reason given"
    }
    unsafe archive_read_support_format_zip(reader)
    guard unsafe archive_read_open_filename(reader, archive, 1 << 16) == ARCHIVE_OK else {
        throw invalid("cannot be opened: \(reason())")
    }
    var (total, count): (Int64, Int) = (0, 0)
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
        var entry: OpaquePointer?
        let status = unsafe archive_read_next_header(reader, &entry)
        if status == ARCHIVE_EOF { break }
        guard status == ARCHIVE_OK, let entry = unsafe entry else { throw invalid("is damaged: \(reason())") }
        count += 1
        guard count <= 10_000 else { throw invalid("holds more than 10,000 files") }
        guard let bytes = unsafe archive_entry_pathname(entry) else { throw invalid("holds a file without a name") }
        let name = unsafe String(cString: bytes)
        let parts = name.split(separator: "/", omittingEmptySubsequences: true)
        guard !parts.isEmpty, !name.hasPrefix("/"), !name.contains("\\"), !name.contains(":"),
            parts.allSatisfy({ $0 != ".." && $0 != "." })
        else { throw invalid("holds a name that leads elsewhere: \(name.debugDescription)") }
        let type = unsafe archive_entry_filetype(entry)
        let isFolder = type == S_IFDIR
        guard isFolder || type == S_IFREG else {
            throw invalid("holds \(name.debugDescription), which is neither file nor folder")
        }
        var path = folder
        for part in isFolder ? parts[...] : parts.dropLast() {
            path += "/" + part
            try makeFolder(path)
        }
        if isFolder { continue }
        path = folder + "/" + parts.joined(separator: "/")
        // Nobody else writes here, and no link was made: a name that is there was in the archive before.
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
        guard file >= 0 else {
            if errno == EEXIST { throw invalid("holds \(name.debugDescription) twice") }
            throw .store(errno, "writing", path)
        }
        defer { close(file) }
        while true {
            if isCancelled() { throw StenoError(.cancelled, "The work was cancelled.") }
            let length = unsafe archive_read_data(reader, &buffer, buffer.count)
            guard length >= 0 else { throw invalid("is damaged: \(reason())") }
            if length == 0 { break }
            total += Int64(length)
            guard total <= limit else { throw invalid("swells to more than \(limit) bytes") }
            var done = 0
            while done < length {
                let written = unsafe buffer.withUnsafeBytes {
                    unsafe Glibc.write(file, $0.baseAddress! + done, length - done)
                }
                if written < 0, errno == EINTR { continue }
                guard written > 0 else { throw .store(errno, "writing", path) }
                done += written
            }
        }
        guard fsync(file) == 0 else { throw .store(errno, "writing", path) }
    }
    guard count > 0 else { throw invalid("is empty") }
}

/// Makes a folder where there is none.
func makeFolder(_ path: String) throws(StenoError) {
    guard unsafe mkdir(path, 0o777) == 0 || errno == EEXIST else { throw .store(errno, "making", path) }
}
