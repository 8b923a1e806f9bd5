import ChildProcesses
import Foundation
import Steno
import TestSupport
import Testing

/// Each failure has its exit code and its sentence, and leaves no output.
extension TranscribeTests {
    private func expect(
        _ status: Int32, _ message: String, _ given: String..., through launcher: [String] = [],
        input: String = "/dev/null", sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let output = try #require(folder).path("out.txt")
        let run = try run(launcher + arguments(["--output", output] + given), input: input)
        #expect(run.status == status, sourceLocation: sourceLocation)
        #expect(run.errors.hasPrefix("transcribe: "), sourceLocation: sourceLocation)
        #expect(run.errors.contains(message), sourceLocation: sourceLocation)
        #expect(run.errors.split(separator: "\n").count == 1, sourceLocation: sourceLocation)
        #expect(run.output.isEmpty, sourceLocation: sourceLocation)
        #expect(!FileManager.default.fileExists(atPath: output), sourceLocation: sourceLocation)
    }

    @Test func wrongUsage() throws {
        try expect(64, "which file?")
        try expect(64, "--raw takes FORMAT,RATE,CHANNELS, such as s16le,16000,1, not s16le", "--raw", "s16le", jfk)
        try expect(64, "S16 is not one of u8, s16le, s16be", "--raw", "S16,8000,1", jfk)
        try expect(64, "a rate from 1 to 1000000 Hz, not 0", "--raw", "u8,0,1", jfk)
        try expect(64, "from 1 to 1024 channels, not x", "--raw", "u8,8000,x", jfk)
        try expect(64, "no option --loud", "--loud", jfk)
        try expect(64, "--output needs a value", jfk, "--output")
        try expect(64, "--no-detector takes no value", "--no-detector=1", jfk)
        try expect(64, "xml is not one of txt, vtt, srt, json, jsonl", "--format", "xml", jfk)
        try expect(64, "a number from 1 to 512, not 0", "--threads", "0", jfk)
        try expect(64, "a number from 1 to 512, not many", "--threads", "many", jfk)
        try expect(64, "other is not one of whisper, vosk", "--backend", "other", jfk)
        // The arguments that each run begins with say how many threads.
        try expect(64, "--threads is not for --backend vosk", "--backend", "vosk", jfk)
        try expect(64, "several files do not fit into one json output", "--format", "json", jfk, jfk)
        try expect(64, "does not know the language \"xx\"", "--language", "xx", jfk)
        try expect(64, "overwrite the input", "--output", jfk, jfk)
    }

    @Test func help() throws {
        let run = try transcribe("--help")
        #expect(run.status == 0)
        #expect(run.text.hasPrefix("Usage: transcribe"))
        #expect(run.text.contains("whisper (whisper.cpp) or vosk (libvosk)"))
        #expect(run.errors == "")
    }

    @Test func inputThatIsNotAudio() throws {
        let folder = try #require(folder)
        try expect(65, "0 bytes", folder.file("empty.wav", []))
        try expect(65, "0 bytes", "-")
        try expect(65, "text", folder.file("text.wav", "Four score and seven years ago\n".utf8))
        try expect(65, "PDF", folder.file("paper.wav", "%PDF-1.4\n".utf8))
        let sample = try Data(contentsOf: URL(fileURLWithPath: jfk))
        try expect(65, "format chunk", folder.file("head.wav", sample.prefix(30)))
        let flac = try Data(contentsOf: URL(fileURLWithPath: folder.file("a.flac") { ["sox", jfk, $0] }))
        try expect(65, "holds none: it was cut off", folder.file("cut.flac", flac.prefix(60)))
    }

    /// What is there is transcribed, and the loss is said.
    @Test func inputThatIsCutOff() throws {
        let sample = try Data(contentsOf: URL(fileURLWithPath: jfk))
        // The sample's header, 48,000 frames, and half of one.
        let run = try transcribe("--format", "json", try #require(folder).file("cut.wav", sample.prefix(78 + 96_001)))
        #expect(run.status == 0)
        let transcript = try JSONReader.read(run.output)
        #expect(transcript.duration == MediaTime(value: 48_000, timescale: 16000))
        #expect(transcript.text.contains("Americans"))
        #expect(transcript.events.map(\.kind) == [.fileWarning])
        #expect(run.errors.hasPrefix("transcribe: "))
    }

    @Test func inputThatCannotBeRead() throws {
        let folder = try #require(folder)
        try expect(66, "No such file", folder.path("missing.wav"))
        try expect(66, "No such file", "")
        try expect(66, "irectory", folder.url.path)
        let locked = try folder.file("locked.wav") { ["sox", jfk, $0] }
        unsafe chmod(locked, 0)
        // The superuser may read everything, unless he gives that up.
        let launcher = geteuid() == 0 ? ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] : []
        try expect(66, "Permission denied", locked, through: launcher)
    }

    @Test func aModelThatIsNotThereOrDamaged() throws {
        let folder = try #require(folder)
        let handle = try #require(FileHandle(forReadingAtPath: model))
        let start = try #require(try handle.read(upToCount: 1_000_000))
        try expect(69, "There is no model at", "--model", folder.path("missing.bin"), jfk)
        try expect(69, "ggml-enormous.bin", "--model", "enormous", jfk)
        try expect(69, "truncated", "--model", folder.file("cut.bin", start), jfk)
        let otherMagic = "GGUF".utf8 + start.dropFirst(4)
        try expect(69, "not in ggml's format", "--model", folder.file("magic.bin", otherMagic), jfk)
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 77704715\n"
        try expect(69, "git lfs pull", "--model", folder.file("pointer.bin", pointer.utf8), jfk)
        try expect(69, "empty", "--model", folder.file("empty.bin", []), jfk)
        try expect(69, "a directory", "--model", folder.url.path, jfk)
    }

