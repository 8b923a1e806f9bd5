import ChildProcesses
import Foundation
import Steno
import TestSupport
import Testing

/// The program as its users meet it. One at a time: a decode wants the processor for itself.
@Suite("transcribe", .serialized, .timeLimit(.minutes(5)))
struct TranscribeTests {
    let folder = try? Folder()

    /// Less than 0.3 s of speech: shorter than what any engine takes, and quick to decode.
    func yes() throws -> String {
        try #require(folder).file("yes.wav") { ["espeak-ng", "-v", "en-us", "-s", "300", "-w", $0, "yes"] }
    }

    // MARK: Output

    @Test func linesWithTimesForPeople() throws {
        let run = try transcribe(jfk)
        #expect(run.status == 0)
        #expect(run.errors == "")
        expectTheSample(run.text.replacing(/\[[^\]]*\]/, with: ""))
        let lines = run.text.split(separator: "\n")
        #expect(!lines.isEmpty)
        for line in lines { #expect(line.contains(/^\[00:00:\d\d\.\d{3} --> 00:00:\d\d\.\d{3}\] \S/)) }
    }

    @Test func plainText() throws {
        let run = try transcribe("--format", "txt", jfk)
        #expect(run.status == 0)
        expectTheSample(TextReader.read(run.output).joined(separator: " "))
    }

    @Test func webVTT() throws {
        let run = try transcribe("--format=vtt", jfk)
        #expect(run.status == 0)
        try check(WebVTTReader.read(run.output))
    }

    @Test func subRip() throws {
        let run = try transcribe("--format", "srt", jfk)
        #expect(run.status == 0)
        try check(SubRipReader.read(run.output))
    }

