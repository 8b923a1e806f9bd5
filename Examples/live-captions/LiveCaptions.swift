import ExampleCapture
import ExampleRecognizers
import ExampleSupport
import Foundation
import Steno

/// Shows what is being said while it is said, and records it if told so.
@main
struct LiveCaptions {
    static func main() async {
        do {
            guard let options = try Options(Array(CommandLine.arguments.dropFirst())) else {
                exit(printAll(Options.help, by: "live-captions").rawValue)
            }
            exit(await run(options).rawValue)
        } catch {
            Terminal.say("live-captions: \(error.message)\n\(Options.help)")
            exit(ExitCode.usage.rawValue)
        }
    }

    private static func run(_ options: Options) async -> ExitCode {
        // A reader of the captions that goes away must not end the recording.
        signal(SIGPIPE, SIG_IGN)
        let captions: Captions
        do throws(StenoError) {
            // Before any file is made.
            try options.recognizer.checkLanguage()
            captions = try Captions(format: options.format, vtt: options.vtt)
        } catch {
            Terminal.say("live-captions: \(error.message)\n")
            return ExitCode(error)
        }
        let type = options.recording.map { RecordingType(pathExtension: $0) }
        let session = LiveSession(
            source: options.source.makeSource(for: type),
            recording: options.recording.flatMap { type?.recording(to: $0) },
            transcriber: LoadingTranscriber(options.recognizer))
        let interrupts = onInterrupt { Task { await session.stop() } }
        defer { withExtendedLifetime(interrupts) {} }

        if (try? await session.start()) != nil {
            let reading = Task {
                do { for try await result in session.results { await captions.take(result, of: session) } } catch {}
            }
            var isGoingOn = true
            while isGoingOn {
                let status = await session.status
                await captions.show(status)
                // Without captions there is nothing left to do but to record.
                let failure = await captions.failure
                let hasFailed = status.transcriptionError != nil || failure != nil
                isGoingOn = status.phase != .ended && !(hasFailed && options.recording == nil)
                if isGoingOn { try? await Task.sleep(for: .milliseconds(100)) }
            }
            _ = await session.stop()
            await reading.value
        }
        return await captions.end(session.stop())
    }
}

struct Options {
    var source = SourceName(kind: .pulse)
    var recording: String?
    var vtt: String?
    var format = CaptionFormat.text
    var recognizer = RecognizerChoice()

    static let help = """
        Usage: live-captions [options]

        Shows what is being said, until Ctrl-C, which finishes properly; a second one ends at once. All files are whole at
        every moment.

          --source SOURCE     alsa:NAME, pulse:NAME (both without :NAME for the default device), or file:PATH, which plays
                              an audio file in real time (default: pulse)
          --replay FILE       the same as --source file:FILE
          --speed N           play the file N times as fast as real time
          --record FILE       also record; FLAC, Ogg Opus or M4A by the extension of FILE, else WAV
          --vtt FILE          also write the captions as WebVTT
          --format FORMAT     text, or jsonl: each result, volatile ones too, and each event on a line (default: text)
        \(RecognizerChoice.help)
        \(RecognizerChoice.liveHelp)
          --help              this text

        Exit codes: 0 done, 64 wrong usage, 65 source not audio, 66 no such device or source, 69 no server, device lost, or
        model missing, 70 device or engine failed, 73 a file cannot be made, 74 disk full or output cannot be written,
        75 device busy, 77 no permission. When the transcription fails, a recording goes on and the code tells at its end.

        """

    /// Nil when only the help is wanted.
    init?(_ arguments: [String]) throws(ArgumentReader.UsageError) {
        var reader = ArgumentReader(arguments)
        var speed: Double?
        while let argument = try reader.next() {
            switch argument {
            case .operand(let operand): throw .init("what is \(operand)? A file is played by --replay \(operand)")
            case .option("--help"), .option("-h"): return nil
            case .option("--source"): source = try SourceName(reader.value())
            case .option("--replay"): source = SourceName(kind: .file, name: try reader.value())
            case .option("--speed"): speed = try reader.number()
            case .option("--record"): recording = try reader.value()
            case .option("--vtt"): vtt = try reader.value()
            case .option("--format"): format = try reader.choice()
            case .option(let name):
                guard try recognizer.take(name, from: &reader, isLive: true) else { throw reader.unknownOption }
            }
        }
        try recognizer.check()
        for case let output? in [recording, vtt] { try source.check(output: output) }
        if let speed {
            guard source.kind == .file else { throw .init("--speed is for --replay") }
            source.speed = speed
        }
    }
}
