import CWhisper
import Glibc
public import StenoAnalysis
public import StenoAudio

/// Transcribes speech with whisper.cpp: whole files, or live.
///
/// Live (``Options/streaming``), results are volatile first, and final when two decodes in a row say the same or the
/// speaker pauses; only what the detector takes for speech is decoded.
///
/// Whole files have final results only. Without a detector it decodes what whisper.cpp's own command line decodes, with
/// the same parameters but for a shorter context: windows of 30 s that begin where the last text ended. With one, only
/// speech is decoded and nothing is recognized in silence: it is packed into windows of up to 30 s, which are cut at
/// pauses and decoded side by side, and the times are put right again. Memory does not grow with the length of the audio.
///
/// A gap in the audio of up to one second is decoded as silence. At a longer one, without a detector, the audio before is
/// decoded to its end and the audio after begins anew, without the text before as context.
public final class WhisperTranscriber: TranscriberModule {
    /// How to decode. The defaults are those of whisper.cpp's command line, but for `threads`, `wordTimes` and
    /// `contextLimit`.
    public struct Options: Sendable, Hashable {
        /// What is spoken, as a BCP 47 tag; nil to find out, at the first speech; results then say how likely that
        /// is.
        public var language: String?
        /// Whether the text shall be English whatever is spoken.
        public var translate = false
        /// Threads for one decode; nil for one on each processor, and live for as many as are good beside what else runs.
        public var threads: Int?
        /// Hypotheses that are followed at temperature 0, from 1 (greedy) to 8.
        public var beamSize = 5
        /// Attempts at each temperature above 0, from 1 to 8.
        public var bestOf = 5
        /// Where sampling starts, from 0 to 1.
        public var temperature: Float = 0
        /// By how much the temperature rises after a failed decode; 0 for no second try.
        public var temperatureIncrement: Float = 0.2
        /// A text with less entropy than this is a loop, and its decode failed.
        public var entropyThreshold: Float = 2.4
        /// A text with a mean log probability below this failed.
        public var logProbabilityThreshold: Float = -1
        /// A failed text with more than this probability of no speech is silence.
        public var noSpeechThreshold: Float = 0.6
        /// Text that comes before: names and spellings to expect. At most 223 tokens. With a detector, each window has it.
        public var initialPrompt = ""
        /// Whether results have words, with times and confidence.
        public var wordTimes = true
        /// How much of the text so far is the context of the next window, in tokens, from 0 to 223; packed windows have
        /// none. The engine's memory and time grow with it: its logits take 0.2 MB for each token, twice.
        public var contextLimit = 64
        /// Windows of a whole file that are decoded at once, from 1 to 16, with a detector; nil for two. They share
        /// `threads`, of which each has one at least; and each takes memory as a session does. With another number a word
        /// may differ: whisper.cpp's search draws lots, and other threads round sums otherwise. Equal options give equal
        /// results.
        public var parallelWindows: Int?
        /// How to decode live; nil for whole files.
        public var streaming: Streaming?

        public init(language: String? = nil) { self.language = language }
    }

    /// How to decode live: the unfinished speech again and again, each time with more of it.
    public struct Streaming: Sendable, Hashable {
        /// How much new speech makes another decode worth its while, from 0.1 to 5 s. On a machine that cannot keep up
        /// with it a decode hears whatever came during the last one.
        public var step: Duration
        /// Speech without a pause is decoded again for at most so long, from 6 to 28 s; what is still not final then
        /// becomes final, but for the words at the end (law A5).
        public var longestWindow: Duration
        /// Hypotheses that are followed, from 1 to 8.
        public var beamSize: Int
        /// Whether text is told before it is final.
        public var reportsVolatileResults = true
        /// Whether there is a decode at every step, however long decodes take, so that the results depend neither on the
        /// speed of the machine nor on how the audio is cut. For tests, and for audio that is not live.
        public var keepsEveryStep = false

        public init(step: Duration, longestWindow: Duration = .seconds(12), beamSize: Int = 1) {
            self.step = step
            self.longestWindow = longestWindow
            self.beamSize = beamSize
        }

        /// Text as soon as the engine has it; takes most of a processor with the smallest model.
        public static let lowLatency = Streaming(step: .milliseconds(350))
        /// Half of the work, and some tenths of a second later.
        public static let balanced = Streaming(step: .milliseconds(700))
        /// Final text after some seconds, from longer windows and a wider search.
        public static let accurate = Streaming(step: .seconds(1.5), longestWindow: .seconds(20), beamSize: 5)
    }

    public let model: WhisperModel
    public let detector: SileroModel?
    public let options: Options
    public let output = ModuleOutput<TranscriptionResult>()

    /// Nil to detect it.
    let language: SpokenLanguage?
    let threads: Int
    let parallelWindows: Int
    let prompt: [Int32]

