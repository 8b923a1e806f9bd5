public import StenoAnalysis
public import StenoAudio

/// Finds speech with the Silero network: each stretch as a final result when it ends, and as a volatile one, every 0.1 s
/// of audio, while it goes on.
///
/// The network hears 32 ms at a time, so that is how exact the times are.
public final class SileroDetector: SpeechDetectorModule {
    public struct Options: Sendable, Hashable {
        /// The probability of speech at which a stretch begins, from 0.05 to 0.95. Lower finds more.
        public var threshold: Float = 0.5
        /// What is added before the speech, from 0 to 2 s.
        public var preRoll: Duration = .milliseconds(128)
        /// How long no speech must be heard for a stretch to end; that time is part of it. From 0 to 2 s.
        public var padding: Duration = .milliseconds(384)
        public var reportsVolatileResults = true

        public init() {}
    }

    public let model: SileroModel
    public let options: Options
    public let output = ModuleOutput<SpeechDetection>()
    let gate: SpeechGate

    /// - Throws: ``StenoError`` with `invalidArgument` for a number out of its range.
    public init(model: SileroModel, options: Options = Options()) throws(StenoError) {
        let durations = Duration.zero...Duration.seconds(2)
        guard (0.05...0.95).contains(options.threshold), durations.contains(options.preRoll),
            durations.contains(options.padding)
        else {
            throw StenoError(
                .invalidArgument,
                "Options of SileroDetector: threshold is from 0.05 to 0.95, not \(options.threshold); preRoll and padding "
                    + "are from 0 to 2 s, not \(options.preRoll) and \(options.padding).")
        }
        self.model = model
        self.options = options
        func chunks(_ duration: Duration) -> Int { Int((duration / .milliseconds(32)).rounded()) }
        gate = SpeechGate(beginning: options.threshold, before: chunks(options.preRoll), after: chunks(options.padding))
    }

    public var compatibleAudioFormats: [AudioFormat] { WhisperTranscriber.audioFormats }

    public func makeRecognizer(_ session: RecognizerSession<SpeechDetection>) throws -> any SpeechRecognizer {
        try DetectorRecognizer(self, session)
    }
}

private final class DetectorRecognizer: SpeechRecognizer {
    private static let rate = WhisperRecognizer.sampleRate
    private let session: RecognizerSession<SpeechDetection>
    private let filter: SpeechFilter
    private let reportsVolatileResults: Bool
    /// The stretch that is not final, in frames of the session.
    private var speech: Range<Int64>?
    /// Where the last volatile result ended.
    private var told = Int64.min
    private var nextFrame: Int64?

    init(_ detector: SileroDetector, _ session: RecognizerSession<SpeechDetection>) throws(StenoError) {
        self.session = session
        filter = try SpeechFilter(detector.model, gate: detector.gate)
        reportsVolatileResults = detector.options.reportsVolatileResults
    }

    func accept(_ input: AnalyzerInput) throws {
        let start = input.bufferStartTime?.frames(at: Self.rate) ?? nextFrame ?? 0
        if let end = nextFrame, start > end { try finish() }
        let samples = input.floats
        for first in stride(from: 0, to: samples.count, by: Self.rate) {
            if session.isCancelled { throw WindowDecoder.cancelled }
            let part = samples[first..<min(first + Self.rate, samples.count)]
            nextFrame = start + Int64(part.endIndex)
            try filter.filter(part, pass: take)
        }
        guard let speech else { return }
        if !filter.isOpen {
            end()
        } else if reportsVolatileResults, speech.upperBound >= max(told, speech.lowerBound) + Int64(Self.rate / 10) {
            told = speech.upperBound
            session.send(SpeechDetection(range: MediaTimeRange(speech, sampleRate: Self.rate), isFinal: false))
        }
    }

    func finalize(through time: MediaTime) throws { try finish() }

    func finish() throws {
        try filter.finish(pass: take)
        end()
    }

    private func take(_ samples: ArraySlice<Float>, framesBeforeEnd: Int) {
        let start = (nextFrame ?? 0) - Int64(framesBeforeEnd)
        if let speech, speech.upperBound != start { end() }
        speech = (speech?.lowerBound ?? start)..<start + Int64(samples.count)
    }

    private func end() {
        guard let speech else { return }
        session.send(SpeechDetection(range: MediaTimeRange(speech, sampleRate: Self.rate), isFinal: true))
        self.speech = nil
    }
}
