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
/// The audio is read as it is needed, so memory does not grow with its length. With a ``TranscriptionCheckpoint``, a run
/// that was interrupted at any moment goes on where it was.
public struct FileTranscription: Sendable {
    /// What is told while the work goes on.
    public enum Update: Sendable {
        /// A result as it came from the transcriber.
        case result(TranscriptionResult)
        /// Everything up to `through` is transcribed; `total` is nil where the source does not say how long it is.
        case progress(through: MediaTime, total: MediaTime?)
        /// One sentence for people: why a checkpoint is not used or not kept.
        case notice(String)
    }

    public let options: AnalyzerInputConverter.Options
    public let checkpoint: TranscriptionCheckpoint?
    private let makeTranscriber: @Sendable () throws(StenoError) -> any TranscriberModule
    private let open: @Sendable () throws(StenoError) -> sending any CaptureStream

    /// - Parameters:
    ///   - open: opens the source; called once for each run, on a thread that may block.
    ///   - transcriber: a new one; a module serves one session.
    public init(
        transcriber: any TranscriberModule, options: AnalyzerInputConverter.Options = .init(),
        source open: @escaping @Sendable () throws(StenoError) -> sending any CaptureStream
    ) {
        self.open = open
        self.makeTranscriber = { () throws(StenoError) in transcriber }
        self.options = options
        checkpoint = nil
    }

    /// A transcription that makes its transcribers itself, so that it can run again, and go on where an interrupted one was.
    ///
    /// - Parameters:
    ///   - checkpoint: where that is kept.
    ///   - makeTranscriber: called for each run, and with a checkpoint for each section of the audio.
    ///   - open: as above. With a checkpoint it opens a file that is read to its end without waiting for others.
    public init(
        checkpoint: TranscriptionCheckpoint? = nil, options: AnalyzerInputConverter.Options = .init(),
        transcriber makeTranscriber: @escaping @Sendable () throws(StenoError) -> any TranscriberModule,
        source open: @escaping @Sendable () throws(StenoError) -> sending any CaptureStream
    ) {
        self.open = open
        self.makeTranscriber = makeTranscriber
        self.options = options
        self.checkpoint = checkpoint
    }

    /// A transcription of a file that libsndfile reads.
    public init(path: String, transcriber: any TranscriberModule, options: AnalyzerInputConverter.Options = .init()) {
        self.init(transcriber: transcriber, options: options) { () throws(StenoError) in
            try AudioFileSource(path: path)
        }
    }

    /// As above, for a file that libsndfile reads.
    public init(
        path: String, checkpoint: TranscriptionCheckpoint? = nil, options: AnalyzerInputConverter.Options = .init(),
        transcriber makeTranscriber: @escaping @Sendable () throws(StenoError) -> any TranscriberModule
    ) {
        self.init(checkpoint: checkpoint, options: options, transcriber: makeTranscriber) { () throws(StenoError) in
            try AudioFileSource(path: path)
        }
    }

    /// Transcribes to the end.
    ///
    /// Cancelling the task stops a running decode within 200 ms and throws `cancelled`, also while the source blocks;
    /// what `update` got until then stands.
    ///
    /// - Parameter update: called in order, one call at a time; an error that it throws ends the work.
    /// - Throws: what the source, the conversion, the transcriber or `update` could not do, or `invalidArgument`; that a
    ///   checkpoint cannot be used or kept is only told. An error of the source in the middle comes after the results for
    ///   the audio before it.
    public func run(
        _ update: (Update) async throws(StenoError) -> Void = { _ in }
    ) async throws(StenoError) -> Transcript {
        var transcriber = try makeTranscriber()
        let inputs = StreamInputs(open, for: transcriber, options: options)
        var transcript = Transcript()
        var analyzerEvents: [TimelineEvent] = []
        var start = MediaTime.zero
        var file: CheckpointFile?
        if let checkpoint {
            guard (1...1e6).contains(checkpoint.sectionDuration) else {
                let found = checkpoint.sectionDuration
                throw StenoError(.invalidArgument, "a checkpoint's sections have from 1 to 1,000,000 s, not \(found)")
            }
            let sampleRate = try await inputs.openSource()
            let opened = try CheckpointFile(
                checkpoint, audioLength: inputs.claimedDuration, sampleRate: sampleRate)
            let (sections, notice) = await opened.read()
            if let notice { try await update(.notice(notice)) }
            for section in sections {
                for segment in section.segments {
                    let result = TranscriptionResult(segment)
                    transcript.apply(result)
                    try await update(.result(result))
                }
                analyzerEvents += section.events
                start = section.duration
                try await update(.progress(through: start, total: inputs.claimedDuration))
            }
            try await inputs.divide(into: checkpoint.sectionDuration, from: start)
            file = opened
        }
        while true {
            if let language = transcript.language { transcriber = try transcriber.assuming(language: language) }
            let segmentCount = transcript.segments.count
            let events = try await transcribeSection(of: inputs, by: transcriber, into: &transcript, update)
                // That a section does not begin at 0 is no gap.
                .filter { $0.range.start >= start }
            analyzerEvents += events
            guard let next = await inputs.beginSection() else { break }
            start = next
            let section = Transcript(
                segments: Array(transcript.segments[segmentCount...]), events: events, duration: start)
            if let notice = await file?.append(section) { try await update(.notice(notice)) }
            transcriber = try makeTranscriber()
        }
        transcript.duration = await inputs.duration
        for event in await inputs.events + analyzerEvents { transcript.events.note(event) }
        try await update(.progress(through: transcript.duration, total: inputs.claimedDuration))
        return transcript
    }

    /// Returns what happened to the audio in the analyzer.
    private func transcribeSection(
        of inputs: StreamInputs, by transcriber: any TranscriberModule, into transcript: inout Transcript,
        _ update: (Update) async throws(StenoError) -> Void
    ) async throws(StenoError) -> [TimelineEvent] {
        let analyzer = SpeechAnalyzer(modules: [transcriber])
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
        return await analyzer.events
    }
}

extension TranscriptionResult {
    fileprivate init(_ segment: TranscriptSegment) {
        self.init(
            range: segment.range, text: segment.text, words: segment.words, alternatives: segment.alternatives,
            language: segment.language, languageConfidence: segment.languageConfidence, isFinal: true)
        source = segment.source
        resultsFinalizationTime = segment.range.end
    }
}
