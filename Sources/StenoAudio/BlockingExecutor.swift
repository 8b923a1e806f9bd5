import Dispatch

/// Runs an actor's work on a thread of its own that may block, so that calls into C libraries stay off the cooperative
/// pool.
///
///     actor Reader {
///         private let executor = BlockingExecutor(label: "reader")
///         nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
///     }
///
/// A task whose preference it is comes back here after each wait, and not by way of the cooperative pool, where a
/// hand-over from another thread allocates twice. What is isolated to no actor then runs here too.
///
/// The thread lives as long as the executor. Handing it a job allocates nothing in the steady state (law C5).
public final class BlockingExecutor: SerialExecutor, TaskExecutor {
    private let jobs = Jobs()

    /// What the thread holds: not the executor, which would then never be released. A job's own actor or task holds that.
    private final class Jobs: Sendable {
        struct State {
            var waiting: [Job?] = []
            /// Jobs in front that were taken.
            var taken = 0
        }
        let state = Lock(State())
        let wake = DispatchSemaphore(value: 0)

        func next() -> Job? {
            wake.wait()
            return state.withLock { state in
                let job = state.waiting[state.taken]
                state.taken += 1
                if state.taken == state.waiting.count {
                    state.waiting.removeAll(keepingCapacity: true)
                    state.taken = 0
                } else if state.taken == 256 {
                    state.waiting.removeFirst(256)
                    state.taken = 0
                }
                return job
            }
        }
    }

    @safe private struct Job: Sendable {
        let job: UnownedJob
        let actorExecutor: UnownedSerialExecutor
        let taskExecutor: UnownedTaskExecutor
    }

    public init(label: String) {
        DispatchQueue(label: label).async { [jobs] in
            while let next = jobs.next() {
                unsafe next.job.runSynchronously(isolatedTo: next.actorExecutor, taskExecutor: next.taskExecutor)
            }
        }
    }

    deinit { add(nil) }

    public func enqueue(_ job: consuming ExecutorJob) {
        add(
            unsafe Job(
                job: UnownedJob(job), actorExecutor: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor()))
    }

    private func add(_ job: Job?) {
        jobs.state.withLock { $0.waiting.append(job) }
        jobs.wake.signal()
    }
}
