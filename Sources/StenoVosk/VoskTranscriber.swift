import Foundation
public import StenoAnalysis
public import StenoAudio

/// Speech to text with Vosk, which streams by itself: small models, little delay, any CPU.
///
/// Each utterance ends at a pause and becomes one final result, whose range goes from its first word to its last.
/// Before that, volatile results hold the utterance so far. Any thread.
public final class VoskTranscriber: TranscriberModule {
    public struct Options: Sendable, Hashable {
        public enum VolatileResults: Sendable, Hashable {
            case off
            /// Text as soon as it is decoded.
            case text
            /// Text with words and their times, which libvosk has up to one second later than the text.
            case words
        }

        /// When a pause ends an utterance.
        public enum Endpointing: Sendable, Hashable {
            /// As the model's `conf/model.conf` says.
            case model
            /// After 0.75 times, 1.5 times and 4 times the model's delays. Needs a libvosk newer than 0.3.45.
            case short, long, veryLong
            /// Silence before any speech, silence after speech, and the longest utterance. Needs a libvosk newer
            /// than 0.3.45.
            case delays(noSpeech: Duration, afterSpeech: Duration, longest: Duration)
        }

        public var volatileResults = VolatileResults.text
        /// Whether results hold words with times.
        public var wordTimes = true
        /// How many other readings a final result holds at most. Above 0 libvosk gives no confidences.
        public var maximumAlternatives = 0
        public var endpointing = Endpointing.model
        /// Audio after which, at the next pause, libvosk gives back what it collected. Below the 10 minutes after which
        /// it does so by itself and loses what it has not decoded yet.
        package var recyclingInterval = Duration.seconds(480)

        public init() {}
    }

    public let model: VoskModel
    public let options: Options
    public let output = ModuleOutput<TranscriptionResult>()
    private let grammar = Lock(Grammar())

    /// The phrases of all sessions, with a number that tells a change.
    struct Grammar {
        var phrases: [String] = []
        /// As libvosk takes them; nil when there are none.
        var json: String?
        var version = 0
    }

    /// - Parameter contextualStrings: See ``setContextualStrings(_:)``.
    /// - Throws: ``StenoError`` with `unsupportedOption` for endpointing that this libvosk has not, `invalidArgument`
    ///   for a negative number of alternatives, and the codes of ``setContextualStrings(_:)``.
    public init(
        model: VoskModel, options: Options = Options(), contextualStrings: [String] = []
    ) throws(StenoError) {
        guard options.maximumAlternatives >= 0 else {
            throw StenoError(.invalidArgument, "\(options.maximumAlternatives) alternatives are less than none")
        }
        let isSupported =
            switch options.endpointing {
            case .model: true
            case .short, .long, .veryLong: unsafe model.functions.setEndpointerMode != nil
            case .delays: unsafe model.functions.setEndpointerDelays != nil
            }
        guard isSupported else {
            throw StenoError(
                .unsupportedOption,
                "this libvosk cannot change when an utterance ends; the model's conf/model.conf can, or a newer libvosk"
            )
        }
        self.model = model
        self.options = options
        if !contextualStrings.isEmpty { try setContextualStrings(contextualStrings) }
    }

    public var capabilities: TranscriberCapabilities {
        [.volatileResults, .wordTimes, .confidence, .alternatives, model.hasDynamicGraph ? .contextualStrings : []]
    }

    /// Mono at the model's own rate first, then the usual ones; libvosk resamples from any of them.
    public var compatibleAudioFormats: [AudioFormat] {
        let others = [16000, 48000, 44100, 8000].filter { $0 > model.sampleRate || model.takesLowerRates }
        let rates = [model.sampleRate] + others.filter { $0 != model.sampleRate }
        return rates.flatMap { rate in
            [SampleFormat.int16, .float32].map { AudioFormat(sampleRate: rate, channelCount: 1, sampleFormat: $0) }
        }
    }

    /// The phrases that are recognized; empty when all of the model's vocabulary is.
    public var contextualStrings: [String] { grammar.withLock { $0.phrases } }

    /// Restricts recognition to phrases, in running sessions too; an empty array lifts that.
    ///
    /// Vosk knows no hints: while there are phrases, nothing but these and parts of them is recognized. Other speech
    /// yields no text where the model has a word `[unk]` for it, and the most similar phrase where it has not. A session
    /// changes over at once between utterances, and else at the end of the one that is being spoken.
    ///
    /// - Throws: ``StenoError`` with `unsupportedOption` when the model cannot (``VoskModel/hasDynamicGraph``);
    ///   `invalidArgument` for a phrase without words, or naming the words that the model's vocabulary lacks.
    public func setContextualStrings(_ phrases: [String]) throws(StenoError) {
        guard model.hasDynamicGraph || phrases.isEmpty else {
            throw StenoError(.unsupportedOption, "the model in \(model.path) has one fixed graph and takes no phrases")
        }
        let split = phrases.map { $0.split(whereSeparator: \.isWhitespace).map(String.init) }
        guard !split.contains([]) else { throw StenoError(.invalidArgument, "a phrase has at least one word") }
        let unknown = Set(split.joined()).filter { !model.contains(word: $0) }.sorted()
        guard unknown.isEmpty else {
            throw StenoError(
                .invalidArgument,
                "the vocabulary of the model in \(model.path) lacks: \(unknown.joined(separator: ", "))")
        }
        var lines = split.map { $0.joined(separator: " ") }
        if model.contains(word: VoskOutput.unknownWord) { lines.append(VoskOutput.unknownWord) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        let json = (try? encoder.encode(lines)).map { String(decoding: $0, as: UTF8.self) }
        grammar.withLock {
            $0 = Grammar(phrases: phrases, json: phrases.isEmpty ? nil : json, version: $0.version + 1)
        }
    }

    public func makeRecognizer(
        _ session: RecognizerSession<TranscriptionResult>
    ) throws -> any SpeechRecognizer {
        try VoskRecognizer(transcriber: self, session: session)
    }

    var currentGrammar: Grammar { grammar.withLock { $0 } }
}
