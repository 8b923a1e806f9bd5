import StenoAudio
import StenoTranscript
import Testing

@Suite struct WebVTTTests {
    private func written(_ segments: TranscriptSegment...) -> String {
        var writer = WebVTTWriter()
        return writer.write(Transcript(segments: segments))
    }

    private func code(_ text: String) -> String? {
        do throws(StenoError) {
            _ = try WebVTTReader.read(text.utf8)
            return nil
        } catch {
            return error.message.contains("line 1") ? error.code.rawValue : nil
        }
    }

    @Test func textIsEscapedAndKeepsToItsLines() {
        #expect(
            written(segment(0, 1500, "a <b> & c --> d\n\n e"))
                == "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\na &lt;b&gt; &amp; c --&gt; d e\n\n")
        // A combining mark makes one character of the sign before it, and still it is that sign.
        #expect(written(segment(0, 1, "<\u{301}&\u{301}")).hasSuffix("\n&lt;\u{301}&amp;\u{301}\n\n"))
    }

    @Test(
        "Case 085: times are rounded once, and carry",
        arguments: [
            (9995, "00:00:01.000"), (599_996, "00:01:00.000"), (35_999_999, "01:00:00.000"), (9994, "00:00:00.999"),
            (3_600_000_0000, "1000:00:00.000"),
        ] as [(Int64, String)])
    func rounding(tenthsOfMilliseconds: Int64, clock: String) {
        let end = MediaTime(value: tenthsOfMilliseconds, timescale: 10_000)
        #expect(
            written(TranscriptSegment(range: MediaTimeRange(start: .zero, end: end), text: "x"))
                .contains("00:00:00.000 --> \(clock)\n"))
    }

    @Test func overlappingSegmentsMakeCuesThatDoNot() throws {
        let text = written(segment(0, 1000, "a"), segment(500, 700, "b"), segment(600, 2000, "c"))
        #expect(
            try WebVTTReader.read(text.utf8).map(\.range) == [range(0, 1000), range(1000, 1001), range(1001, 2000)])
    }

    @Test(arguments: ["\n", "\r\n", "\r"]) func whatOthersWriteIsRead(newline: String) throws {
        let lines = [
            "\u{FEFF}WEBVTT - a title", "Kind: captions", "", "STYLE", "::cue { color: red }", "", "REGION", "id:x", "",
            "NOTE a note", "of two lines", "", "intro", "00:01.000 --> 00:02.500 align:start line:0",
            "<v Ann>Hi &amp; <i>bye</i>", "&lt;two&gt;&#33;&nope;", "", "123:00:00.000\t-->\t123:00:00.001", "late", "",
            "00:00:05.000 --> nonsense", "lost", "", "00:00:09.000 --> 00:00:08.000", "backwards",
            "00:00:09.000 --> 00:00:10.000", "no blank line before", "", "00:00:11.000 --> 00:00:12.000", "", "stray",
            "", "99999999999999999999:00:00.000 --> 99999999999999999999:00:01.000", "far", "",
        ]
        #expect(
            try WebVTTReader.read(lines.joined(separator: newline).utf8) == [
                Cue(range: range(1000, 2500), lines: ["Hi & bye", "<two>!&nope;"]),
                Cue(range: range(442_800_000, 442_800_001), lines: ["late"]),
                Cue(range: range(9000, 9000), lines: ["backwards"]),
                Cue(range: range(9000, 10_000), lines: ["no blank line before"]),
            ])
    }

    @Test func whatIsNoWebVTTIsRefused() throws {
        for text in ["", "\n", "1\n00:00:00,000 --> 00:00:01,000\nx\n", "WEBVTTX", "{}"] {
            #expect(code(text) == "transcript.malformed")
        }
        #expect(try WebVTTReader.read("WEBVTT".utf8).isEmpty)
    }
}

@Suite struct SubRipTests {
    @Test func cuesAreCountedFromOne() {
        var writer = SubRipWriter()
        #expect(
            writer.write(Transcript(segments: [segment(0, 1000, "a --> b"), segment(3_599_999, 3_600_001, "<i>")]))
                == "1\n00:00:00,000 --> 00:00:01,000\na --> b\n\n2\n00:59:59,999 --> 01:00:00,001\n<i>\n\n")
    }

    @Test(arguments: ["\n", "\r\n", "\r"]) func whatOthersWriteIsRead(newline: String) throws {
        let lines = [
            "\u{FEFF}", "7", "00:00:01,000 --> 00:00:02,500 X1:10", "one", "", "still one", "3", "",
            "100:00:00.5 --> 100:00:01", "no counter", "", "9", "00:00:60,000 --> 00:61:00,000", "carried",
            "00:00:05,000 --> 00:00:06,000", "", "10", "00:00:07,000 --> 00:00:08,000", "", "",
        ]
        #expect(
            try SubRipReader.read(lines.joined(separator: newline).utf8) == [
                Cue(range: range(1000, 2500), lines: ["one", "still one", "3"]),
                Cue(range: range(360_000_500, 360_001_000), lines: ["no counter"]),
                Cue(range: range(60_000, 3_660_000), lines: ["carried", "00:00:05,000 --> 00:00:06,000"]),
            ])
        #expect(try SubRipReader.read([]).isEmpty)
    }

    @Test func whatIsNoSubRipIsRefused() {
        let error = #expect(throws: StenoError.self) { try SubRipReader.read("\n\nWEBVTT\n".utf8) }
        #expect(error?.code == .malformedTranscript)
        #expect(error?.message.hasPrefix("line 3 ") == true)
    }
}
