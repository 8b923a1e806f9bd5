import StenoAnalysis
import StenoAudio
import StenoConversion
import StenoSoxr

/// Opens and reads a source on a thread that may block, and converts it as the analyzer asks for it.
actor StreamInputs {
    private let executor = BlockingExecutor(label: "steno.reader")
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    private final class Stream {
        let source: any CaptureStream
        let converter: AnalyzerInputConverter
        var buffer: AudioBuffer

        init(source: any CaptureStream, converter: AnalyzerInputConverter) {
            self.source = source
            self.converter = converter
            buffer = AudioBuffer(format: source.format, frameCapacity: max(1, source.format.sampleRate / 4))
        }
    }

    private let open: @Sendable () throws(StenoError) -> sending any CaptureStream
    private let module: any SpeechModule
    private let options: AnalyzerInputConverter.Options
    private let claimed = Lock<MediaTime?>(nil)
    private var stream: Stream?
    private var ready: [AnalyzerInput] = []
    private var hasEnded = false
    /// Nil where the audio is one section.
    private var cutter: SectionCutter?

    /// - Parameter open: called with the first ``next()``, on the thread that may block: a pipe may be silent for long.
    init(
        _ open: @escaping @Sendable () throws(StenoError) -> sending any CaptureStream, for module: any SpeechModule,
        options: AnalyzerInputConverter.Options
    ) {
        self.open = open
        self.module = module
        self.options = options
    }

    /// The length that the source claims; nil before it is open. Waits for nothing.
    nonisolated var claimedDuration: MediaTime? { claimed.withLock { $0 } }

    /// The audio that came out so far.
    var duration: MediaTime {
        guard let converter = stream?.converter else { return .zero }
        return MediaTime(frames: converter.retimer.nextFrame, sampleRate: converter.analyzerFormat.sampleRate)
    }

    var events: [TimelineEvent] { stream.map { $0.source.events + $0.converter.events } ?? [] }

    /// Opens the source, if it is not; returns the rate of the inputs.
    @discardableResult
    func openSource() throws(StenoError) -> Int { try openedStream().converter.analyzerFormat.sampleRate }

    /// To be called once, before any input is taken: divides the audio into sections of at most `duration` seconds, the
    /// first of which begins at `start`.
    func divide(into duration: Double, from start: MediaTime) throws(StenoError) {
        cutter = SectionCutter(sampleRate: try openSource(), duration: duration, start: start)
    }

    /// Goes on behind a section. Returns where the next one starts; nil at the end of the source.
    func beginSection() -> MediaTime? {
        guard cutter?.beginSection() == true else { return nil }
        return cutter?.startTime
    }

    /// The next input, or nil at the end of the section.
    func next() throws(StenoError) -> AnalyzerInput? {
        while true {
            switch cutter?.next() {
            case nil: return try nextOfSource()
            case .input(let input): return input
            case .sectionEnd: return nil
            case .needsInput:
                // What is left out before the first section may be hours.
                if Task.isCancelled { return nil }
                cutter?.append(try nextOfSource())
            }
        }
    }

    private func nextOfSource() throws(StenoError) -> AnalyzerInput? {
        let stream = try openedStream()
        while ready.isEmpty && !hasEnded {
            switch try stream.source.read(into: &stream.buffer) {
            case .frames:
                ready = try stream.converter.convert(stream.buffer)
            case .gap(let frames, let kind):
                try stream.converter.skip(frames, kind: kind) { (input) throws(StenoError) in ready.append(input) }
            case .nothing, .notice:
                break
            case .end:
                hasEnded = true
                ready = try stream.converter.finish()
            }
        }
        return ready.isEmpty ? nil : ready.removeFirst()
    }

    private func openedStream() throws(StenoError) -> Stream {
        if let stream { return stream }
        let source = try open()
        let converter = try AnalyzerInputConverter.converter(
            compatibleWith: [module], considering: source.format, resampler: SoxrResamplerFactory(), options: options)
        let duration = source.duration
        claimed.withLock { $0 = duration }
        let opened = Stream(source: source, converter: converter)
        stream = opened
        return opened
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
