import Foundation
import StenoAnalysis
import StenoAudio
import StenoTranscript
import Testing

/// Law F3: what a writer emits its reader reads back, equal. Law F1, case 089: after every piece.
@Suite struct RoundTripTests {
    private static let options = [
        CueOptions(), CueOptions(charactersPerLine: 7, linesPerCue: 1), CueOptions(linesPerCue: 3),
    ]

    /// Writes random transcripts and hands over what stands in the file after each piece.
    private func afterEachPiece(
        _ format: TranscriptFormat, count: Int = 500,
        check: (_ file: String, _ written: Transcript, _ options: CueOptions) throws -> Void
    ) rethrows {
        var random = SeededGenerator(state: 7)
        for round in 0..<count {
            let transcript = random.transcript()
            let options = Self.options[round % Self.options.count]
            var writer = format.makeWriter(cueOptions: options)
            var (file, segments) = (writer.begin(), [TranscriptSegment]())
            if format != .json { try check(file, Transcript(), options) }
            for segment in transcript.segments {
                file += writer.append(segment)
                segments.append(segment)
                if format != .json { try check(file, Transcript(segments: segments), options) }
            }
            file += writer.end(transcript)
            try check(file, transcript, options)
        }
    }

    @Test func webVTT() throws {
        try afterEachPiece(.webVTT) { file, transcript, options in
            let cues = transcript.cues(options: options)
            let read = try WebVTTReader.read(file.utf8)
            #expect(read == cues)
            expectValidWebVTT(file, cueCount: cues.count)
        }
    }

    @Test func subRip() throws {
        try afterEachPiece(.subRip) { file, transcript, options in
            let read = try SubRipReader.read(file.utf8)
            #expect(read == transcript.cues(options: options))
        }
    }

    @Test func json() throws {
        try afterEachPiece(.json) { file, transcript, _ in
            let read = try JSONReader.read(file.utf8)
            #expect(read == transcript)
        }
    }

    @Test func jsonLines() throws {
        try afterEachPiece(.jsonLines) { file, transcript, _ in
            let read = try JSONLinesReader.read(file.utf8)
            #expect(read == transcript.segments)
        }
    }

    @Test func plainText() {
        afterEachPiece(.text) { file, transcript, _ in
            // Text is equal when it is written the same.
            let lines = TextReader.read(file.utf8)
            var writer = TextWriter()
            let again = lines.map { writer.append(segment(0, 0, $0)) }.joined()
            #expect(Array(again.utf8) == Array(file.utf8))
            #expect(lines.count <= transcript.segments.count)
        }
    }

    /// Nothing is lost or said twice: the cues hold the words of the text, in order.
    @Test func cuesHoldTheWholeText() {
        var random = SeededGenerator(state: 8)
        for _ in 0..<800 {
            let transcript = random.transcript()
            for options in Self.options {
                func letters(_ text: String) -> [Unicode.Scalar] {
                    let cue = Cue(range: range(0, 0), lines: [text])
                    return cue?.text.unicodeScalars.filter { !$0.properties.isWhitespace } ?? []
                }
                let cues = transcript.cues(options: options)
                #expect(cues.flatMap { letters($0.text) } == transcript.segments.flatMap { letters($0.text) })
                #expect(cues.allSatisfy { $0.lines.count <= options.linesPerCue })
            }
        }
    }

