import Foundation
import StenoAnalysis
import StenoAudio
import StenoTranscript
import Testing

@Suite struct JSONTests {
    private let transcript = Transcript(
        segments: [
            TranscriptSegment(
                range: range(500, 2000), text: "And so",
                words: [
                    TranscribedWord("And", range: range(500, 1000), confidence: 0.9),
                    TranscribedWord("so", range: range(1000, 1100), isTimeEstimated: true), TranscribedWord("unknown"),
                ],
                alternatives: ["Hand so"], language: "en", languageConfidence: 0.75),
            segment(2000, 3000, "x"),
        ],
        events: [TimelineEvent(.overrun, range: range(0, 20), detail: "lost")], duration: ms(11_000), language: "en")

    private func message(_ text: String) -> String {
        do throws(StenoError) {
            _ = try JSONReader.read(text.utf8)
            return "read"
        } catch {
            #expect(error.code == .malformedTranscript)
            return error.message
        }
    }

    @Test func keysStandInTheOrderOfReading() {
        var writer = JSONWriter()
        #expect(
            writer.write(transcript) == """
                {"segments":[
                {"start":0.5,"end":2,"text":"And so","words":[{"text":"And","start":0.5,"end":1,"confidence":0.9},\
                {"text":"so","start":1,"end":1.1,"estimated":true},{"text":"unknown"}],"alternatives":["Hand so"],"language":"en",\
                "languageConfidence":0.75},
                {"start":2,"end":3,"text":"x","words":[]}
                ],
                "events":[{"kind":"overrun","start":0,"end":0.02,"detail":"lost"}],
                "duration":11,
                "language":"en"}

                """)
    }

    @Test("Case 083: any text comes back, from another reader too")
    func anyText() throws {
        let text = "a\nb\t\u{1}\"\\ C:\\new\\table \u{2028}\u{7F}\u{0}"
        var writer = JSONWriter()
        let json = writer.write(Transcript(segments: [segment(0, 1, text)]))
        #expect(try JSONReader.read(json.utf8).text == text)
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        #expect((object?["segments"] as? [[String: Any]])?.first?["text"] as? String == text)
    }

    @Test func everyFrameOf8And16kHzIsExact() throws {
        let frames = [0, 1, 3, 15_999, 24 * 3600 * 16_000 + 1, 365 * 24 * 3600 * 16_000 + 7] as [Int64]
        for rate in [8000, 16_000] {
            let times = frames.map { MediaTime(frames: $0, sampleRate: rate) }
            let segments = times.map { TranscriptSegment(range: MediaTimeRange(start: $0, end: $0), text: "x") }
            var writer = JSONWriter()
            let read = try JSONReader.read(writer.write(Transcript(segments: segments)).utf8)
            #expect(read.segments.map(\.range.start) == times)
        }
    }

    @Test func whatIsAbsentIsUnknown() throws {
        let read = try JSONReader.read(
            #" {"segments": [{"start": 2, "end": 1, "text": "b", "more": 1}, {"start": 0, "end": 1.5, "text": "a"}]}"#
                .utf8)
        #expect(
            read == Transcript(segments: [segment(0, 1500, "a"), segment(2000, 2000, "b")], duration: ms(2000)))
    }

    @Test func theErrorSaysWhere() {
        #expect(message("") == "line 1 does not begin a JSON object")
        #expect(message("\n\r\n WEBVTT") == "line 3 does not begin a JSON object")
        #expect(message(#"{"segments": [{"start": 0, "text": "a"}]}"#).contains("segments.0 has no end"))
        #expect(message(#"{"segments": [{"start": 0, "end": 1, "text": 5}]}"#).contains("segments.0.text"))
        #expect(
            message(#"{"segments": [{"start": 0, "end": 1e300, "text": ""}]}"#).contains("segments.0.end: no media"))
        #expect(
            message(#"{"segments": [{"start": -9e11, "end": 9e11, "text": ""}]}"#).contains(
                "segments.0.start: no media"))
        #expect(message(#"{"segments": ["#).contains("not valid JSON"))
        #expect(message(#"{"segments":"# + String(repeating: "[", count: 100_000)) != "read")
    }
}

@Suite struct JSONLinesTests {
    @Test func aLineThatACrashCutOffIsLeftOut() throws {
        let line = #"{"start":0,"end":1,"text":"a","words":[]}"# + "\n"
        #expect(try JSONLinesReader.read((line + "\r\n" + line + line.dropLast(9)).utf8).count == 2)
        #expect(try JSONLinesReader.read([]).isEmpty)
    }

    @Test func aWrongLineIsNamed() {
        let line = #"{"start":0,"end":1,"text":"a","words":[]}"# + "\n"
        for text in [line + "\nnonsense\n" + line, line + "\n{}\n"] {
            let error = #expect(throws: StenoError.self) { try JSONLinesReader.read(text.utf8) }
            #expect(error?.message.hasPrefix("line 3 ") == true)
        }
        #expect(throws: StenoError.self) { try JSONLinesReader.read("nonsense".utf8) }
    }
}
