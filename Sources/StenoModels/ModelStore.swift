import Foundation
public import StenoAudio

/// The models on this machine: a folder with a file or a folder for each, which is whole or not there.
///
///     let store = ModelStore()
///     let path = try await store.install("base.en") { progress in print(progress.fraction ?? 0) }
///
/// Nothing is downloaded but by ``install(_:progress:)``. Several processes may use the same folder: one of them
/// downloads, the others wait for it. What a killed or cancelled installation leaves is gone on with by the next.
///
/// All methods may be called from any thread. Those that are not `async` read the disk, a little.
public final class ModelStore: Sendable {
    public struct Options: Sendable {
        /// Where the models are.
        public var folder: String
        public var catalog = ModelCatalog.builtIn
        /// Whether nothing may be fetched from a network; files may.
        public var isOffline = false
        /// Where models are fetched from instead of their own address: this, a slash and the last part of that. An
        /// `https`, `http` or `file` address.
        public var mirror: String?
        /// Seconds without a byte after which a request is given up.
        public var stallSeconds = 30
        /// Requests in a row that may bring nothing.
        public var retries = 5
        /// The pause before the first of them; it doubles.
        public var retryDelay = Duration.seconds(1)
        /// Whether a download goes on even where the server does not say that the file is still the same. A digest, where
        /// there is one, tells in the end.
        public var resumesWithoutValidator = false

        /// - Parameter folder: nil for `$XDG_DATA_HOME/steno/models`, or `~/.local/share/steno/models`.
        public init(folder: String? = nil) { self.folder = folder ?? Self.defaultFolder }

        /// As the environment says: `STENO_MODELS` is the folder, `STENO_MODELS_MIRROR` the ``mirror``, and
        /// `STENO_OFFLINE`, where it is set and neither empty nor 0, forbids the network.
        public static func fromEnvironment() -> Options {
            let environment = ProcessInfo.processInfo.environment
            var options = Options(folder: environment["STENO_MODELS"].flatMap { $0.isEmpty ? nil : $0 })
            options.mirror = environment["STENO_MODELS_MIRROR"].flatMap { $0.isEmpty ? nil : $0 }
            options.isOffline = !["", "0"].contains(environment["STENO_OFFLINE"] ?? "")
            return options
        }

        static var defaultFolder: String {
            let environment = ProcessInfo.processInfo.environment
            // The specification has relative paths ignored.
            let data = environment["XDG_DATA_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
            return (data ?? NSHomeDirectory() + "/.local/share") + "/steno/models"
        }
    }

    public let options: Options
    private let jobs = Lock<[String: Job]>([:])

    public init(_ options: Options = Options()) { self.options = options }

    /// The path of an installed model; nil when it is not installed.
    public func path(of name: String) -> String? {
        guard let entry = options.catalog[name] else { return nil }
        return Place(entry, options).isInstalled ? Place(entry, options).path : nil
    }

    public func status(of name: String) -> ModelStatus {
        guard let entry = options.catalog[name] else {
            return ModelStatus(state: .unsupported, reason: "There is no model \(name) in the catalogue.")
        }
        let place = Place(entry, options)
        if let progress = jobs.withLock({ $0[name]?.progress }) {
            return ModelStatus(state: .downloading, reason: "This process installs it.", progress: progress)
        }
        if place.isInstalled {
            let reason =
                place.receipt.map { "Installed from \($0.address)." }
                ?? "It is there, but was not installed by a store."
            return ModelStatus(state: .installed, reason: reason)
        }
        if place.isLocked {
            let progress = ModelProgress(phase: .waiting, received: place.partialSize, total: entry.size)
            return ModelStatus(state: .downloading, reason: "Another process installs it.", progress: progress)
        }
        let begun = place.partialSize
        let rest = begun > 0 ? " \(begun) bytes are there already." : ""
        if options.isOffline, !place.address.hasPrefix("file:") {
            return ModelStatus(state: .supported, reason: "It is not installed, and the store is offline.\(rest)")
        }
        return ModelStatus(state: .supported, reason: "It can be installed from \(place.address).\(rest)")
    }

    /// Installs a model, or waits until another asker has, and returns its path. Returns at once when it is there.
    ///
    /// All who ask at a time share one download. Cancelling the task gives up the wait; the download ends with its last
    /// asker.
    ///
    /// - Parameter progress: called up to ten times a second, from any thread, one call at a time.
    /// - Throws: `modelUnknown`, `modelStoreOffline`, `modelDownloadFailed`, `modelChecksumMismatch`,
    ///   `modelArchiveInvalid`, `modelStoreFull`, `modelStoreFailed`, `cancelled`.
    @discardableResult
    public func install(
        _ name: String, progress: @escaping @Sendable (ModelProgress) -> Void = { _ in }
    ) async throws(StenoError) -> String {
        let entry = try entry(name)
        let place = Place(entry, options)
        if place.isInstalled { return place.path }
        if options.isOffline, !place.address.hasPrefix("file:") {
            throw StenoError(.modelStoreOffline, "The model \(name) is not installed, and the store is offline.")
        }
        let (job, asker) = try jobs.withLock { jobs throws(StenoError) -> (Job, Int) in
            if let job = jobs[name], let asker = job.join(progress) { return (job, asker) }
            let job = Job(place: place)
            guard let asker = job.join(progress) else {
                throw StenoError(.cancelled, "The installation was cancelled.")
            }
            // It ends after this lock is free.
            try job.start { [self] in
                self.jobs.withLock { if $0[name] === job { $0[name] = nil } }
            }
            jobs[name] = job
            return (job, asker)
        }
        return try await job.wait(as: asker)
    }

    /// Ends the installation of a model for all who wait for it. What came so far stays for the next.
    public func cancel(_ name: String) { jobs.withLock { $0[name] }?.cancel() }

    /// Removes a model, and what is left of unfinished installations.
    ///
    /// - Throws: `modelUnknown`, `modelNotInstalled` when there is nothing of it, `modelStoreBusy`, `modelStoreFailed`.
    public func remove(_ name: String) throws(StenoError) {
        let place = Place(try entry(name), options)
        guard FileManager.default.fileExists(atPath: options.folder) else { throw notInstalled(name) }
        let lock = try place.lock()
        defer { lock.unlock() }
        guard try place.removeAll() else { throw notInstalled(name) }
    }

    /// Reads a model through and compares it with the digests of the catalogue, or those that were recorded when it was
    /// installed.
    ///
    /// - Throws: `modelUnknown`, `modelNotInstalled` when there is nothing, `modelChecksumMismatch`, also when the size is
    ///   another, `modelStoreFailed`, `cancelled`.
    public func verify(_ name: String) async throws(StenoError) {
        let place = Place(try entry(name), options)
        guard place.exists else { throw notInstalled(name) }
        try await Verifier().verify(place)
    }

    private actor Verifier {
        private let executor = BlockingExecutor(label: "steno.models")
        nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

        func verify(_ place: Place) throws(StenoError) { try place.verify() }
    }

    private func notInstalled(_ name: String) -> StenoError {
        StenoError(.modelNotInstalled, "The model \(name) is not installed.")
    }

    private func entry(_ name: String) throws(StenoError) -> ModelEntry {
        guard let entry = options.catalog[name] else {
            throw StenoError(.modelUnknown, "There is no model \(name.debugDescription) in the catalogue.")
        }
        return entry
    }
}
