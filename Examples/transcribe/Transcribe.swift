import Dispatch
import Foundation
import Steno
import StenoMedia
import StenoWhisper

/// Transcribes audio files: the shortest way from a file to a transcript, with everything a tool needs around it.
@main
struct Transcribe {
    static func main() async {
        let options: Options
        do {
            options = try Options(Array(CommandLine.arguments.dropFirst()))
        } catch {
            Terminal.say("transcribe: \(error.message); transcribe --help tells what there is\n")
            exit(ExitCode.usage.rawValue)
        }
        if options.wantsHelp {
            print(Options.help, terminator: "")
            exit(0)
        }
        let work = Task { await run(options) }
        let interrupt = onInterrupt { work.cancel() }
        let code = await work.value
        interrupt.cancel()
        exit(code.rawValue)
    }

    private static func run(_ options: Options) async -> ExitCode {
        if let folder = options.outputFolder { return await Batch(options: options, folder: folder).run() }
        var output = Output(path: options.output, format: options.format)
        do throws(StenoError) {
            let model = try WhisperModel(path: Models.path(of: options.model))
            let detector = options.usesDetector ? try SileroModel(path: Models.detectorPath()) : nil
            for file in options.files {
                var recognizerOptions = WhisperTranscriber.Options(language: options.language)
                recognizerOptions.threads = options.threads
                let transcriber = try WhisperTranscriber(model: model, detector: detector, options: recognizerOptions)
                try await transcribe(file, with: transcriber, into: &output)
            }
            return .done
        } catch {
            Terminal.clearProgress()
            Terminal.say("transcribe: \(error.message)\n")
            return ExitCode(error)
        }
    }

    private static func transcribe(
        _ file: String, with transcriber: WhisperTranscriber, into output: inout Output
    ) async throws(StenoError) {
        let transcription = FileTranscription(transcriber: transcriber) { () throws(StenoError) in
            file == "-" ? try openAudio(descriptor: STDIN_FILENO) : try openAudio(path: file)
        }
        let progress = Progress()
        var partial = Transcript()
        var writing = output
        defer { output = writing }
        let transcript: Transcript
        do throws(StenoError) {
            transcript = try await transcription.run { (update) throws(StenoError) in
                switch update {
                case .result(let result):
                    partial.apply(result)
                    guard result.isFinal, !result.isEmpty else { return }
                    Terminal.clearProgress()
                    try writing.append(TranscriptSegment(result))
                case .progress(let time, let total):
                    progress.show(time, of: total)
                }
            }
        } catch {
            // What was done so far is a valid file; a file of which nothing could be read leaves no output.
            if writing.hasBegun, error.code != .outputFailed { try writing.end(partial) }
            throw error
        }
        Terminal.clearProgress()
        try writing.end(transcript)
        for event in transcript.events where event.kind == .fileWarning {
            Terminal.say("transcribe: \(file): \(event.detail)\n")
        }
    }

    /// Calls `body` at the first interrupt; a second one ends the process at once.
    private static func onInterrupt(_ body: @escaping @Sendable () -> Void) -> any DispatchSourceSignal {
        signal(SIGINT, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
        source.setEventHandler {
            body()
            signal(SIGINT, SIG_DFL)
        }
        source.resume()
        return source
    }
}

/// The exit codes of sysexits.h, and the shell's for an interrupt.
enum ExitCode: Int32 {
    case done = 0
    case usage = 64
    case notAudio = 65
    case noInput = 66
    case unavailable = 69
    case failed = 70
    case outputFailed = 74
    case interrupted = 130

    init(_ error: StenoError) {
        switch error.code {
        case .cancelled: self = .interrupted
        case .outputFailed: self = .outputFailed
        case .modelNotFound, .modelInvalid, .engineNotFound: self = .unavailable
        case .fileNotFound, .filePermissionDenied, .fileIsDirectory: self = .noInput
        case .fileEmpty, .fileNotAudio, .fileUnsupported, .fileDamaged: self = .notAudio
        case .unsupportedLanguage, .unsupportedOption, .invalidArgument: self = .usage
        default: self = .failed
        }
    }
}

/// Where models are looked for.
enum Models {
    static func path(of nameOrPath: String) -> String {
        if nameOrPath.contains("/") || FileManager.default.fileExists(atPath: nameOrPath) { return nameOrPath }
        return find("ggml-\(nameOrPath).bin")
    }

    static func detectorPath() -> String { find("ggml-silero-v6.2.0.bin") }

    /// The first place that has the file; else the last one, which the error then names.
    private static func find(_ name: String) -> String {
        let environment = ProcessInfo.processInfo.environment
        let data = environment["XDG_DATA_HOME"] ?? (environment["HOME"] ?? "") + "/.local/share"
        let folders = [environment["STENO_MODELS"], ".steno/models", data + "/steno/models"].compactMap { $0 }
        let candidates = folders.map { $0 + "/" + name }
        return candidates.first { FileManager.default.fileExists(atPath: $0) } ?? candidates[candidates.count - 2]
    }
}
