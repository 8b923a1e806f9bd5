import Foundation
import PulseTestServer
import Steno
import TestSupport
import Testing

@Suite("The programs record and live-captions", .timeLimit(.minutes(2)))
struct ProgramTests {
    private let jfk = root.appending(path: ".steno/samples/jfk.wav").path

    @Test func anInterruptStopsProperly() async throws {
        let folder = try Folder()
        for number in [SIGINT, SIGTERM] {
            let (file, messages) = (folder.path("\(number).flac"), folder.path("\(number).txt"))
            let program = try Program("record", ["--source=file:\(jfk)", file], errors: messages)
            try await program.wait(for: "recording", in: messages)
            try await Task.sleep(for: .milliseconds(700))
            #expect(program.end(by: number) == 0)
            let recorded = try samples(of: file)
            #expect(recorded.count > 16000 / 2)
            #expect(recorded == Array(try samples(of: jfk).prefix(recorded.count)))
        }
    }

    @Test func aDurationStopsByItself() throws {
        let folder = try Folder()
        let file = folder.path("a.wav")
        #expect(try Program("record", ["--source", "file:\(jfk)", "--duration", "0.5", file]).wait() == 0)
        #expect((8000...16000).contains(try samples(of: file).count))
    }

    @Test func recordingsToM4A() throws {
        let folder = try Folder()
        let (recorded, captioned) = (folder.path("a.m4a"), folder.path("b.m4a"))
        #expect(try Program("record", ["--source", "file:\(jfk)", "--duration", "1", recorded]).wait() == 0)
        #expect((16000...24000).contains(try samples(of: recorded).count))
        let arguments = ["--replay", jfk, "--speed", "20", "--model", "nothing", "--record", captioned]
        #expect(try Program("live-captions", arguments).wait() == 69)
        #expect(try samples(of: captioned).count == samples(of: jfk).count)
        for file in [recorded, captioned] {
            #expect(try ChildProcess(["ffmpeg", "-v", "error", "-xerror", "-i", file, "-f", "null", "-"]).wait() == 0)
            #expect(FileManager.default.contents(atPath: file)?.dropFirst(4).prefix(8) == Data("ftypM4A ".utf8))
        }
    }

