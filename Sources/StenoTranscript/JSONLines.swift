import FoundationEssentials
public import StenoAudio

/// JSON Lines: each segment on a line of its own, as in ``JSONWriter``. ``JSONLinesReader`` reads back equal segments
/// under the same conditions.
public struct JSONLinesWriter: TranscriptWriter {
    public init() {}

    public mutating func begin() -> String { "" }
    public mutating func append(_ segment: TranscriptSegment) -> String { json(segment) + "\n" }
    public mutating func end(_ transcript: Transcript) -> String { "" }
}

public enum JSONLinesReader {
    /// The segments in the order of the file. A last line that a crash cut off is left out.
    ///
    /// - Throws: ``StenoError`` `malformedTranscript` with the line that is not a segment.
    public static func read(_ bytes: some Sequence<UInt8>) throws(StenoError) -> [TranscriptSegment] {
        let lines = lines(of: bytes)
        var segments: [TranscriptSegment] = []
        for (index, line) in lines.enumerated() where !line.allSatisfy(isBlank) {
            do {
                let record: SegmentRecord = try decode(Data(line), at: "line \(index + 1)")
                segments.append(record.segment)
            } catch {
                // Only the last line has nothing behind it that ends it.
                guard index == lines.count - 1, !segments.isEmpty else { throw error }
            }
        }
        return segments
    }
}
