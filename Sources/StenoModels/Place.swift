import Foundation
internal import StenoAudio

/// What is written beside an installed model.
struct Receipt: Codable {
    var address: String
    /// Bytes of the download.
    var size: Int64
    /// Of the download, by kind; SHA-256 always.
    var digests: [String: String]
    /// Of a model that is a folder: SHA-256 by path.
    var files: [String: String]?
}

/// Where a model and what belongs to it lies. In the store's folder is nothing but whole models; the rest is in `.store`.
struct Place: Sendable {
    let entry: ModelEntry
    let options: ModelStore.Options

    init(_ entry: ModelEntry, _ options: ModelStore.Options) {
        self.entry = entry
        self.options = options
    }

    var path: String { options.folder + "/" + entry.fileName }
    var isFolder: Bool { entry.kind == .vosk }
    var address: String {
        guard let mirror = options.mirror else { return entry.address }
        let last = entry.address.split(separator: "/").last.map(String.init) ?? ""
        return (mirror.hasSuffix("/") ? String(mirror.dropLast()) : mirror) + "/" + last
    }

    private var work: String { options.folder + "/.store" }
    private var stem: String { work + "/" + entry.name }
    var partial: String { stem + ".partial" }
    private var unpacking: String { stem + ".unpacking" }
    private var removed: String { stem + ".removed" }
    private var receiptPath: String { stem + ".json" }
    private var lockPath: String { stem + ".lock" }

    var receipt: Receipt? {
        FileManager.default.contents(atPath: receiptPath).flatMap { try? JSONDecoder().decode(Receipt.self, from: $0) }
    }

    /// Whether something is there, whatever it is.
    var exists: Bool { size(of: path) != nil }

    var partialSize: Int64 { size(of: partial) ?? 0 }

    /// A file of the right size, or a folder: those only ever appear whole. A file that came otherwise may be anything of
    /// that size.
    var isInstalled: Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return false }
        if isFolder { return status.st_mode & S_IFMT == S_IFDIR }
        guard status.st_mode & S_IFMT == S_IFREG else { return false }
        let expected = entry.size ?? receipt?.size
        return expected.map { $0 == Int64(status.st_size) } ?? true
    }

    private func size(of path: String) -> Int64? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? Int64(status.st_size) : nil
    }
}

/// The file holds all of the value, or what it held before.
func save(_ value: some Encodable, to path: String) throws(StenoError) {
    do {
        try JSONEncoder().encode(value).write(to: URL(fileURLWithPath: path + ".new"))
    } catch {
        throw StenoError(.modelStoreFailed, "writing \(path.debugDescription): \(error)", underlying: error)
    }
    guard unsafe rename(path + ".new", path) == 0 else { throw .store(errno, "writing", path) }
}

// One at a time, over all processes.
extension Place {
    /// Held until it is released, or the process ends.
    struct FileLock {
        fileprivate let descriptor: Int32
        func unlock() { close(descriptor) }
    }

    var isLocked: Bool {
        let descriptor = unsafe open(lockPath, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0
    }

    /// - Throws: `modelStoreBusy` when another has it.
    func lock() throws(StenoError) -> FileLock {
        do {
            try FileManager.default.createDirectory(atPath: work, withIntermediateDirectories: true)
        } catch {
            if let reason = (error as NSError).userInfo[NSUnderlyingErrorKey] as? POSIXError {
                throw .store(reason.code.rawValue, "making", work)
            }
            throw StenoError(.modelStoreFailed, "making \(work.debugDescription): \(error)", underlying: error)
        }
        let descriptor = unsafe open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw .store(errno, "opening", lockPath) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            close(descriptor)
            if number == EWOULDBLOCK {
                throw StenoError(.modelStoreBusy, "The model \(entry.name) is being installed.")
            }
            throw .store(number, "locking", lockPath)
        }
        return FileLock(descriptor: descriptor)
    }

    /// Removes the model and all that belongs to it but the lock, which others may be waiting for. False when there was
    /// nothing.
    @discardableResult
    func removeAll() throws(StenoError) -> Bool {
        // At once away, then bit by bit.
        var hasRemoved = try delete(removed)
        if unsafe rename(path, removed) != 0, errno != ENOENT { throw .store(errno, "removing", path) }
        for path in [
            removed, receiptPath, receiptPath + ".new", partial, partial + ".origin", partial + ".origin.new",
            unpacking,
        ] where try delete(path) { hasRemoved = true }
        return hasRemoved
    }

    /// False when there is nothing.
    @discardableResult
    private func delete(_ path: String) throws(StenoError) -> Bool {
        do {
            try FileManager.default.removeItem(atPath: path)
            return true
        } catch CocoaError.fileNoSuchFile {
            return false
        } catch {
            throw StenoError(.modelStoreFailed, "removing \(path.debugDescription): \(error)", underlying: error)
        }
    }
}

// Installing, by whom has the lock.
extension Place {
    func install(
        isCancelled: @escaping @Sendable () -> Bool,
        report: @escaping (ModelProgress.Phase, _ received: Int64, _ total: Int64?) -> Void
    ) throws(StenoError) {
        try checkSpace(total: entry.size)
        var hasRoom = entry.size != nil
        let download = try Download(
            address, to: partial, expectedSize: entry.size, options: options, isCancelled: isCancelled
        ) { (received, total) throws(StenoError) in
            if !hasRoom, total != nil {
                hasRoom = true
                try checkSpace(total: total)
            }
            report(.downloading, received, total)
        }
        var values: [ModelDigest.Kind: String] = [:]
        for attempt in 1... {
            try download.run()
            report(.verifying, partialSize, partialSize)
            values = try digests(
                of: partial, kinds: Set(entry.digests.map(\.kind)).union([.sha256]), isCancelled: isCancelled)
            guard let fault = fault(values) else { break }
            // What was put together from parts may be wrong where the whole is right, but not twice.
            try download.restart()
            if attempt == 2 { throw fault }
        }
        try finish(values, isCancelled: isCancelled, report: report)
    }