    @Test func captionsOfAFileAreItsText() throws {
        let folder = try Folder()
        let (lines, vtt, flac) = (folder.path("a.jsonl"), folder.path("a.vtt"), folder.path("a.flac"))
        let arguments = ["--replay", jfk, "--every-step", "--speed", "20", "--vtt", vtt, "--record", flac]
        #expect(try Program("live-captions", arguments + ["--format", "jsonl"], output: lines).wait() == 0)
        let said = "what you can do for your country"
        let finals = text(of: lines).matches(of: /"isFinal":true.*?"text":"([^"]*)"/).map(\.1)
        #expect(finals.joined(separator: " ").lowercased().contains(said))
        // No recognizer is twenty times as fast as speech at every step: it says that it is late, and loses nothing.
        #expect(text(of: lines).contains(/"event":"behind"/))
        let cues = try WebVTTReader.read(text(of: vtt).utf8)
        #expect(cues.map { $0.lines.joined(separator: " ") }.joined(separator: " ").lowercased().contains(said))
        #expect(try samples(of: flac) == samples(of: jfk))
        #expect(try Program("live-captions", arguments, output: lines).wait() == 0)
        #expect(text(of: lines).hasPrefix("[00:00:00."))
    }

    @Test func captionsByVosk() throws {
        let folder = try Folder()
        let (speech, lines) = (folder.path("ko.wav"), folder.path("a.jsonl"))
        let korean = "조금만 생각을 하면서 살면"
        let status = try ChildProcess(["espeak-ng", "-v", "ko", "-s", "130", "-w", speech, korean]).wait()
        try #require(status == 0)
        let arguments = ["--backend=vosk", "--model", root.appending(path: ".steno/vosk/model-ko").path]
        let vosk = ["STENO_VOSK_LIBRARY": root.appending(path: ".steno/vosk/lib/libvosk.so").path]
        let replay = ["--replay", speech, "--speed", "2", "--format", "jsonl"]
        #expect(try Program("live-captions", arguments + replay, output: lines, environment: vosk).wait() == 0)
        #expect(text(of: lines).contains(#""isFinal":false"#))
        #expect(text(of: lines).contains(/"isFinal":true.*"text":"\p{Hangul}/))
        #expect(try Program("live-captions", ["--backend", "vosk", "--language", "ko"]).wait() == 64)
    }

    /// Transcription cannot fail a recording; the code tells at the end.
    @Test func aMissingModelLeavesTheRecording() throws {
        let folder = try Folder()
        let (file, messages) = (folder.path("a.wav"), folder.path("a.txt"))
        let arguments = ["--replay", jfk, "--speed", "20", "--model", "nothing"]
        #expect(try Program("live-captions", arguments + ["--record", file], errors: messages).wait() == 69)
        #expect(text(of: messages).contains("ggml-nothing.bin"))
        #expect(try samples(of: file) == samples(of: jfk))
        #expect(try Program("live-captions", arguments).wait() == 69)
    }

    /// What can be known to be wrong is refused before there is a file.
    @Test(arguments: ["xx", "de"])
    func aLanguageThatTheModelDoesNotKnow(language: String) throws {
        let folder = try Folder()
        let (file, vtt, messages) = (folder.path("a.wav"), folder.path("a.vtt"), folder.path("messages"))
        let arguments = ["--replay", jfk, "--language", language, "--record", file, "--vtt", vtt]
        #expect(try Program("live-captions", arguments, errors: messages).wait() == 64)
        #expect(text(of: messages).contains("does not know the language \"\(language)\""))
        #expect(!FileManager.default.fileExists(atPath: file) && !FileManager.default.fileExists(atPath: vtt))
        #expect(try Program("live-captions", arguments + ["--model", "nothing", "--speed", "20"]).wait() == 69)
        #expect(try samples(of: file) == samples(of: jfk))
    }

    @Test(arguments: [
        ("record", ["--source", "file:PLAYED", "LINK"]), ("live-captions", ["--replay", "PLAYED", "--record", "LINK"]),
        ("live-captions", ["--replay", "PLAYED", "--vtt", "LINK"]),
    ])
    func whatIsPlayedIsNotOverwritten(program: String, arguments: [String]) throws {
        let folder = try Folder()
        let (played, link) = (folder.path("a.wav"), folder.path("link.wav"))
        try FileManager.default.copyItem(atPath: jfk, toPath: played)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: played)
        let arguments = arguments.map { $0.replacing("PLAYED", with: played).replacing("LINK", with: link) }
        #expect(try Program(program, arguments).wait() == 64)
        #expect(FileManager.default.contentsEqual(atPath: played, andPath: jfk))
    }

    /// The device is not to blame for the time in which the whole program stood still.
    @Test func aProgramThatWasSuspendedGoesOn() async throws {
        let folder = try Folder()
        let (file, messages) = (folder.path("a.wav"), folder.path("a.txt"))
        let program = try Program("record", ["--source=file:\(jfk)", "--duration", "6", file], errors: messages)
        try await program.wait(for: "recording", in: messages)
        program.signal(SIGSTOP)
        try await Task.sleep(for: .seconds(5))
        program.signal(SIGCONT)
        #expect(program.wait() == 0)
        #expect(try samples(of: file).count >= 6 * 16000)
    }

    @Test(arguments: [
        ("record", ["--help"]), ("live-captions", ["--help"]), ("convert", ["--help"]), ("list-devices", []),
        ("live-captions", ["--replay", "JFK", "--speed", "20"]),
    ])
    func outputThatCannotBeWritten(program: String, arguments: [String]) throws {
        let arguments = arguments.map { $0.replacing("JFK", with: jfk) }
        #expect(try Program(program, arguments, output: "/dev/full").wait() == 74)
    }

    @Test(arguments: [
        (64, "record", []), (64, "record", ["--type", "mp3", "x"]), (64, "record", ["--duration=", "x"]),
        (64, "live-captions", ["--speed", "0"]), (64, "live-captions", ["x"]),
        (66, "record", ["--source", "alsa:no such device", "x"]), (66, "record", ["--source", "file:no/such", "x"]),
        (69, "record", ["--source", "pulse", "x"]), (69, "live-captions", ["--source", "pulse:name"]),
        (73, "record", ["--source", "file:JFK", "/no/such/folder/x"]), (73, "record", ["--source", "file:JFK", "/"]),
        (74, "record", ["--source", "file:JFK", "/dev/full"]),
        (74, "record", ["--source", "file:JFK", "--type", "m4a", "/dev/full"]),
        (73, "record", ["--source", "file:JFK", "/no/such/folder/x.m4a"]),
        (73, "live-captions", ["--vtt", "/no/such/folder/x"]),
    ])
    func failuresHaveTheirCodes(code: Int32, program: String, arguments: [String]) throws {
        let arguments = arguments.map { $0.replacing("JFK", with: jfk) }
        // A server that is not there, whatever the machine has.
        let environment = ["PULSE_SERVER": "unix:/no/such/socket"]
        #expect(try Program(program, arguments, environment: environment).wait() == code)
    }
}
