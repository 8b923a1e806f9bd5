public import StenoAudio

/// SubRip (SRT). ``SubRipReader`` reads back exactly the cues that ``CueMaker`` makes of the segments.
///
/// The format has no escapes: text goes out as it is, and a player may take `<i>` in it for a tag.
public struct SubRipWriter: TranscriptWriter {
    private var maker: CueMaker
    private var count = 0

    public init(cueOptions: CueOptions = CueOptions()) { maker = CueMaker(options: cueOptions) }

    public mutating func begin() -> String { "" }

    public mutating func append(_ segment: TranscriptSegment) -> String {
        var text = ""
        for cue in maker.cues(for: segment) {
            count += 1
            text += "\(count)\n\(cueTiming(cue.range, decimalSeparator: ","))\n\(cue.text)\n\n"
        }
        return text
    }

    public mutating func end(_ transcript: Transcript) -> String { "" }
}

public enum SubRipReader {
    /// The cues in the order of the file, their text as it stands there. A cue begins with its timing after a blank
    /// line, with or without a counter between them; blank lines inside its text are left out, and so is a cue without
    /// text. An empty file has no cues.
    ///
    /// - Throws: ``StenoError`` `malformedTranscript` when the file holds text before any cue.
    public static func read(_ bytes: some Sequence<UInt8>) throws(StenoError) -> [Cue] {
        let lines = lines(of: bytes)
        var cues: [Cue] = []
        var timing: MediaTimeRange?
        var text: [String] = []
        func finishCue() {
            if let range = timing, let cue = Cue(range: range, lines: text) { cues.append(cue) }
            text = []
        }
        var index = 0
        var isAfterBlank = true
        while index < lines.count {
            let line = lines[index]
            let hasCounter = isCounter(line) && index + 1 < lines.count
            let candidate = hasCounter ? index + 1 : index
            if isAfterBlank, let range = cueTiming(lines[candidate]) {
                finishCue()
                timing = range
                index = candidate
                isAfterBlank = false
            } else {
                isAfterBlank = line.allSatisfy(isBlank)
                guard timing != nil || isAfterBlank else {
                    throw StenoError(
                        .malformedTranscript,
                        "line \(index + 1) is neither a counter nor a timing, with which an SRT file begins")
                }
                if !isAfterBlank { text.append(String(decoding: line, as: UTF8.self)) }
            }
            index += 1
        }
        finishCue()
        return cues
    }

    private static func isCounter(_ line: ArraySlice<UInt8>) -> Bool {
        let digits = line.filter { !isBlank($0) }
        return !digits.isEmpty && digits.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains)
    }
}
