public import StenoAnalysis
public import StenoAudio
import StenoFiles
public import StenoTranscript

/// Transcribes one audio file, or any other source that ends.
///
///     let model = try WhisperModel(path: "ggml-tiny.en.bin")
///     let transcription = FileTranscription(path: "talk.wav", transcriber: try WhisperTranscriber(model: model))
///     print(try await transcription.run().text)
///
/// The audio is read as it is needed, so memory does not grow with its length.
public struct FileTranscription: Sendable {
    /// What is told while the work goes on.
    public enum Update: Sendable {
        /// A result as it came from the transcriber.
        case result(TranscriptionResult)
        /// Everything up to `through` is transcribed; `total` is nil where the source does not say how long it is.
        case progress(through: MediaTime, total: MediaTime?)
    }

    public let transcriber: any TranscriberModule
    public let options: AnalyzerInputConverter.Options
    private let open: @Sendable () throws(StenoError) -> sending any CaptureStream

    /// - Parameters:
    ///   - open: opens the source; called once for each run, on a thread that may block.
    ///   - transcriber: a new one; a module serves one session.
    public init(
        transcriber: any TranscriberModule, options: AnalyzerInputConverter.Options = .init(),
        source open: @escaping @Sendable () throws(StenoError) -> sending any CaptureStream
    ) {
        self.open = open
        self.transcriber = transcriber
        self.options = options
    }

    /// A transcription of a file that libsndfile reads.
    public init(path: String, transcriber: any TranscriberModule, options: AnalyzerInputConverter.Options = .init()) {
        self.init(transcriber: transcriber, options: options) { () throws(StenoError) in
            try AudioFileSource(path: path)
        }
    }

    /// Transcribes to the end.
    ///
    /// Cancelling the task stops a running decode within 200 ms and throws `cancelled`, also while the source blocks;
    /// what `update` got until then stands.
    ///
    /// - Parameter update: called in order, one call at a time; an error that it throws ends the work.
    /// - Throws: what the source, the conversion, the transcriber or `update` could not do. An error of the source in the
    ///   middle comes after the results for the audio before it.
    public func run(
        _ update: (Update) async throws(StenoError) -> Void = { _ in }
    ) async throws(StenoError) -> Transcript {
        let inputs = StreamInputs(open, for: transcriber, options: options)
        let analyzer = SpeechAnalyzer(modules: [transcriber])
        var transcript = Transcript()
        // Not a child task: when this one is cancelled the analyzer must still hear of it.
        let feeding = Task {
            do throws(StenoError) {
                try await analyzer.analyzeSequence(StreamInputSequence(inputs: inputs))
            } catch {
                try? await analyzer.finalizeAndFinish()
                return error as StenoError?
            }
            do throws(StenoError) { try await analyzer.finalizeAndFinish() } catch { return error }
            return nil
        }
        do throws(StenoError) {
            for try await result in transcriber.results {
                transcript.apply(result)
                try await update(.result(result))
                if result.isFinal {
                    try await update(
                        .progress(through: result.resultsFinalizationTime, total: inputs.claimedDuration))
                }
            }
        } catch {
            await analyzer.cancelAndFinishNow()
            _ = await feeding.value
            throw error
        }
        if let error = await feeding.value { throw error }
        transcript.duration = await inputs.duration
        for event in await inputs.events + analyzer.events { transcript.events.note(event) }
        try await update(.progress(through: transcript.duration, total: inputs.claimedDuration))
        return transcript
    }
}
