public import StenoAudio

/// Writes a transcript piece by piece, as its segments become final.
///
/// Each call returns the text that comes next in the file. After every piece the file is valid as it stands (law F1);
/// only of ``JSONWriter``, whose one object closes at the end, is it valid after ``end(_:)``.
public protocol TranscriptWriter: Sendable {
    /// What stands before the first segment.
    mutating func begin() -> String
    /// The next segment, in time order.
    mutating func append(_ segment: TranscriptSegment) -> String
    /// What is known only at the end: the events, duration and language of `transcript`. Its segments are not looked at.
    mutating func end(_ transcript: Transcript) -> String
}

extension TranscriptWriter {
    /// The whole file.
    public mutating func write(_ transcript: Transcript) -> String {
        var text = begin()
        for segment in transcript.segments { text += append(segment) }
        return text + end(transcript)
    }
}

/// The formats, by the usual extension of a file's name.
public enum TranscriptFormat: String, Sendable, Hashable, CaseIterable {
    case text = "txt"
    case webVTT = "vtt"
    case subRip = "srt"
    case json = "json"
    case jsonLines = "jsonl"

    /// - Parameter cueOptions: For the subtitle formats; the others have no cues.
    public func makeWriter(cueOptions: CueOptions = CueOptions()) -> any TranscriptWriter {
        switch self {
        case .text: TextWriter()
        case .webVTT: WebVTTWriter(cueOptions: cueOptions)
        case .subRip: SubRipWriter(cueOptions: cueOptions)
        case .json: JSONWriter()
        case .jsonLines: JSONLinesWriter()
        }
    }
}

extension StenoError.Code {
    /// A file is not a transcript of the format that was asked for.
    public static let malformedTranscript = StenoError.Code(rawValue: "transcript.malformed")
}
