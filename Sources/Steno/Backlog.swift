import StenoAudio

/// Recorded audio on its way to the analyzer, which may be slower than real time (law A8).
///
/// The recorder's side never waits. The newest seconds are in memory; what does not fit is left where it is anyway, in
/// the recorded file, and read back from there. Without a file that can be read back, it is dropped and reported. So
/// memory is bounded however far the analyzer lags.
///
/// Positions are frames of the recorded format, counted from the start of the recording.
final class Backlog: Sendable {
    enum Item: Equatable {
        /// The buffer holds the next frames.
        case frames
        /// Frames that are missing before the next ones.
        case gap(frameCount: Int64, kind: TimelineEvent.Kind)
        case end
    }

    private struct State {
        /// The newest frames that are in memory.
        var run: AudioBuffer
        /// Frames that were taken out or skipped.
        var taken: Int64 = 0
        /// The first frame that is not in memory, and none after it is; nil when all are.
        var spilled: Int64?
        /// Frames that came in.
        var pushed: Int64 = 0
        /// Gaps before the frame at each position, in order.
        var gaps: [(position: Int64, frameCount: Int64, kind: TimelineEvent.Kind)] = []
        var hasEnded = false
        var isAbandoned = false
        var reader: Waiter?
    }

    private let state: Lock<State>
    private let frameCapacity: Int
    private let store: SpilledAudio?

    /// - Parameter store: where frames that do not fit into memory are; nil drops them.
    init(format: AudioFormat, frameCapacity: Int, store: SpilledAudio?) {
        self.frameCapacity = frameCapacity
        self.store = store
        state = Lock(State(run: AudioBuffer(format: format, frameCapacity: frameCapacity)))
    }

    // MARK: The recorder's side

    /// Adds frames that the file holds by now. Neither waits nor, in the steady state, allocates.
    func push(_ buffer: AudioBuffer) {
        let count = Int64(buffer.frameCount)
        update { state in
            guard !state.isAbandoned else { return }
            if state.spilled == nil && state.run.frameCount + buffer.frameCount <= frameCapacity {
                state.run.append(buffer)
            } else if (try? store?.keep(buffer, at: state.pushed)) != nil {
                if state.spilled == nil { state.spilled = state.pushed }
            } else {
                // Dropped: the timeline goes on without these frames.
                Self.note(count, .dropped, at: state.pushed, in: &state.gaps)
                return
            }
            state.pushed += count
        }
    }

    /// Adds audio that is missing from the recording too.
    func pushGap(frameCount: Int64, kind: TimelineEvent.Kind) {
        update { state in
            if !state.isAbandoned { Self.note(frameCount, kind, at: state.pushed, in: &state.gaps) }
        }
    }

    func finish() { update { $0.hasEnded = true } }

    /// Drops what was not taken and refuses what comes. Returns how many frames that is.
    @discardableResult
    func abandon() -> Int64 {
        update { state in
            state.isAbandoned = true
            state.hasEnded = true
            state.gaps.removeAll()
            state.run.removeAll()
            return state.pushed - state.taken
        }
    }

    private static func note(
        _ count: Int64, _ kind: TimelineEvent.Kind, at position: Int64,
        in gaps: inout [(position: Int64, frameCount: Int64, kind: TimelineEvent.Kind)]
    ) {
        if let last = gaps.last, last.position == position, last.kind == kind {
            gaps[gaps.count - 1].frameCount += count
        } else {
            gaps.append((position, count, kind))
        }
    }

    private func update<R>(_ change: (inout State) -> R) -> R {
        let (result, reader) = state.withLock { state -> (R, Waiter?) in
            let result = change(&state)
            defer { state.reader = nil }
            return (result, state.reader)
        }
        reader?.resume()
        return result
    }

    // MARK: The analyzer's side

    /// The next audio, or nil when there is none yet. `buffer` is handed over, and comes back with the frames. Blocks
    /// while it reads back.
    func poll(into buffer: inout AudioBuffer) throws(StenoError) -> Item? {
        switch state.withLock({ Self.step(&$0, into: &buffer) }) {
        case .item(let item):
            return item
        case .wait:
            return nil
        case .readBack(let range):
            try store?.read(range, into: &buffer)
            state.withLock { state in
                state.taken = range.upperBound
                guard state.taken == state.pushed else {
                    state.spilled = state.taken
                    return
                }
                state.spilled = nil
                store?.forget()
            }
            return .frames
        }
    }

    /// Returns when there may be something to poll.
    func wait() async {
        await unsafe withUnsafeContinuation { continuation in
            let isReady = state.withLock { state in
                if state.hasEnded || state.pushed > state.taken || !state.gaps.isEmpty { return true }
                state.reader = unsafe Waiter(continuation)
                return false
            }
            if isReady { unsafe continuation.resume() }
        }
    }

    private enum Step {
        case item(Item)
        case readBack(Range<Int64>)
        case wait
    }

    private static func step(_ state: inout State, into buffer: inout AudioBuffer) -> Step {
        if state.isAbandoned { return .item(.end) }
        if let gap = state.gaps.first, gap.position == state.taken {
            state.gaps.removeFirst()
            return .item(.gap(frameCount: gap.frameCount, kind: gap.kind))
        }
        let limit = state.gaps.first?.position ?? .max
        if state.run.frameCount > 0 {
            let count = min(Int64(state.run.frameCount), limit - state.taken)
            if count == state.run.frameCount {
                buffer.removeAll()
                swap(&state.run, &buffer)
            } else {
                buffer = state.run.copy(frames: 0..<Int(count))
                state.run = state.run.copy(frames: Int(count)..<state.run.frameCount)
                state.run.reserveCapacity(buffer.frameCapacity)
            }
            state.taken += count
            return .item(.frames)
        }
        if state.spilled != nil {
            return .readBack(state.taken..<min(state.pushed, limit, state.taken + Int64(buffer.frameCapacity)))
        }
        return state.hasEnded ? .item(.end) : .wait
    }

    /// Frames that came in and were not taken yet.
    var waitingFrames: Int64 { state.withLock { $0.pushed - $0.taken } }
}

/// One reader that waits. The backlog takes it out before it resumes it, so it is resumed once; unlike a checked
/// continuation it costs no allocation for each buffer.
@safe private struct Waiter: Sendable {
    private let continuation: UnsafeContinuation<Void, Never>

    init(_ continuation: UnsafeContinuation<Void, Never>) { unsafe self.continuation = continuation }

    func resume() { unsafe continuation.resume() }
}
