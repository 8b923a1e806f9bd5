import StenoAnalysis
import StenoAudio
import StenoConversion
import StenoSoxr

/// Opens and reads a source on a thread that may block, and converts it as the analyzer asks for it.
actor StreamInputs {
    private let executor = BlockingExecutor(label: "steno.reader")
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    private let source: any CaptureStream
    private let converter: AnalyzerInputConverter
    private var buffer: AudioBuffer
    private var ready: [AnalyzerInput] = []
    private var hasEnded = false

    private init(source: sending any CaptureStream, converter: sending AnalyzerInputConverter) {
        let format = source.format
        self.source = source
        self.converter = converter
        buffer = AudioBuffer(format: format, frameCapacity: max(1, format.sampleRate / 4))
    }

    /// The length that the source claims.
    var claimedDuration: MediaTime? { source.duration }

    /// The audio that came out so far.
    var duration: MediaTime {
        MediaTime(frames: converter.retimer.nextFrame, sampleRate: converter.analyzerFormat.sampleRate)
    }

    var events: [TimelineEvent] { source.events + converter.events }

    /// The next input, or nil at the end of the source.
    func next() throws(StenoError) -> AnalyzerInput? {
        while ready.isEmpty && !hasEnded {
            switch try source.read(into: &buffer) {
            case .frames:
                ready = try converter.convert(buffer)
            case .gap(let frames, let kind):
                try converter.skip(frames, kind: kind) { (input) throws(StenoError) in ready.append(input) }
            case .nothing, .notice:
                break
            case .end:
                hasEnded = true
                ready = try converter.finish()
            }
        }
        return ready.isEmpty ? nil : ready.removeFirst()
    }

    /// - Parameter open: called on the thread that may block.
    static func open(
        _ open: @escaping @Sendable () throws(StenoError) -> sending any CaptureStream, for module: any SpeechModule,
        options: AnalyzerInputConverter.Options
    ) async throws(StenoError) -> StreamInputs {
        try await Opener().open(open, for: module, options: options)
    }

    private actor Opener {
        private let executor = BlockingExecutor(label: "steno.opener")
        nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

        func open(
            _ open: @Sendable () throws(StenoError) -> sending any CaptureStream, for module: any SpeechModule,
            options: AnalyzerInputConverter.Options
        ) throws(StenoError) -> StreamInputs {
            let source = try open()
            let converter = try AnalyzerInputConverter.converter(
                compatibleWith: [module], considering: source.format, resampler: SoxrResamplerFactory(),
                options: options)
            return StreamInputs(source: source, converter: converter)
        }
    }
}

/// The inputs as the sequence that an analyzer takes.
struct StreamInputSequence: AsyncSequence, Sendable {
    typealias Element = AnalyzerInput
    typealias Failure = StenoError

    let inputs: StreamInputs

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(inputs: inputs) }

    struct AsyncIterator: AsyncIteratorProtocol {
        let inputs: StreamInputs

        mutating func next() async throws(StenoError) -> AnalyzerInput? { try await inputs.next() }

        mutating func next(isolation: isolated (any Actor)?) async throws(StenoError) -> AnalyzerInput? {
            try await inputs.next()
        }
    }
}