    /// Readers take any bytes: valid files with bytes changed, cut out, doubled.
    @Test(arguments: TranscriptFormat.allCases) func damagedFilesAreReadOrRefused(format: TranscriptFormat) {
        var random = SeededGenerator(state: 9)
        for _ in 0..<1000 {
            var writer = format.makeWriter()
            var bytes = Array(writer.write(random.transcript()).utf8)
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let start = Int.random(in: 0...bytes.count, using: &random)
                let end = min(start + Int.random(in: 0...12, using: &random), bytes.count)
                let digits = Array("99999999999999999999e999:-->{[\"\n<&;".utf8).shuffled(using: &random).prefix(9)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes.removeSubrange(start..<end)
                case 1: bytes.insert(contentsOf: bytes[start..<end], at: start)
                case 2: bytes.replaceSubrange(start..<end, with: digits)
                default: for index in start..<end { bytes[index] = .random(in: 0...255, using: &random) }
                }
            }
            // What was read can be written again.
            var again = format.makeWriter()
            switch format {
            case .text: _ = TextReader.read(bytes)
            case .webVTT: _ = again.write(transcript(of: (try? WebVTTReader.read(bytes)) ?? []))
            case .subRip: _ = again.write(transcript(of: (try? SubRipReader.read(bytes)) ?? []))
            case .json: _ = (try? JSONReader.read(bytes)).map { again.write($0) }
            case .jsonLines: _ = (try? JSONLinesReader.read(bytes)).map { again.write(Transcript(segments: $0)) }
            }
        }
    }

    private func transcript(of cues: [Cue]) -> Transcript {
        Transcript(segments: cues.map { TranscriptSegment(range: $0.range, text: $0.text) })
    }

    /// An independent reader finds the same cues: ffmpeg, from WebVTT to SRT and back.
    @Test func ffmpegReadsTheSameCues() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "steno-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let transcript = Transcript(segments: [
            segment(0, 999, "Fish & chips"), segment(999, 59_999, "日本語の字幕 and a line that is much too long for one"),
            segment(3_599_999, 360_000_000, "שלום 👩‍👩‍👧‍👦"),
        ])
        for (from, to) in [(TranscriptFormat.webVTT, TranscriptFormat.subRip), (.subRip, .webVTT)] {
            let input = folder.appending(path: "in.\(from.rawValue)")
            let output = folder.appending(path: "out.\(to.rawValue)")
            var writer = from.makeWriter()
            try Data(writer.write(transcript).utf8).write(to: input)
            let ffmpeg = Process()
            ffmpeg.executableURL = URL(filePath: "/usr/bin/env")
            ffmpeg.arguments = ["ffmpeg", "-nostdin", "-v", "error", "-i", input.path, output.path]
            try ffmpeg.run()
            ffmpeg.waitUntilExit()
            #expect(ffmpeg.terminationStatus == 0)
            let bytes = try Data(contentsOf: output)
            let cues = try to == .webVTT ? WebVTTReader.read(bytes) : SubRipReader.read(bytes)
            #expect(cues == transcript.cues())
        }
    }

    /// Parsers that others wrote find the same cues in the most awkward texts: webvtt-py and srt, both from the Python
    /// package index. The one of srt refuses a file with anything that is not part of a cue.
    @Test(arguments: [TranscriptFormat.webVTT, .subRip]) func othersReadTheSameCues(format: TranscriptFormat) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "steno-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var random = SeededGenerator(state: 11)
        var written: [[Cue]] = []
        for index in 0..<300 {
            let transcript = random.transcript()
            let options = Self.options[index % Self.options.count]
            var writer = format.makeWriter(cueOptions: options)
            try Data(writer.write(transcript).utf8).write(to: folder.appending(path: "\(index)"))
            written.append(transcript.cues(options: options))
        }
        let program = """
            import html, json, srt, sys, webvtt
            def ms(time): return round(time.total_seconds() * 1000)
            def vtt(text):
                for cue in webvtt.from_string(text):
                    start, end = (((t.hours * 60 + t.minutes) * 60 + t.seconds) * 1000 + t.milliseconds
                                  for t in (cue.start_time, cue.end_time))
                    yield start, end, html.unescape(cue.text)
            def subrip(text):
                for cue in srt.parse(text): yield ms(cue.start), ms(cue.end), cue.content
            read = vtt if sys.argv[2] == "vtt" else subrip
            files = [open(f"{sys.argv[1]}/{i}", encoding="utf-8", newline="").read() for i in range(300)]
            json.dump([[list(cue) for cue in read(text)] for text in files], sys.stdout)
            """
        let python = Process()
        python.executableURL = URL(filePath: "/usr/bin/env")
        let packages = URL(filePath: #filePath).appending(path: "../../../.steno/python").standardized.path
        python.arguments = ["PYTHONPATH=\(packages)", "python3", "-c", program, folder.path, format.rawValue]
        let output = Pipe()
        python.standardOutput = output
        try python.run()
        let json = try output.fileHandleForReading.readToEnd() ?? Data()
        python.waitUntilExit()
        try #require(python.terminationStatus == 0)
        let read = try JSONDecoder().decode([[OthersCue]].self, from: json)
        #expect(written.joined().count > 500 && read.count == written.count)
        for (read, cues) in zip(read, written) {
            #expect(read == cues.map { OthersCue(start: $0.range.start, end: $0.range.end, text: $0.text) })
        }
    }
}

/// `[start, end, text]`, in milliseconds.
private struct OthersCue: Decodable, Equatable {
    var start, end: Int64
    var text: String

    init(start: MediaTime, end: MediaTime, text: String) {
        (self.start, self.end, self.text) = (start.converted(to: 1000).value, end.converted(to: 1000).value, text)
    }

    init(from decoder: any Decoder) throws {
        var list = try decoder.unkeyedContainer()
        (start, end) = try (list.decode(Int64.self), list.decode(Int64.self))
        text = try list.decode(String.self)
    }

    static func == (a: OthersCue, b: OthersCue) -> Bool {
        (a.start, a.end) == (b.start, b.end) && a.text.utf8.elementsEqual(b.text.utf8)
    }
}

/// The grammar of a WebVTT file as the W3C writes it, for files without identifiers, settings and notes, and with every
/// `&`, `<` and `>` escaped.
private func expectValidWebVTT(_ file: String, cueCount: Int) {
    let lines = file.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
    #expect(lines.prefix(2) == ["WEBVTT", ""])
    #expect(!file.unicodeScalars.contains("\r") && !file.unicodeScalars.contains("\0"))
    let timing = /(\d{2,}):([0-5]\d):([0-5]\d)\.(\d{3}) --> (\d{2,}):([0-5]\d):([0-5]\d)\.(\d{3})/
    var (rest, latest, count) = (lines.dropFirst(2), 0, 0)
    func time(_ hours: Substring, _ minutes: Substring, _ seconds: Substring, _ thousandths: Substring) -> Int {
        (((Int(hours) ?? 0) * 60 + (Int(minutes) ?? 0)) * 60 + (Int(seconds) ?? 0)) * 1000 + (Int(thousandths) ?? 0)
    }
    while rest != [""], let line = rest.popFirst() {
        guard let match = line.wholeMatch(of: timing)?.output else {
            Issue.record("no timing: \(line)")
            return
        }
        let start = time(match.1, match.2, match.3, match.4)
        let end = time(match.5, match.6, match.7, match.8)
        #expect(latest <= start && start < end)
        latest = end
        let text = rest.prefix { !$0.isEmpty }
        #expect(!text.isEmpty)
        for line in text {
            let scalars = line.unicodeScalars
            #expect(!scalars.contains("<") && !scalars.contains(">"))
            for index in scalars.indices where scalars[index] == "&" {
                #expect(["&amp;", "&lt;", "&gt;"].contains { scalars[index...].starts(with: $0.unicodeScalars) })
            }
        }
        rest = rest.dropFirst(text.count + 1)
        count += 1
    }
    #expect(count == cueCount)
}
