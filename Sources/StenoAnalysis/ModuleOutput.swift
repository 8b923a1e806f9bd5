public import StenoAudio

public final class ModuleOutput<Result: SpeechModuleResult>: Sendable {
    public init() {}
    public var results: Results { Results() }
    public struct Results: AsyncSequence, Sendable {
        public typealias Element = Result
        public typealias Failure = StenoError
        public struct AsyncIterator: AsyncIteratorProtocol {
            public mutating func next() async throws(StenoError) -> Result? { nil }
            public mutating func next(isolation: isolated (any Actor)?) async throws(StenoError) -> Result? { nil }
        }
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator() }
    }
}