    @Test func anOptionOfTheOtherBackEnd() throws {
        for options in [["--no-detector"], ["--language", "ko"], ["--threads=2"]] {
            let run = try run([productPath("transcribe"), "--backend", "vosk"] + options + [jfk])
            #expect(run.status == 64)
            #expect(run.errors.hasPrefix("transcribe: \(options[0].prefix { $0 != "=" }) is not for --backend vosk"))
        }
    }

    @Test func aVoskModelOrLibraryThatIsNotThere() throws {
        let folder = try #require(folder)
        let command = [productPath("transcribe"), "--backend", "vosk", "--model"]
        let model = try run(command + [folder.path("missing"), jfk])
        #expect(model.status == 69)
        #expect(model.errors.hasPrefix("transcribe: there is no folder \(folder.path("missing"))"))
        for (name, content) in [("none", nil), ("text", "text")] {
            if let content { _ = try folder.file(name, content.utf8) }
            let library = try run(["env", "STENO_VOSK_LIBRARY=\(folder.path(name))"] + command + [voskModel, jfk])
            #expect(library.status == 69)
            #expect(library.errors.contains(folder.path(name)))
        }
    }

    @Test func outputThatCannotBeWritten() throws {
        let file = try yes()
        let full = try transcribe("--output", "/dev/full", file)
        #expect(full.status == 74)
        #expect(full.errors == "transcribe: cannot write to /dev/full: No space left on device\n")
        let standard = try run(["sh", "-c", #"exec "$@" >/dev/full"#, "sh"] + arguments([file]))
        #expect(standard.status == 74)
        let help = try run(["sh", "-c", #"exec "$@" >/dev/full"#, "sh"] + arguments(["--help"]))
        #expect(help.status == 74)
        let missing = try transcribe("--output", try #require(folder).path("no/such/folder.txt"), file)
        #expect(missing.status == 74)
    }

    // MARK: Interruption

    /// What was done by then is written, and valid.
    @Test(arguments: [SIGINT, SIGTERM]) func anInterruptInTheMiddle(signal: Int32) throws {
        let folder = try #require(folder)
        let long = try folder.file("long.wav") { ["sox", jfk, $0, "repeat", "50"] }
        let output = folder.path("long.json")
        let process = try start(arguments(["--no-detector", "--format", "json", "--output", output, long]), in: folder)
        func size() -> Int { (try? Data(contentsOf: URL(fileURLWithPath: output)).count) ?? 0 }
        while size() < 100 { Thread.sleep(forTimeInterval: 0.02) }
        let instant = ContinuousClock.now
        process.signal(signal)
        #expect(process.wait().status == 130)
        #expect(ContinuousClock.now - instant < .seconds(2))
        #expect(try String(contentsOfFile: folder.path("errors"), encoding: .utf8) == "transcribe: interrupted\n")
        let transcript = try JSONReader.read(Data(contentsOf: URL(fileURLWithPath: output)))
        #expect(!transcript.segments.isEmpty)
        #expect(transcript.duration < MediaTime(value: 11 * 50, timescale: 1))
    }

    @Test func anInterruptOfManyFiles() throws {
        let folder = try #require(folder)
        let long = try folder.file("long.wav") { ["sox", jfk, $0, "repeat", "50"] }
        let texts = folder.path("texts")
        let process = try start(arguments(["--output-dir", texts, long, folder.path("missing.wav")]), in: folder)
        while !FileManager.default.fileExists(atPath: texts) { Thread.sleep(forTimeInterval: 0.02) }
        process.signal(SIGTERM)
        #expect(process.wait().status == 130)
        #expect(try String(contentsOfFile: folder.path("errors"), encoding: .utf8).contains("0 done, interrupted;"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: texts) == [])
    }

    /// Standard input that says nothing, as when a user forgot to redirect it.
    @Test func anInterruptWhileInputIsAwaited() throws {
        let folder = try #require(folder)
        let pipe = folder.path("pipe")
        let made = unsafe mkfifo(pipe, 0o600)
        try #require(made == 0)
        let writer = unsafe open(pipe, O_RDWR)
        defer { close(writer) }
        let process = try start(arguments(["-"]), input: pipe, in: folder)
        Thread.sleep(forTimeInterval: 1)
        process.signal(SIGINT)
        #expect(process.wait().status == 130)
    }

    // MARK: Memory

    /// Reading is streamed, and the engine's context is bounded: what an hour takes, the limit of 60 MB over a minute,
    /// shows in ten minutes with so much speech that the context is full.
    @Test func memoryDoesNotGrowWithTheLengthOfTheFile() throws {
        let folder = try #require(folder)
        func peak(minutes: Int, turns: Int) throws -> Int {
            let file = try folder.file("\(minutes).wav") {
                ["sox", jfk, $0, "repeat", "\(turns - 1)", "pad", "0", "\(60 * minutes - 11 * turns)"]
            }
            // A program's peak counts from that of the process that started it, so that must be a small one.
            let measure = """
                import os, sys
                pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
                _, status, usage = os.wait4(pid, 0)
                print(usage.ru_maxrss)
                sys.exit(os.waitstatus_to_exitcode(status))
                """
            let run = try run(["python3", "-c", measure] + arguments(["--output", "/dev/null", file]))
            #expect(run.status == 0)
            return try #require(Int(run.text.trimmingCharacters(in: .whitespacesAndNewlines)))
        }
        // As much as is decoded at once.
        let (short, long) = (try peak(minutes: 1, turns: 5), try peak(minutes: 10, turns: 12))
        #expect(long - short < 60_000, "KiB: \(short) for a minute, \(long) for ten")
    }
}
