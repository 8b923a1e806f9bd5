public import StenoAnalysis
public import StenoAudio

/// A stretch of final text.
public struct TranscriptSegment: Sendable, Hashable {
    public var range: MediaTimeRange
    /// The most likely text.
    public var text: String
    /// The words of ``text`` in order; empty where the engine gave none.
    public var words: [TranscribedWord]
    /// Other readings, most likely first.
    public var alternatives: [String]
    /// The language spoken, as a BCP 47 code; nil when unknown.
    public var language: String?
    /// How likely the engine found ``language`` to be, from 0 to 1; nil where it was told, or does not say.
    public var languageConfidence: Float?
    /// Which of several sources on one timeline it came from; nil where there is one.
    public var source: String?

    public init(
        range: MediaTimeRange, text: String, words: [TranscribedWord] = [], alternatives: [String] = [],
        language: String? = nil, languageConfidence: Float? = nil, source: String? = nil
    ) {
        self.range = range
        self.text = text
        self.words = words
        self.alternatives = alternatives
        self.language = language
        self.languageConfidence = languageConfidence
        self.source = source
    }

    public init(_ result: TranscriptionResult) {
        self.init(
            range: result.range, text: result.text, words: result.words, alternatives: result.alternatives,
            language: result.language, languageConfidence: result.languageConfidence, source: result.source)
    }
}

/// All that was said: merges the results of one transcriber, of which some are volatile, into one text.
///
/// Applying a result costs the same however long the transcript is.
public struct Transcript: Sendable, Hashable {
    /// The final text in time order, none of it empty. What is here never changes.
    public private(set) var segments: [TranscriptSegment]
    /// What may still change, in time order and without overlap.
    public private(set) var volatile: [TranscriptionResult] = []
    /// What happened to the audio.
    public var events: [TimelineEvent]
    /// The length of the audio. Final results extend it; set it where more is known.
    public var duration: MediaTime
    /// The language as a BCP 47 code: that of the first final result that has one, unless set before.
    public var language: String?

    /// - Parameter segments: Kept in order of their start; those without text are left out.
    public init(
        segments: [TranscriptSegment] = [], events: [TimelineEvent] = [], duration: MediaTime = .zero,
        language: String? = nil
    ) {
        self.segments = segments.filter { !$0.text.isEmpty }.sorted { $0.range.start < $1.range.start }
        self.events = events
        self.duration = duration
        self.language = language
    }

    /// Takes the next result.
    ///
    /// It replaces the volatile results of its source that overlap it or lie within it; an empty one takes them back. A final one
    /// then joins ``segments``. A volatile one that says nothing beyond what is final already is ignored.
    public mutating func apply(_ result: TranscriptionResult) {
        volatile.removeAll {
            $0.source == result.source && (result.range.overlaps($0.range) || result.range.contains($0.range))
        }
        if result.isFinal {
            duration = max(duration, result.range.end)
            guard !result.isEmpty else { return }
            language = language ?? result.language
            let segment = TranscriptSegment(result)
            segments.insert(segment, at: Self.position(of: segment.range, in: segments, by: \.range))
        } else if !result.isEmpty,
            segments.last(where: { $0.source == result.source }).map({ $0.range.end < result.range.end }) ?? true
        {
            volatile.insert(result, at: Self.position(of: result.range, in: volatile, by: \.range))
        }
    }

    /// Behind the last element that starts no later. Results come in order, so the search begins at the end.
    private static func position<T>(of range: MediaTimeRange, in list: [T], by key: (T) -> MediaTimeRange) -> Int {
        (list.lastIndex { key($0).start <= range.start } ?? -1) + 1
    }

    /// The final text, its segments joined by a space.
    ///
    /// The space is there in every language: where one is written without spaces, join ``segments`` yourself.
    public var text: String { segments.lazy.map(\.text).joined(separator: " ") }
}
