import Dispatch

/// Runs an actor's work on a thread of its own that may block, so that calls into C libraries stay off the cooperative
/// pool.
///
///     actor Reader {
///         private let executor = BlockingExecutor(label: "reader")
///         nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
///     }
public final class BlockingExecutor: SerialExecutor {
    private let queue: DispatchQueue

    public init(label: String) { queue = DispatchQueue(label: label) }

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async {
            unsafe job.runSynchronously(on: self.asUnownedSerialExecutor())
        }
    }
}