    /// - Throws: ``StenoError`` with `module.unsupportedLanguage`, `module.unsupportedOption` (translation with a model
    ///   for English only, a prompt that is too long) or `invalidArgument` (a number out of its range).
    public init(
        model: WhisperModel, detector: SileroModel? = nil, options: Options = Options()
    ) throws(StenoError) {
        func check(_ isValid: Bool, _ expectation: String) throws(StenoError) {
            if !isValid { throw StenoError(.invalidArgument, "Options of WhisperTranscriber: \(expectation).") }
        }
        try check(
            (0...223).contains(options.contextLimit), "contextLimit is from 0 to 223, not \(options.contextLimit)")
        if let streaming = options.streaming {
            let (step, window) = (streaming.step / .seconds(1), streaming.longestWindow / .seconds(1))
            try check(detector != nil, "streaming needs a detector")
            try check((0.1...5).contains(step), "step is from 0.1 to 5 s, not \(step) s")
            try check((6...28).contains(window), "longestWindow is from 6 to 28 s, not \(window) s")
            try check((1...8).contains(streaming.beamSize), "beamSize is from 1 to 8, not \(streaming.beamSize)")
        }
        try check((1...8).contains(options.beamSize), "beamSize is from 1 to 8, not \(options.beamSize)")
        try check((1...8).contains(options.bestOf), "bestOf is from 1 to 8, not \(options.bestOf)")
        try check((0...1).contains(options.temperature), "temperature is from 0 to 1, not \(options.temperature)")
        let step = options.temperatureIncrement
        try check(step == 0 || (0.01...1).contains(step), "temperatureIncrement is 0 or from 0.01 to 1, not \(step)")
        // A machine may offer more processors than a decode has use for.
        let threads = options.threads ?? min(max(sysconf(Int32(_SC_NPROCESSORS_ONLN)), 1), 64)
        try check((1...512).contains(threads), "threads is from 1 to 512, not \(threads)")
        let windows = options.parallelWindows ?? 2
        try check((1...16).contains(windows), "parallelWindows is from 1 to 16, not \(windows)")

        if options.translate && !model.isMultilingual {
            throw StenoError(
                .unsupportedOption, "The model \(model.path) is for English only and cannot translate.")
        }
        if let tag = options.language {
            language = try SpokenLanguage(tag: tag, among: model.languages, ofModelAt: model.path)
        } else {
            language = model.isMultilingual ? nil : SpokenLanguage(name: "en")
        }
        prompt = try Self.tokens(of: options.initialPrompt, model: model)
        self.model = model
        self.detector = detector
        self.options = options
        self.threads = threads
        parallelWindows = min(windows, threads)
    }

    public func assuming(language tag: String) throws(StenoError) -> any TranscriberModule {
        guard language == nil else { return self }
        var options = options
        options.language = tag
        return try WhisperTranscriber(model: model, detector: detector, options: options)
    }

    /// Whether a model knows a language, without loading it: for a program that wants to refuse before it records.
    /// Blocks: reads parts of the file.
    ///
    /// - Throws: `module.unsupportedLanguage` where it does not, and as ``WhisperModel/init(path:)``.
    public static func check(language tag: String, ofModelAt path: String) throws(StenoError) {
        let languages = SpokenLanguage.codes(vocabulary: try ModelFile.checkWhisper(path))
        _ = try SpokenLanguage(tag: tag, among: languages, ofModelAt: path)
    }

    public var capabilities: TranscriberCapabilities {
        var capabilities: TranscriberCapabilities = [.contextualStrings]
        if options.streaming?.reportsVolatileResults == true { capabilities.insert(.volatileResults) }
        if options.wordTimes { capabilities.formUnion([.wordTimes, .confidence]) }
        if model.isMultilingual { capabilities.formUnion([.languageDetection, .translation]) }
        return capabilities
    }

    public var compatibleAudioFormats: [AudioFormat] { Self.audioFormats }

    static let audioFormats = [SampleFormat.float32, .int16].map {
        AudioFormat(sampleRate: WhisperRecognizer.sampleRate, channelLayout: .mono, sampleFormat: $0)
    }

    public func makeRecognizer(_ session: RecognizerSession<TranscriptionResult>) throws -> any SpeechRecognizer {
        guard let detector else { return try WhisperRecognizer(self, session) }
        guard let streaming = options.streaming else {
            return try PackedRecognizer(self, detector: detector, session)
        }
        return try StreamRecognizer(self, streaming, detector: detector, session)
    }

    /// The prompt in tokens. Word by word, because the library's tokenizer recurses with the length of what it is given.
    private static func tokens(of prompt: String, model: WhisperModel) throws(StenoError) -> [Int32] {
        let limit = unsafe Int(whisper_n_text_ctx(model.context)) / 2 - 1
        var tokens: [Int32] = []
        for word in prompt.split(whereSeparator: \.isWhitespace) {
            var room = [Int32](repeating: 0, count: 256)
            let count = word.utf8.count < 256 ? unsafe whisper_tokenize(model.context, " \(word)", &room, 256) : -1
            guard count >= 0, tokens.count + Int(count) <= limit else {
                throw StenoError(.unsupportedOption, "The initial prompt has more than \(limit) tokens.")
            }
            tokens += room.prefix(Int(count))
        }
        return tokens
    }
}
