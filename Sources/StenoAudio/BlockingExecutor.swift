import Dispatch

/// Runs an actor's work on a thread of its own that may block, so that calls into C libraries stay off the cooperative
/// pool.
///
///     actor Reader {
///         private let executor = BlockingExecutor(label: "reader")
///         nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
///     }
///
/// The thread lives as long as the executor. Handing it a job allocates nothing in the steady state.
public final class BlockingExecutor: SerialExecutor {
    private let jobs = Jobs()

    /// What the thread holds: not the executor, which would then never be released. A job's own actor holds that.
    private final class Jobs: Sendable {
        let waiting = Lock<[Job?]>([])
        let wake = DispatchSemaphore(value: 0)
    }

    @safe private struct Job: Sendable {
        let job: UnownedJob
        let executor: UnownedSerialExecutor
    }

    public init(label: String) {
        DispatchQueue(label: label).async { [jobs] in
            while true {
                jobs.wake.wait()
                guard let next = jobs.waiting.withLock({ $0.removeFirst() }) else { return }
                unsafe next.job.runSynchronously(on: next.executor)
            }
        }
    }

    deinit { add(nil) }

    public func enqueue(_ job: consuming ExecutorJob) {
        add(unsafe Job(job: UnownedJob(job), executor: asUnownedSerialExecutor()))
    }

    private func add(_ job: Job?) {
        jobs.waiting.withLock { $0.append(job) }
        jobs.wake.signal()
    }
}