    /// What contradicts the catalogue.
    private func fault(_ values: [ModelDigest.Kind: String]) -> StenoError? {
        if let size = entry.size, size != partialSize {
            return StenoError(
                .modelChecksumMismatch,
                "What came from \(address) has \(partialSize) bytes, the catalogue says \(size).")
        }
        for digest in entry.digests where values[digest.kind] != digest.value {
            return StenoError(
                .modelChecksumMismatch,
                "What came from \(address) has the \(digest.kind.rawValue) digest \(values[digest.kind] ?? "?"); the catalogue "
                    + "says \(digest.value).")
        }
        return nil
    }

    private func finish(
        _ values: [ModelDigest.Kind: String], isCancelled: @escaping @Sendable () -> Bool,
        report: (ModelProgress.Phase, Int64, Int64?) -> Void
    ) throws(StenoError) {
        let size = partialSize
        let named = values.map { ($0.rawValue, $1) }
        var receipt = Receipt(
            address: address, size: size, digests: Dictionary(uniqueKeysWithValues: named))
        var whole = partial
        if isFolder {
            report(.unpacking, size, size)
            try delete(unpacking)
            // Models are numbers, which hardly shrink.
            do throws(StenoError) {
                try unpack(
                    partial, into: unpacking, limit: max(64 << 20, 20 * size), isCancelled: isCancelled)
            } catch {
                if error.code == .modelArchiveInvalid { try removeAll() }
                throw error
            }
            let top = (try? FileManager.default.contentsOfDirectory(atPath: unpacking)) ?? []
            var isDirectory: ObjCBool = false
            whole = unpacking
            if top.count == 1,
                unsafe FileManager.default.fileExists(atPath: unpacking + "/" + top[0], isDirectory: &isDirectory),
                isDirectory.boolValue
            {
                whole += "/" + top[0]
            }
            receipt.files = try Self.listing(whole)
        }
        try save(receipt, to: receiptPath)
        if isCancelled() { throw StenoError(.cancelled, "The work was cancelled.") }
        // Something else of that name makes room.
        if isFolder || size == 0 {
            try delete(removed)
            if unsafe rename(path, removed) != 0, errno != ENOENT { throw .store(errno, "removing", path) }
        }
        guard unsafe rename(whole, path) == 0 else { throw .store(errno, "completing", path) }
        for leftover in [partial, partial + ".origin", unpacking, removed] { _ = try? delete(leftover) }
        let folder = unsafe open(options.folder, O_RDONLY | O_CLOEXEC)
        if folder >= 0 {
            fsync(folder)
            close(folder)
        }
    }

    /// The download, and for an archive what comes out of it.
    private func checkSpace(total: Int64?) throws(StenoError) {
        guard let total else { return }
        var status = statvfs()
        guard unsafe statvfs(options.folder, &status) == 0 else { throw .store(errno, "reading", options.folder) }
        let free = Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(status.f_frsize)).partialValue
        let needed = total - min(total, partialSize) + (isFolder ? 2 * total : 0)
        guard needed <= free else {
            throw StenoError(
                .modelStoreFull,
                "The model \(entry.name) needs \(needed) bytes; \(options.folder.debugDescription) has \(free).",
                nativeCode: Int(ENOSPC))
        }
    }
}

// Verifying.
extension Place {
    func verify() throws(StenoError) {
        let receipt = receipt
        func mismatch(_ what: String) -> StenoError {
            StenoError(
                .modelChecksumMismatch, "The model \(entry.name) at \(path.debugDescription) is damaged: \(what).")
        }
        if isFolder {
            guard let files = receipt?.files else {
                throw mismatch("nothing was recorded of it; remove it and install it again")
            }
            let found = try Self.listing(path)
            for (name, digest) in files where found[name] != digest {
                throw mismatch(found[name] == nil ? "\(name) is missing" : "\(name) has changed")
            }
            return
        }
        if let expected = entry.size ?? receipt?.size, let size = size(of: path), size != expected {
            throw mismatch("it has \(size) bytes, not \(expected)")
        }
        let recorded = (receipt?.digests ?? [:]).compactMap { name, value in
            ModelDigest.Kind(rawValue: name).map { ModelDigest($0, value) }
        }
        let expected = entry.digests + recorded
        guard !expected.isEmpty else { throw mismatch("no digest of it is known; remove it and install it again") }
        let values = try digests(of: path, kinds: Set(expected.map(\.kind)))
        for digest in expected where values[digest.kind] != digest.value {
            throw mismatch("its \(digest.kind.rawValue) digest is \(values[digest.kind] ?? "?"), not \(digest.value)")
        }
    }

    /// The SHA-256 of all files in a folder.
    private static func listing(_ folder: String) throws(StenoError) -> [String: String] {
        var files: [String: String] = [:]
        for name in FileManager.default.enumerator(atPath: folder)?.compactMap({ $0 as? String }) ?? [] {
            let path = folder + "/" + name
            var status = stat()
            guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
            files[name] = try digests(of: path, kinds: [.sha256])[.sha256]
        }
        return files
    }
}
