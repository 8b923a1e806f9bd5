import ExampleRecognizers
import ExampleSupport
import Foundation
import Steno

/// Transcribes audio files: the shortest way from a file to a transcript, with everything a tool needs around it.
@main
struct Transcribe {
    static func main() async {
        takeOneHeap()
        do {
            guard let options = try Options(Array(CommandLine.arguments.dropFirst())) else {
                exit(printAll(Options.help, by: "transcribe").rawValue)
            }
            let work = Task { await run(options) }
            let interrupts = onInterrupt { work.cancel() }
            let code = await work.value
            withExtendedLifetime(interrupts) {}
            exit(code.rawValue)
        } catch {
            Terminal.say("transcribe: \(error.message); transcribe --help tells what there is\n")
            exit(ExitCode.usage.rawValue)
        }
    }

    private static func run(_ options: Options) async -> ExitCode {
        if let folder = options.outputFolder { return await Batch(options: options, folder: folder).run() }
        var output = Output(path: options.output, format: options.format)
        do throws(StenoError) {
            let makeTranscriber = try options.recognizer.load(isLive: false)
            for file in options.files {
                guard let path = options.checkpoint else {
                    let transcription = FileTranscription(transcriber: try makeTranscriber()) { () throws(StenoError) in
                        try options.open(file)
                    }
                    try await write(transcription, of: file, into: &output)
                    continue
                }
                let checkpoint = TranscriptionCheckpoint(
                    path: path, audioPath: file, identity: options.identity(of: options.recognizer))
                let transcription = FileTranscription(
                    checkpoint: checkpoint, transcriber: makeTranscriber
                ) { () throws(StenoError) in try options.open(file) }
                try await write(transcription, of: file, into: &output)
                checkpoint.remove()
            }
            return .done
        } catch {
            Progress.clear()
            Terminal.say("transcribe: \(error.code == .cancelled ? "interrupted" : error.message)\n")
            // The text is all that it makes: that it cannot be made is no other case than that it cannot be written.
            return error.code == .cannotCreate ? .outputFailed : ExitCode(error)
        }
    }

    private static func write(
        _ transcription: FileTranscription, of file: String, into output: inout Output
    ) async throws(StenoError) {
        let progress = Progress()
        var partial = Transcript()
        let transcript: Transcript
        do throws(StenoError) {
            transcript = try await transcription.run { (update) throws(StenoError) in
                switch update {
                case .result(let result):
                    partial.apply(result)
                    guard result.isFinal, !result.isEmpty else { return }
                    Progress.clear()
                    try output.append(TranscriptSegment(result))
                case .progress(let time, let total):
                    progress.show(time, of: total)
                case .notice(let text):
                    Progress.clear()
                    Terminal.say("transcribe: \(text)\n")
                }
            }
        } catch {
            // What was done so far is a valid file; a file of which nothing could be read leaves no output.
            if output.hasBegun, error.code != .outputFailed { try output.end(partial) }
            throw error
        }
        Progress.clear()
        try output.end(transcript)
        for event in transcript.events where event.kind == .fileWarning {
            Terminal.say("transcribe: \(file): \(event.detail)\n")
        }
    }
}
