import Glibc
internal import StenoAudio
import Synchronization

/// An installation at work, on a thread of its own, and those who wait for it.
final class Job: Sendable {
    private struct Asker {
        var progress: @Sendable (ModelProgress) -> Void
        var continuation: CheckedContinuation<Result<String, StenoError>, Never>?
    }

    private struct State {
        var askers: [Int: Asker] = [:]
        var nextIdentifier = 0
        var progress = ModelProgress(phase: .waiting, received: 0, total: nil)
        var result: Result<String, StenoError>?
    }

    private let place: Place
    private let state = Lock(State())
    private let cancelled = Atomic(false)

    init(place: Place) {
        self.place = place
        state.withLock { $0.progress.total = place.entry.size }
    }

    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }
    var progress: ModelProgress { state.withLock { $0.progress } }

    func cancel() { cancelled.store(true, ordering: .releasing) }

    /// Makes an asker; nil when the job is being cancelled, and does not come back.
    func join(_ progress: @escaping @Sendable (ModelProgress) -> Void) -> Int? {
        state.withLock { state in
            guard !isCancelled else { return nil }
            state.nextIdentifier += 1
            state.askers[state.nextIdentifier] = Asker(progress: progress)
            return state.nextIdentifier
        }
    }

    /// - Parameter ended: called before those who wait go on.
    func start(_ ended: @escaping @Sendable () -> Void) throws(StenoError) {
        try startThread { [self] in
            let result: Result<String, StenoError>
            do throws(StenoError) {
                result = .success(try run())
            } catch {
                result = .failure(error)
            }
            ended()
            let askers = state.withLock { state in
                defer { state.askers = [:] }
                state.result = result
                return Array(state.askers.values)
            }
            for asker in askers { asker.continuation?.resume(returning: result) }
        }
    }

    /// Waits for the end.
    func wait(as identifier: Int) async throws(StenoError) -> String {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Result<String, StenoError>, Never>) in
                let result = state.withLock { state -> Result<String, StenoError>? in
                    if let result = state.result { return result }
                    // It left before it began to wait.
                    guard state.askers[identifier] != nil else { return Self.left }
                    state.askers[identifier]?.continuation = continuation
                    return nil
                }
                if let result { continuation.resume(returning: result) }
            }
        } onCancel: {
            leave(identifier)
        }
        return try result.get()
    }

    private static let left = Result<String, StenoError>.failure(
        StenoError(.cancelled, "The installation was cancelled."))

    private func leave(_ identifier: Int) {
        let continuation = state.withLock { state in
            let asker = state.askers.removeValue(forKey: identifier)
            // Under the lock, so that nobody joins in between.
            if asker != nil, state.askers.isEmpty { cancel() }
            return asker?.continuation
        }
        continuation?.resume(returning: Self.left)
    }

    private func run() throws(StenoError) -> String {
        var meter = ProgressMeter()
        func report(_ phase: ModelProgress.Phase, _ received: Int64, _ total: Int64?) {
            guard let progress = meter.update(phase, received: received, total: total) else { return }
            let askers = state.withLock { state in
                state.progress = progress
                return state.askers.values.map(\.progress)
            }
            for asker in askers { asker(progress) }
        }
        let lock = try waitForLock(report)
        defer { lock.unlock() }
        // Whoever had it may have installed it.
        if place.isInstalled { return place.path }
        try withoutActuallyEscaping(report) { (report) throws(StenoError) in
            try place.install(isCancelled: { [self] in isCancelled }, report: report)
        }
        return place.path
    }

    private func waitForLock(
        _ report: (ModelProgress.Phase, Int64, Int64?) -> Void
    ) throws(StenoError) -> Place.FileLock {
        while true {
            if isCancelled { throw StenoError(.cancelled, "The installation was cancelled.") }
            do throws(StenoError) {
                return try place.lock()
            } catch {
                guard error.code == .modelStoreBusy else { throw error }
                report(.waiting, place.partialSize, place.entry.size)
                usleep(50_000)
            }
        }
    }
}
