import StenoAudio

/// Joins final text that comes a few words at a time into phrases, for subtitles and for lines that people read.
///
/// A phrase ends with a sentence, before a pause, where another source or language begins, and before it would outgrow
/// one cue of ``CueOptions``' defaults.
public struct PhraseJoiner: Sendable {
    private static let longest = CueOptions().charactersPerLine * CueOptions().linesPerCue
    private static let longestDuration = CueOptions().maximumDuration
    private static let pause = MediaTime(value: 1, timescale: 1)

    /// The phrase that may still grow.
    public private(set) var open: TranscriptSegment?

    public init() {}

    /// Takes the next segment; returns what is complete by then, at most two phrases.
    public mutating func append(_ segment: TranscriptSegment) -> [TranscriptSegment] {
        var complete: [TranscriptSegment] = []
        if let open, !Self.belongs(segment, to: open) {
            complete.append(open)
            self.open = nil
        }
        var phrase = segment
        if let open {
            phrase = open
            phrase.range = MediaTimeRange(start: open.range.start, end: segment.range.end)
            phrase.text += " " + segment.text
            // Words without the others' would not spell the text.
            phrase.words = open.words.isEmpty || segment.words.isEmpty ? [] : open.words + segment.words
            phrase.alternatives = []
        }
        open = phrase
        if let last = phrase.text.last, ".?!。？！…".contains(last) { complete += finish().map { [$0] } ?? [] }
        return complete
    }

    /// Ends the phrase.
    public mutating func finish() -> TranscriptSegment? {
        defer { open = nil }
        return open
    }

    private static func belongs(_ segment: TranscriptSegment, to open: TranscriptSegment) -> Bool {
        segment.source == open.source && segment.language == open.language
            && segment.range.start - open.range.end < pause
            && segment.range.end - open.range.start <= longestDuration
            && open.text.count + 1 + segment.text.count <= longest
    }
}

extension Transcript {
    /// The final text in phrases, whatever pieces it came in.
    public var phrases: [TranscriptSegment] {
        var joiner = PhraseJoiner()
        let complete = segments.flatMap { joiner.append($0) }
        return complete + (joiner.finish().map { [$0] } ?? [])
    }
}