    private func check(_ cues: [Cue]) throws {
        expectTheSample(cues.map(\.text).joined(separator: " "))
        #expect(try #require(cues.last).range.end <= MediaTime(value: 11, timescale: 1))
        for (cue, next) in zip(cues, cues.dropFirst()) { #expect(cue.range.end <= next.range.start) }
    }

    @Test func json() throws {
        let output = try #require(folder).path("talk.json")
        let run = try transcribe("--format", "json", "--output", output, jfk)
        #expect(run.status == 0)
        #expect(run.output.isEmpty)
        let transcript = try JSONReader.read(Data(contentsOf: URL(fileURLWithPath: output)))
        expectTheSample(transcript.text)
        #expect(transcript.duration == MediaTime(value: 176_000, timescale: 16000))
        #expect(transcript.language == "en")
        for segment in transcript.segments {
            #expect(segment.words.map(\.text).joined(separator: " ") == segment.text)
            for word in segment.words {
                let range = try #require(word.range)
                #expect(segment.range.contains(range))
                #expect((0...1).contains(try #require(word.confidence)))
            }
        }
    }

    @Test func jsonLines() throws {
        let run = try transcribe("--format", "jsonl", jfk)
        #expect(run.status == 0)
        expectTheSample(try JSONLinesReader.read(run.output).map(\.text).joined(separator: " "))
    }

    @Test func aProgressLineOnlyOnATerminal() throws {
        let command = arguments([jfk]).map { "'\($0)'" }.joined(separator: " ")
        let terminal = try run(["script", "--quiet", "--return", "--command", command, "/dev/null"])
        #expect(terminal.status == 0)
        #expect(terminal.text.contains("] 100 %  11/11 s"))
        #expect(terminal.text.contains("\r\u{1B}[K["))
    }

    /// Which words the model hears in synthetic speech is its business; that they are Korean and in their place is ours.
    @Test func aSecondBackEnd() throws {
        let file = try #require(folder).file("ko.wav") { ["espeak-ng", "-v", "ko", "-s", "130", "-w", $0, korean] }
        let run = try run([productPath("transcribe"), "--backend", "vosk", "--model", voskModel, "--format=json", file])
        #expect(run.status == 0)
        let transcript = try JSONReader.read(run.output)
        #expect(transcript.text.contains(/\p{Hangul}/))
        let words = transcript.segments.flatMap(\.words)
        #expect(words.count > 1)
        var end = MediaTime.zero
        for word in words {
            let range = try #require(word.range)
            #expect(range.start >= end && range.end <= transcript.duration)
            end = range.end
        }
    }

    // MARK: Input

    @Test(arguments: [
        ("stereo.flac", ["-ar", "44100", "-ac", "2"]), ("sample.mp3", ["-ar", "44100"]),
        ("opus.ogg", ["-c:a", "libopus", "-ar", "48000"]), ("vorbis.ogg", ["-c:a", "libvorbis", "-ar", "32000"]),
        ("slow.wav", ["-ar", "22050"]),
    ])
    func formats(_ name: String, _ options: [String]) throws {
        let file = try #require(folder).file(name) { ["ffmpeg", "-v", "error", "-i", jfk] + options + [$0] }
        let run = try transcribe("--format", "txt", file)
        #expect(run.status == 0)
        expectTheSample(run.text)
    }

    @Test func standardInput() throws {
        let file = try transcribe("--format", "txt", "-", input: jfk)
        expectTheSample(file.text)
        let pipe = try run(["sh", "-c", #"cat "$0" | "$@""#, jfk] + arguments(["--format", "txt", "-"]))
        #expect(pipe.status == 0)
        #expect(pipe.text == file.text)
    }

    @Test(arguments: [
        ("s16le,48000,2", ["-e", "signed", "-b", "16", "-r", "48000", "-c", "2"]),
        ("s24be,22050,1", ["-e", "signed", "-b", "24", "-B", "-r", "22050"]),
        ("f32le,44100,3", ["-e", "float", "-b", "32", "-r", "44100", "-c", "3"]),
        ("mulaw,8000,1", ["-e", "mu-law", "-r", "8000"]),
    ])
    func samplesWithoutAHeader(_ format: String, _ options: [String]) throws {
        let file = try #require(folder).file("samples") { ["sox", jfk, "-t", "raw"] + options + [$0] }
        let whole = try transcribe("--raw", format, "--format", "json", file)
        try #require(whole.status == 0, "\(whole.errors)")
        let transcript = try JSONReader.read(whole.output)
        expectTheSample(transcript.text)
        #expect(transcript.duration == MediaTime(value: 11, timescale: 1))
        guard format.hasPrefix("s16le") else { return }
        let pipe = try run(
            ["sh", "-c", #"cat "$0" | "$@""#, file] + arguments(["--raw=\(format)", "--format", "json", "-"]))
        try #require(pipe.status == 0, "\(pipe.errors)")
        let piped = try JSONReader.read(pipe.output)
        #expect(piped.text == transcript.text && piped.duration == transcript.duration)
    }

    @Test(arguments: ["two  spaces (1).wav", "ü—日本.wav", "a'b\"c.wav", "line\nbreak.wav"])
    func names(_ name: String) throws {
        let file = try #require(folder).path(name)
        try FileManager.default.moveItem(atPath: yes(), toPath: file)
        let output = try #require(folder).path("text of " + name)
        let run = try transcribe("--format", "txt", "--output", output, file)
        #expect(run.status == 0)
        #expect(try String(contentsOfFile: output, encoding: .utf8).lowercased().contains("yes"))
    }

    @Test func aNameWithALeadingDash() throws {
        let name = "-dash.wav"
        try FileManager.default.moveItem(atPath: yes(), toPath: try #require(folder).path(name))
        let command = ["sh", "-c", #"cd "$0" && exec "$@""#, try #require(folder).url.path]
        let run = try run(command + arguments(["--format", "txt", "--", name]))
        #expect(run.status == 0)
        #expect(run.text.lowercased().contains("yes"))
    }

    @Test func severalFilesInOneCall() throws {
        let file = try yes()
        let run = try transcribe("--format", "jsonl", file, file)
        #expect(run.status == 0)
        let segments = try JSONLinesReader.read(run.output)
        #expect(segments.count == 2)
        #expect(segments.first == segments.last)
    }

    // MARK: Little or nothing to hear

    @Test func aShortWord() throws {
        let file = try yes()
        for detector in [[], ["--no-detector"]] {
            let run = try run(arguments(["--format", "txt"] + detector + [file]))
            #expect(run.status == 0)
            #expect(run.text.lowercased().contains("yes"))
        }
    }

    @Test(arguments: [
        ["trim", "0", "10"], ["trim", "0", "0"], ["synth", "5", "pinknoise", "vol", "-40dB"],
    ])
    func nothingIsRecognizedWhereNothingIsSaid(_ effects: [String]) throws {
        let file = try #require(folder).file("nothing.wav") {
            ["sox", "-n", "-r", "16000", "-c", "1", "-b", "16", $0] + effects
        }
        let run = try transcribe("--format", "json", file)
        #expect(run.status == 0)
        let transcript = try JSONReader.read(run.output)
        #expect(transcript.segments.isEmpty)
        let samples = try Data(contentsOf: URL(fileURLWithPath: file)).count - 44
        #expect(transcript.duration == MediaTime(value: Int64(samples / 2), timescale: 16000))
    }
}
