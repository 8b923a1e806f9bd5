import StenoAnalysis
import StenoAudio
import StenoConversion
import StenoSoxr

/// The backlog of a recording, converted as the analyzer asks for it, on the thread that it has for that: reading back
/// blocks.
actor LiveInputs {
    private let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    private let backlog: Backlog
    private let converter: AnalyzerInputConverter
    private var buffer: AudioBuffer
    private var ready: [AnalyzerInput] = []
    private var hasEnded = false

    init(
        backlog: Backlog, format: AudioFormat, frameCapacity: Int, analyzerFormat: AudioFormat,
        options: AnalyzerInputConverter.Options, executor: BlockingExecutor
    ) {
        self.executor = executor
        self.backlog = backlog
        converter = AnalyzerInputConverter(
            analyzerFormat: analyzerFormat, resampler: SoxrResamplerFactory(), options: options)
        buffer = AudioBuffer(format: format, frameCapacity: frameCapacity)
    }

    var events: [TimelineEvent] { converter.events }
    var driftFromSource: Int64 { converter.driftFromSource }
    var ledger: AnalyzerInputRetimer.Ledger { converter.retimer.ledger }

    func next() async throws(StenoError) -> AnalyzerInput? {
        while ready.isEmpty && !hasEnded {
            switch try backlog.poll(into: &buffer) {
            case nil:
                await backlog.wait()
            case .frames:
                try converter.convert(buffer) { (input) throws(StenoError) in ready.append(input) }
            case .gap(let count, let kind):
                try converter.skip(count, kind: kind) { (input) throws(StenoError) in ready.append(input) }
            case .end:
                hasEnded = true
                try converter.finish { (input) throws(StenoError) in ready.append(input) }
            }
        }
        return ready.count > 1 ? ready.removeFirst() : ready.popLast()
    }
}

struct LiveInputSequence: AsyncSequence, Sendable {
    typealias Element = AnalyzerInput
    typealias Failure = StenoError

    let inputs: LiveInputs

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(inputs: inputs) }

    struct AsyncIterator: AsyncIteratorProtocol {
        let inputs: LiveInputs

        mutating func next() async throws(StenoError) -> AnalyzerInput? { try await inputs.next() }

        mutating func next(isolation: isolated (any Actor)?) async throws(StenoError) -> AnalyzerInput? {
            try await inputs.next()
        }
    }
}
