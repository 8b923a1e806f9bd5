import FoundationEssentials
import StenoAnalysis
public import StenoAudio

/// JSON: one object that holds the whole transcript, but for what is volatile.
///
///     {"segments": [{"start", "end", "text", "words": [{"text", "start", "end", "confidence", "estimated"}],
///                    "alternatives", "language", "languageConfidence", "source"}],
///      "events": [{"kind", "start", "end", "detail"}], "duration", "language"}
///
/// Times are seconds, rounded once to 100 ns, at which frames of 8 and 16 kHz are exact. ``JSONReader`` reads back an
/// equal transcript when its times are multiples of that (up to seven years) and its confidences are finite. What is
/// unknown is absent: `start` and `end` of a word, `confidence`, `alternatives`, a segment's `language`,
/// `languageConfidence` (how likely that was, where it was detected) and `source`; `estimated` stands only where it is true;
/// an unknown `language` of the whole is null.
public struct JSONWriter: TranscriptWriter {
    private var isFirst = true

    public init() {}

    public mutating func begin() -> String { #"{"segments":["# }

    public mutating func append(_ segment: TranscriptSegment) -> String {
        defer { isFirst = false }
        return (isFirst ? "\n" : ",\n") + json(segment)
    }

    public mutating func end(_ transcript: Transcript) -> String {
        let rest = [
            #""events":"# + array(transcript.events.map(json)),
            #""duration":"# + json(seconds(transcript.duration)),
            #""language":"# + json(transcript.language),
        ]
        return "\n],\n" + rest.joined(separator: ",\n") + "}\n"
    }
}

public enum JSONReader {
    /// A transcript as ``JSONWriter`` wrote it. Only the segments, each with start, end and text, must be there; other
    /// keys are ignored, and a range that ends before its start is empty.
    ///
    /// - Throws: ``StenoError`` `malformedTranscript`, with the line or the place in the object.
    public static func read(_ bytes: some Sequence<UInt8>) throws(StenoError) -> Transcript {
        let bytes = withoutByteOrderMark(bytes)
        let space = bytes.prefix { isBlank($0) || $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
        guard bytes.dropFirst(space.count).first == UInt8(ascii: "{") else {
            let line = lines(of: space).count
            throw StenoError(.malformedTranscript, "line \(line) does not begin a JSON object")
        }
        let record: TranscriptRecord = try decode(Data(bytes), at: "the file")
        var transcript = Transcript(
            segments: record.segments.map(\.segment), events: (record.events ?? []).map(\.event),
            language: record.language)
        transcript.duration = record.duration?.time ?? transcript.segments.map(\.range.end).max() ?? .zero
        return transcript
    }
}

// MARK: - Writing

// JSONEncoder encodes every value, but forgets the order of keys (or sorts "end" before "start"), and knows no
// objects that are written piece by piece; so the objects around the values are put together here.

/// A segment on one line.
func json(_ segment: TranscriptSegment) -> String {
    object([
        ("start", json(seconds(segment.range.start))),
        ("end", json(seconds(segment.range.end))),
        ("text", json(segment.text)),
        ("words", array(segment.words.map(json))),
        ("alternatives", segment.alternatives.isEmpty ? nil : json(segment.alternatives)),
        ("language", segment.language.map(json)),
        ("languageConfidence", json(confidence: segment.languageConfidence)),
        ("source", segment.source.map(json)),
    ])
}

private func json(_ word: TranscribedWord) -> String {
    object([
        ("text", json(word.text)),
        ("start", word.range.map { json(seconds($0.start)) }),
        ("end", word.range.map { json(seconds($0.end)) }),
        ("confidence", json(confidence: word.confidence)),
        ("estimated", word.isTimeEstimated ? "true" : nil),
    ])
}

private func json(_ event: TimelineEvent) -> String {
    object([
        ("kind", json(event.kind.rawValue)),
        ("start", json(seconds(event.range.start))),
        ("end", json(seconds(event.range.end))),
        ("detail", json(event.detail)),
    ])
}

private func object(_ members: [(key: String, value: String?)]) -> String {
    "{" + members.compactMap { member in member.value.map { "\"\(member.key)\":\($0)" } }.joined(separator: ",") + "}"
}

private func array(_ elements: [String]) -> String { "[" + elements.joined(separator: ",") + "]" }

private let encoder: JSONEncoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return encoder
}()

/// A string, a finite number, or an array of strings; the encoder fails at none of them.
private func json(_ value: some Encodable) -> String {
    (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? "null"
}

private func json(confidence: Float?) -> String? { confidence.flatMap { $0.isFinite ? json($0) : nil } }

private let timescale: Int32 = 10_000_000

private func seconds(_ time: MediaTime) -> Double {
    Double(time.converted(to: timescale).value) / Double(timescale)
}

// MARK: - Reading

/// - Parameter place: What is decoded, for the message.
func decode<T: Decodable>(_ data: Data, at place: String) throws(StenoError) -> T {
    do {
        return try JSONDecoder().decode(T.self, from: data)
    } catch {
        throw StenoError(.malformedTranscript, "\(place) is not a transcript: \(reason(error))", underlying: error)
    }
}

private func reason(_ error: any Error) -> String {
    guard let error = error as? DecodingError else { return "\(error)" }
    switch error {
    case .keyNotFound(let key, let context): return "\(path(context.codingPath)) has no \(key.stringValue)"
    case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
        return "\(path(context.codingPath)): \(context.debugDescription)"
    @unknown default: return "\(error)"
    }
}

private func path(_ keys: [any CodingKey]) -> String {
    keys.isEmpty ? "the object" : keys.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
}

/// Seconds as they stand in the file, checked to be a time that can be calculated with.
private struct Seconds: Decodable {
    let time: MediaTime

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let value = (try container.decode(Double.self) * Double(timescale)).rounded()
        guard let value = Int64(exactly: value), value.magnitude <= 1 << 61 else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no media is that long")
        }
        time = MediaTime(value: value, timescale: timescale)
    }
}

private func range(_ start: Seconds, _ end: Seconds) -> MediaTimeRange {
    MediaTimeRange(start: start.time, end: max(start.time, end.time))
}

private struct TranscriptRecord: Decodable {
    var segments: [SegmentRecord]
    var events: [EventRecord]?
    var duration: Seconds?
    var language: String?
}

struct SegmentRecord: Decodable {
    private var start, end: Seconds
    private var text: String
    private var words: [WordRecord]?
    private var alternatives: [String]?
    private var language: String?
    private var languageConfidence: Float?
    private var source: String?

    var segment: TranscriptSegment {
        TranscriptSegment(
            range: range(start, end), text: text, words: (words ?? []).map(\.word), alternatives: alternatives ?? [],
            language: language, languageConfidence: languageConfidence, source: source)
    }
}

private struct WordRecord: Decodable {
    var text: String
    var start, end: Seconds?
    var confidence: Float?
    var estimated: Bool?

    var word: TranscribedWord {
        var word = TranscribedWord(text, confidence: confidence, isTimeEstimated: estimated ?? false)
        if let start, let end { word.range = range(start, end) }
        return word
    }
}

private struct EventRecord: Decodable {
    var kind: String
    var start, end: Seconds
    var detail: String?

    var event: TimelineEvent {
        TimelineEvent(.init(rawValue: kind), range: range(start, end), detail: detail ?? "")
    }
}
