public import StenoAudio

/// A word of a result. One value holds all that is known of it, so that text, times and confidence cannot come apart.
public struct TranscribedWord: Sendable, Hashable {
    /// The word with its punctuation, without surrounding white space.
    public var text: String
    /// Where it was spoken; nil where the engine does not say.
    public var range: MediaTimeRange?
    /// From 0 to 1; nil where the engine does not say.
    public var confidence: Float?
    /// True when ``range`` was not measured but filled in between its neighbours.
    public var isTimeEstimated: Bool

    public init(_ text: String, range: MediaTimeRange? = nil, confidence: Float? = nil, isTimeEstimated: Bool = false) {
        self.text = text
        self.range = range
        self.confidence = confidence
        self.isTimeEstimated = isTimeEstimated
    }
}

/// What a module says about a stretch of the timeline.
public protocol SpeechModuleResult: Sendable {
    /// The audio that the result covers.
    var range: MediaTimeRange { get }
    /// Final results never change, never overlap, and come in time order. A volatile one is replaced by a later result
    /// that covers its range.
    var isFinal: Bool { get }
    /// Whether it says nothing: among volatile results, it takes back what was said for its range.
    var isEmpty: Bool { get }
    /// The module's results are final up to, not including, this time. The core fills it in.
    var resultsFinalizationTime: MediaTime { get set }
    /// Whether a reader that has not seen the volatile result `earlier` need not see it any more.
    func replaces(_ earlier: Self) -> Bool
    /// The same result within `bounds`, with everything inside it in order (laws A4, F4).
    func clamped(to bounds: MediaTimeRange) -> Self
    /// A volatile result that takes back `range`.
    static func revocation(of range: MediaTimeRange) -> Self
}

extension SpeechModuleResult {
    public func replaces(_ earlier: Self) -> Bool { range.contains(earlier.range) }
}

/// Text for a stretch of the timeline.
public struct TranscriptionResult: SpeechModuleResult, Hashable {
    public var range: MediaTimeRange
    public var isFinal: Bool
    /// The most likely text, without surrounding white space.
    public var text: String
    /// The words of ``text`` in order; empty where the engine gives none.
    public var words: [TranscribedWord]
    /// Other readings, most likely first, without ``text`` itself; empty where the engine gives none.
    public var alternatives: [String]
    /// The language spoken, as a BCP 47 code; nil when unknown.
    public var language: String?
    /// How likely the engine found ``language`` to be, from 0 to 1; nil where it was told, or does not say.
    public var languageConfidence: Float?
    /// Which of several sources on one timeline it came from; nil where there is one. Replaces only results of the same.
    public var source: String?
    public var resultsFinalizationTime: MediaTime

    public init(
        range: MediaTimeRange, text: String, words: [TranscribedWord] = [], alternatives: [String] = [],
        language: String? = nil, languageConfidence: Float? = nil, isFinal: Bool
    ) {
        self.range = range
        self.isFinal = isFinal
        self.text = text
        self.words = words
        self.alternatives = alternatives
        self.language = language
        self.languageConfidence = languageConfidence
        self.resultsFinalizationTime = .zero
    }

    public var isEmpty: Bool { text.isEmpty }

    public func replaces(_ earlier: Self) -> Bool { source == earlier.source && range.contains(earlier.range) }

    public static func revocation(of range: MediaTimeRange) -> TranscriptionResult {
        TranscriptionResult(range: range, text: "", isFinal: false)
    }
}
