import StenoAnalysis
import StenoAudio
import StenoTranscript

/// SplitMix64: the same numbers at each run.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

func ms(_ milliseconds: Int64) -> MediaTime { MediaTime(value: milliseconds, timescale: 1000) }

func range(_ start: Int64, _ end: Int64) -> MediaTimeRange { MediaTimeRange(start: ms(start), end: ms(end)) }

func segment(_ start: Int64, _ end: Int64, _ text: String, words: [TranscribedWord] = []) -> TranscriptSegment {
    TranscriptSegment(range: range(start, end), text: text, words: words)
}

/// What breaks naive writers and readers.
private let nasty = [
    "word", "Hello,", "a", "1", "00:00:01,000", "-->", "--", ">", "<b>", "</v", "&", "&amp;", "&lt;x", "&#10;", "\"",
    "\\", "'",
    "\\n", "\n", "\n\n", "\r\n", "\r", "\t", "\u{0}", "\u{1}", "\u{1B}[0m", "\u{7F}", "\u{85}", "\u{2028}", "\u{2029}",
    "\u{A0}",
    "\u{FEFF}", "\u{FFFD}", "\u{FFFF}", "\u{200E}", "\u{301}", "e\u{301}", "é", "日本語の字幕", "한국어", "שלום", "مرحبا", "👩‍👩‍👧‍👦",
    "🇩🇪",
    "WEBVTT", "NOTE", "STYLE", "{\"", "}", "[", "]", ",", "\u{1F}", "\u{10FFFF}",
    "Donaudampfschifffahrtsgesellschaftskapitänsmütze",
]

extension SeededGenerator {
    mutating func text(maxParts: Int = 12) -> String {
        (0..<Int.random(in: 1...maxParts, using: &self)).map { _ in
            nasty[Int.random(in: 0..<nasty.count, using: &self)] + (Bool.random(using: &self) ? " " : "")
        }.joined()
    }

    /// In frames of 16 kHz.
    mutating func range(from earliest: Int64) -> MediaTimeRange {
        let start = earliest + Int64.random(in: 0...40_000, using: &self)
        let end = start + (Bool.random(using: &self) ? Int64.random(in: 0...400_000, using: &self) : 0)
        return MediaTimeRange(
            start: MediaTime(frames: start, sampleRate: 16_000), end: MediaTime(frames: end, sampleRate: 16_000))
    }

    mutating func word(_ text: String, in range: MediaTimeRange) -> TranscribedWord {
        TranscribedWord(
            text, range: Bool.random(using: &self) ? self.range(from: range.start.value) : nil,
            confidence: Bool.random(using: &self) ? Float.random(in: 0...1, using: &self) : nil,
            isTimeEstimated: Bool.random(using: &self))
    }

    mutating func segment(from earliest: Int64) -> TranscriptSegment {
        let (range, text) = (self.range(from: earliest), self.text())
        // Words that spell the text, words that do not, or none.
        let texts =
            switch Int.random(in: 0..<3, using: &self) {
            case 0: text.split(whereSeparator: \.isWhitespace).map { String($0) }
            case 1: (0..<3).map { _ in self.text(maxParts: 2) }
            default: [String]()
            }
        return TranscriptSegment(
            range: range, text: text, words: texts.map { word($0, in: range) },
            alternatives: Bool.random(using: &self) ? [self.text()] : [],
            language: Bool.random(using: &self) ? "en" : nil,
            languageConfidence: Bool.random(using: &self) ? Float.random(in: 0...1, using: &self) : nil,
            source: Bool.random(using: &self) ? "mic" : nil)
    }

    mutating func transcript() -> Transcript {
        var segments: [TranscriptSegment] = []
        for _ in 0..<Int.random(in: 0...5, using: &self) {
            segments.append(segment(from: segments.last?.range.end.value ?? 0))
        }
        let event = TimelineEvent(.overrun, range: range(from: 0), detail: text())
        return Transcript(
            segments: segments, events: Bool.random(using: &self) ? [event] : [],
            duration: segments.last?.range.end ?? .zero, language: Bool.random(using: &self) ? "de-AT" : nil)
    }
}
