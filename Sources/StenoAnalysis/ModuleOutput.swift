public import StenoAudio
import Synchronization

/// The result channel of one module: the analyzer publishes, one reader iterates.
///
/// Unread volatile results that a later result covers are dropped, so that a slow reader finds each range once and what
/// waits is bounded by the final results. The sequence ends when the session finished, and throws the session's error
/// otherwise (law A3).
public final class ModuleOutput<Result: SpeechModuleResult>: Sendable {
    private struct State {
        var unread: [Result] = []
        var head = 0
        var isAttached = false
        var end: SpeechAnalyzer.FinishReason?
        var reader: CheckedContinuation<Void, Never>?
    }

    private let state = Lock(State())

    public init() {}

    public var results: Results { Results(output: self) }

    /// Claims the output for one session; false when it has had one.
    func attach() -> Bool {
        state.withLock { state in
            defer { state.isAttached = true }
            return !state.isAttached
        }
    }

    package func publish(_ result: Result) {
        let reader = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.end == nil else { return nil }
            while state.unread.count > state.head, let last = state.unread.last, !last.isFinal,
                result.replaces(last)
            {
                state.unread.removeLast()
            }
            state.unread.append(result)
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    package func finish(_ reason: SpeechAnalyzer.FinishReason) {
        let reader = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.end == nil { state.end = reason }
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    private func next() async throws(StenoError) -> Result? {
        while true {
            let step = state.withLock { state -> (Result?, SpeechAnalyzer.FinishReason?) in
                guard state.head < state.unread.count else { return (nil, state.end) }
                let result = state.unread[state.head]
                state.head += 1
                if state.head == state.unread.count || state.head >= 256 {
                    state.unread.removeFirst(state.head)
                    state.head = 0
                }
                return (result, nil)
            }
            if let result = step.0 { return result }
            if let reason = step.1 {
                if let error = reason.error { throw error }
                return nil
            }
            if Task.isCancelled { throw StenoError(.cancelled, "the task that reads the results was cancelled") }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let ready = state.withLock { state in
                        // A second reader would be a mistake; the first then looks again and waits behind it.
                        state.reader?.resume()
                        state.reader = nil
                        if state.head < state.unread.count || state.end != nil || Task.isCancelled { return true }
                        state.reader = continuation
                        return false
                    }
                    if ready { continuation.resume() }
                }
            } onCancel: {
                let reader = state.withLock { state in
                    defer { state.reader = nil }
                    return state.reader
                }
                reader?.resume()
            }
        }
    }

    /// The results of a module in the order in which they were published. For one reader at a time.
    public struct Results: AsyncSequence, Sendable {
        public typealias Element = Result
        public typealias Failure = StenoError

        let output: ModuleOutput

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(output: output) }

        public struct AsyncIterator: AsyncIteratorProtocol {
            let output: ModuleOutput

            public mutating func next() async throws(StenoError) -> Result? { try await output.next() }

            public mutating func next(isolation: isolated (any Actor)?) async throws(StenoError) -> Result? {
                try await output.next()
            }
        }
    }
}
