import ExampleCapture
import ExampleSupport
import Foundation
import Steno

/// Records a device to a file, and nothing else.
@main
struct Record {
    static func main() async {
        do {
            guard let options = try Options(Array(CommandLine.arguments.dropFirst())) else {
                exit(printAll(Options.help, by: "record").rawValue)
            }
            exit(await run(options).rawValue)
        } catch {
            Terminal.say("record: \(error.message)\n\(Options.help)")
            exit(ExitCode.usage.rawValue)
        }
    }

    private static func run(_ options: Options) async -> ExitCode {
        let session = LiveSession(
            source: options.source.makeSource(for: options.type),
            recording: options.type.recording(to: options.file), transcriber: nil)
        let interrupts = onInterrupt { Task { await session.stop() } }
        defer { withExtendedLifetime(interrupts) {} }
        var area = LiveArea()
        if (try? await session.start()) != nil, let format = await session.status.format {
            Terminal.say("recording \(options.file): \(format)\n")
            while true {
                let status = await session.status
                let left = options.duration.map { $0 - status.duration.seconds } ?? .infinity
                guard status.phase != .ended, left > 0 else { break }
                area.show([statusLine(status)])
                try? await Task.sleep(for: .seconds(min(0.1, left)))
            }
        }
        let draft = await session.stop()
        area.clear()
        return report(draft, options)
    }

    private static func report(_ draft: LiveSession.Draft, _ options: Options) -> ExitCode {
        let status = draft.status
        for event in draft.transcript.events {
            let range = String(format: "%.3f to %.3f s", event.range.start.seconds, event.range.end.seconds)
            Terminal.say("record: \(event.kind.rawValue) at \(range) \(event.detail)\n")
        }
        for error in [status.captureError, status.recordingError].compactMap({ $0 }) where error.code != .cancelled {
            Terminal.say("record: \(error.message)\n")
        }
        if draft.duration > .zero { Terminal.say(String(format: "%.3f s recorded\n", draft.duration.seconds)) }
        if let error = status.recordingError { return ExitCode(ofRecording: error) }
        return status.captureError.map { ExitCode($0) } ?? .done
    }
}

struct Options {
    var source = SourceName(kind: .pulse)
    /// Seconds; nil until the source ends or somebody stops it.
    var duration: Double?
    var type = RecordingType.wav
    var file = ""

    static let help = """
        Usage: record [options] [--] FILE

        Records to FILE until Ctrl-C. The file is whole at every moment; a second Ctrl-C ends at once.

          --source SOURCE     alsa:NAME, pulse:NAME (both without :NAME for the default device), or file:PATH, which plays
                              an audio file in real time (default: pulse)
          --duration SECONDS  stop by itself
          --type TYPE         wav, flac, opus or m4a (default: by the extension of FILE, else wav)
          --help              this text

        Exit codes: 0 done, 64 wrong usage, 65 source not audio, 66 no such device or source, 69 no server or device lost,
        70 device failed, 73 FILE cannot be made, 74 disk full or FILE cannot be written, 75 device busy, 77 no permission.

        """

    /// Nil when only the help is wanted.
    init?(_ arguments: [String]) throws(ArgumentReader.UsageError) {
        var reader = ArgumentReader(arguments)
        var type: RecordingType?
        var files: [String] = []
        while let argument = try reader.next() {
            switch argument {
            case .operand(let file): files.append(file)
            case .option("--help"), .option("-h"): return nil
            case .option("--source"): source = try SourceName(reader.value())
            case .option("--duration"): duration = try reader.number()
            case .option("--type"): type = try reader.choice() as RecordingType
            case .option: throw reader.unknownOption
            }
        }
        guard let file = files.first else { throw .init("which file?") }
        if files.count > 1 { throw .init("one file, not \(files.count)") }
        try source.check(output: file)
        self.file = file
        self.type = type ?? RecordingType(pathExtension: file)
    }
}
