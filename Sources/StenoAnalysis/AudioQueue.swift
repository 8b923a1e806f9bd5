import Dispatch
import StenoAudio
import Synchronization

/// Audio and orders on their way from the analyzer to the thread of one module; bounded in seconds of audio (law A8).
///
/// The queue holds one contiguous run of frames. The module's thread takes the whole run by swapping it against its own
/// empty buffer; neither side allocates. A feeder that finds no room, or whose audio does not follow what is there,
/// waits until the run was taken.
final class AudioQueue: Sendable {
    enum Work {
        /// The buffer holds the run that starts at this frame.
        case audio(start: Int64)
        /// Everything before was taken: make results final through this frame, then resume.
        case finalize(through: Int64, CheckedContinuation<Void, Never>)
        /// Everything was taken and nothing will come.
        case finish
        /// Drop everything and end.
        case stop
    }

    private struct State {
        var run: AudioBuffer
        var start: Int64 = 0
        var orders: [(through: Int64, continuation: CheckedContinuation<Void, Never>)] = []
        var isFinishing = false
        var isStopped = false
        var isWorkerWaiting = false
        var feeder: Feeder?

        mutating func takeFeeder() -> Feeder? {
            defer { feeder = nil }
            return feeder
        }
    }

    /// The one feeder, while it waits. The queue takes it out before it resumes it, so it is resumed once; unlike a
    /// checked continuation it costs no allocation for each buffer.
    @safe private struct Feeder: Sendable {
        private let continuation: UnsafeContinuation<Void, Never>

        init(_ continuation: UnsafeContinuation<Void, Never>) { unsafe self.continuation = continuation }

        func resume() { unsafe continuation.resume() }
    }

    let format: AudioFormat
    let frameCapacity: Int
    private let state: Lock<State>
    private let wake = DispatchSemaphore(value: 0)

    init(format: AudioFormat, frameCapacity: Int) {
        self.format = format
        self.frameCapacity = frameCapacity
        state = Lock(State(run: AudioBuffer(format: format, frameCapacity: frameCapacity)))
    }

    // MARK: The analyzer's side

    /// Appends frames that start at frame `start` of the timeline; returns when all are in, or the queue was stopped.
    /// One call at a time.
    func push(_ buffer: AudioBuffer, from first: Int, start: Int64) async {
        var taken = first
        while true {
            let isDone = state.withLock { state in
                if state.isStopped || taken == buffer.frameCount { return true }
                let position = start + Int64(taken - first)
                if state.run.frameCount == 0 {
                    state.start = position
                } else if state.start + Int64(state.run.frameCount) != position {
                    return false
                }
                let count = min(frameCapacity - state.run.frameCount, buffer.frameCount - taken)
                state.run.append(buffer, frames: taken..<taken + count)
                taken += count
                wakeWorker(&state)
                return taken == buffer.frameCount
            }
            if isDone { return }
            await unsafe withUnsafeContinuation { continuation in
                let hasRoom = state.withLock { state in
                    if state.run.frameCount == 0 || state.isStopped { return true }
                    state.feeder = unsafe Feeder(continuation)
                    return false
                }
                if hasRoom { unsafe continuation.resume() }
            }
        }
    }

    /// Waits until everything pushed so far was accepted and is final through frame `through`.
    func finalize(through: Int64) async {
        await withCheckedContinuation { continuation in
            let isStopped = state.withLock { state in
                if state.isStopped { return true }
                state.orders.append((through, continuation))
                wakeWorker(&state)
                return false
            }
            if isStopped { continuation.resume() }
        }
    }

    func finish() {
        state.withLock { state in
            state.isFinishing = true
            wakeWorker(&state)
        }
    }

    /// Ends the queue: what it holds is dropped, and everybody who waits goes on.
    func stop() {
        let (feeder, waiting) = state.withLock { state in
            state.isStopped = true
            state.run.removeAll()
            defer { state.orders.removeAll() }
            wakeWorker(&state)
            return (state.takeFeeder(), state.orders.map(\.continuation))
        }
        feeder?.resume()
        for continuation in waiting { continuation.resume() }
    }

    /// Drops queued frames before `frame`; returns the range that was dropped.
    func discard(before frame: Int64) -> Range<Int64>? {
        let (dropped, feeder) = state.withLock { state -> (Range<Int64>?, Feeder?) in
            let count = min(Int64(state.run.frameCount), frame - state.start)
            guard count > 0 else { return (nil, nil) }
            let dropped = state.start..<state.start + count
            let rest = state.run.copy(frames: Int(count)..<state.run.frameCount)
            state.run.removeAll()
            state.run.append(rest)
            state.start += count
            return (dropped, state.run.frameCount == 0 ? state.takeFeeder() : nil)
        }
        feeder?.resume()
        return dropped
    }

    // MARK: The module's side

    /// Blocks until there is something to do. `buffer` is handed over, and comes back with the frames of `.audio`.
    func next(into buffer: inout AudioBuffer) -> Work {
        while true {
            let (work, feeder) = state.withLock { state -> (Work?, Feeder?) in
                if state.isStopped { return (.stop, nil) }
                if state.run.frameCount > 0 {
                    buffer.removeAll()
                    swap(&state.run, &buffer)
                    return (.audio(start: state.start), state.takeFeeder())
                }
                if !state.orders.isEmpty {
                    let order = state.orders.removeFirst()
                    return (.finalize(through: order.through, order.continuation), nil)
                }
                if state.isFinishing { return (.finish, nil) }
                state.isWorkerWaiting = true
                return (nil, nil)
            }
            feeder?.resume()
            if let work { return work }
            wake.wait()
        }
    }

    private func wakeWorker(_ state: inout State) {
        guard state.isWorkerWaiting else { return }
        state.isWorkerWaiting = false
        wake.signal()
    }
}
