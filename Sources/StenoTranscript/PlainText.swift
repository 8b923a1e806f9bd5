/// Plain text: one segment on each line, white space and control characters in it as single spaces.
public struct TextWriter: TranscriptWriter {
    private let showsTimes: Bool

    /// - Parameter showsTimes: whether each line begins with `[start --> end]`, for people to read.
    public init(showsTimes: Bool = false) { self.showsTimes = showsTimes }

    public mutating func begin() -> String { "" }

    public mutating func append(_ segment: TranscriptSegment) -> String {
        let line = collapsed(segment.text)
        if line.isEmpty { return "" }
        return (showsTimes ? "[\(cueTiming(segment.range, decimalSeparator: "."))] " : "") + line + "\n"
    }

    public mutating func end(_ transcript: Transcript) -> String { "" }
}

public enum TextReader {
    /// The lines that are not blank: the text of each segment as ``TextWriter`` wrote it without times. Everything is text.
    public static func read(_ bytes: some Sequence<UInt8>) -> [String] {
        lines(of: bytes).map { collapsed(String(decoding: $0, as: UTF8.self)) }.filter { !$0.isEmpty }
    }
}
