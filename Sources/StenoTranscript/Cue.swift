import StenoAnalysis
public import StenoAudio

/// A subtitle: a few lines of text and when they are on the screen.
public struct Cue: Sendable, Hashable {
    /// Whole milliseconds when made by a ``CueMaker`` or a reader.
    public let range: MediaTimeRange
    /// At least one; none is blank, none has a control character, and white space is single spaces.
    public let lines: [String]

    public var text: String { lines.joined(separator: "\n") }

    /// Nil when no text is left.
    ///
    /// - Parameter lines: White space and control characters in them become single spaces; blank lines are left out.
    public init?(range: MediaTimeRange, lines: [String]) {
        self.range = range
        self.lines = lines.map(collapsed).filter { !$0.unicodeScalars.allSatisfy(\.properties.isWhitespace) }
        if self.lines.isEmpty { return nil }
    }
}

/// How text is cut into cues.
///
/// The defaults are the general limits of the Netflix Timed Text Style Guide: 2 lines of 42 characters, 7 seconds. Its
/// limits for Chinese, Japanese and Korean are narrower, 16 characters or less.
public struct CueOptions: Sendable, Hashable {
    /// Characters as a reader sees them; below 1 counts as 1.
    public var charactersPerLine: Int
    /// Below 1 counts as 1.
    public var linesPerCue: Int
    /// A cue ends before the word that would make it longer. A single word keeps its time, however long.
    public var maximumDuration: MediaTime

    public init(
        charactersPerLine: Int = 42, linesPerCue: Int = 2,
        maximumDuration: MediaTime = MediaTime(value: 7, timescale: 1)
    ) {
        self.charactersPerLine = charactersPerLine
        self.linesPerCue = linesPerCue
        self.maximumDuration = maximumDuration
    }
}

/// Cuts segments into cues, one segment after the other.
///
/// A cue starts with its first word and ends with its last. Times are rounded once, to whole milliseconds; every cue
/// lasts at least 1 ms and starts no earlier than the one before ends, so what has no time of its own is moved on.
public struct CueMaker: Sendable {
    public let options: CueOptions
    /// Where the last cue ended, in milliseconds.
    private var end: Int64 = 0

    public init(options: CueOptions = CueOptions()) { self.options = options }

    /// The cues of the next segment. Words without a time get one as in
    /// ``Swift/Array/withTimesFilled(in:)``; a segment without words, or whose words do not spell its text, shares its
    /// time among its text by length.
    public mutating func cues(for segment: TranscriptSegment) -> [Cue] {
        var cues: [Cue] = []
        var lines: [String] = []
        var range = segment.range
        for piece in pieces(of: segment) {
            let width = lines.last.map { $0.count + (piece.followsSpace ? 1 : 0) + piece.text.count } ?? .max
            let fits = width <= options.charactersPerLine
            let isFull = !fits && lines.count >= options.linesPerCue
            if !lines.isEmpty, isFull || piece.range.end - range.start > options.maximumDuration {
                if let cue = next(range, lines) { cues.append(cue) }
                lines = []
            }
            if lines.isEmpty { range = piece.range }
            range = MediaTimeRange(start: range.start, end: piece.range.end)
            if lines.isEmpty || !fits {
                lines.append(piece.text)
            } else {
                lines[lines.count - 1] += (piece.followsSpace ? " " : "") + piece.text
            }
        }
        if let cue = next(range, lines) { cues.append(cue) }
        return cues
    }

    private mutating func next(_ range: MediaTimeRange, _ lines: [String]) -> Cue? {
        let start = max(range.start.converted(to: 1000).value, end)
        let last = max(range.end.converted(to: 1000).value, start + 1)
        let cue = Cue(
            range: MediaTimeRange(
                start: MediaTime(value: start, timescale: 1000), end: MediaTime(value: last, timescale: 1000)),
            lines: lines)
        if cue != nil { end = last }
        return cue
    }

    /// The segment's words, in pieces no longer than a line.
    private func pieces(of segment: TranscriptSegment) -> [Piece] {
        let limit = max(options.charactersPerLine, 1)
        var words = segment.words
        let spelled = spelling(of: words, in: segment.text)
        let texts = spelled ?? tokens(of: segment.text).map { (text: $0, followsSpace: true) }
        if spelled == nil { words = texts.map { TranscribedWord($0.text) } }

        var pieces: [Piece] = []
        for (word, spelled) in zip(words.withTimesFilled(in: segment.range), texts) where !spelled.text.isEmpty {
            let range = word.range ?? segment.range
            let parts = spelled.text.count <= limit ? [spelled.text] : spelled.text.chunks(of: limit)
            for (index, (part, range)) in zip(parts, range.divided(by: parts.map(\.count))).enumerated() {
                pieces.append(Piece(text: part, range: range, followsSpace: spelled.followsSpace && index == 0))
            }
        }
        return pieces
    }

    private struct Piece {
        var text: String
        var range: MediaTimeRange
        var followsSpace: Bool
    }
}

extension Transcript {
    /// The final text as cues.
    public func cues(options: CueOptions = CueOptions()) -> [Cue] {
        var maker = CueMaker(options: options)
        return segments.flatMap { maker.cues(for: $0) }
    }
}

/// How each word is written in the text, and whether white space stands before it; nil when the words, white space
/// aside, are not exactly the text. Not every language puts spaces between words.
private func spelling(of words: [TranscribedWord], in text: String) -> [(text: String, followsSpace: Bool)]? {
    guard !words.isEmpty else { return nil }
    var rest = text.unicodeScalars[...]
    var spelled: [(text: String, followsSpace: Bool)] = []
    for word in words {
        var (written, followsSpace) = (String.UnicodeScalarView(), false)
        for scalar in word.text.unicodeScalars where !isBreak(scalar) {
            let unspaced = rest.drop(while: isBreak)
            if unspaced.startIndex > rest.startIndex {
                if written.isEmpty { followsSpace = true } else { written.append(" ") }
            }
            guard unspaced.first == scalar else { return nil }
            written.append(scalar)
            rest = unspaced.dropFirst()
        }
        spelled.append((String(written), followsSpace))
    }
    return rest.allSatisfy(isBreak) ? spelled : nil
}

/// White space at which a line may break, and control characters, which no subtitle can hold. By scalar: a combining
/// mark behind a space is text.
private func isBreak(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "\u{21}"..."\u{7E}": false
    // No-break spaces hold words together. A byte order mark inside a text is nothing.
    case "\u{A0}", "\u{2007}", "\u{202F}": false
    case "\u{FEFF}": true
    default: scalar.properties.isWhitespace || scalar.properties.generalCategory == .control
    }
}

func tokens(of text: String) -> [String] {
    text.unicodeScalars.split(whereSeparator: isBreak).map { String($0) }
}

/// The text on one line.
func collapsed(_ text: String) -> String { tokens(of: text).joined(separator: " ") }

extension String {
    fileprivate func chunks(of count: Int) -> [String] {
        var (rest, chunks): (Substring, [String]) = (self[...], [])
        while !rest.isEmpty {
            chunks.append(String(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        return chunks
    }
}
