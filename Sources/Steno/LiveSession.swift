public import StenoAnalysis
public import StenoAudio
public import StenoFiles
public import StenoTranscript

/// Records a source to a file and transcribes it at the same time, so that neither can hurt the other.
///
///     let session = LiveSession(
///         source: CaptureSource { () throws(StenoError) in try PulseAudioCaptureStream() },
///         recording: .init(path: "talk.wav"), transcriber: try WhisperTranscriber(model: model))
///     try await session.start()
///     for try await result in session.results { … }   // in a task of its own
///     let draft = await session.stop()
///
/// The file comes first: only frames that it took are analyzed. Whatever happens to the transcription, the recording
/// goes on, and the reason is thrown by ``results`` and stands in the ``Status`` and the ``Draft``. A recognizer that is
/// slower than real time reads the recording back when it gets there (law A8).
public actor LiveSession {
    /// Where the audio goes, and how it is written.
    public struct Recording: Sendable {
        /// Makes the file for what the source granted. Called once, on a thread that may block.
        public typealias WriterFactory =
            @Sendable (_ path: String, _ format: AudioFormat) throws(StenoError) -> sending any AudioWriter

        public var path: String
        let makeWriter: WriterFactory

        public init(path: String, type: AudioFileWriter.FileType = .wav) {
            self.init(path: path) { (path, format) throws(StenoError) in
                try AudioFileWriter(path: path, type: type, format: format)
            }
        }

        /// A recording by another writer, such as that of `StenoMedia`:
        ///
        ///     LiveSession.Recording(path: "talk.m4a") { (path, format) throws(StenoError) in
        ///         try MediaFileWriter(path: path, format: format)
        ///     }
        public init(path: String, writer makeWriter: @escaping WriterFactory) {
            self.path = path
            self.makeWriter = makeWriter
        }
    }

    public struct Options: Sendable {
        /// How the source's channels become the recognizer's, what becomes of gaps and pauses. With `fill`, file time
        /// and transcript time are equal.
        public var conversion: AnalyzerInputConverter.Options
        /// Seconds of audio that may wait in memory for the recognizer.
        public var memoryDuration: Double
        /// How much audio may wait for the recognizer before that is told; see ``Status/behind``.
        public var lagLimit: MediaTime
        public var analyzer: SpeechAnalyzer.Options

        public init(
            conversion: AnalyzerInputConverter.Options = .init(), memoryDuration: Double = 10,
            lagLimit: MediaTime = MediaTime(value: 5, timescale: 1),
            analyzer: SpeechAnalyzer.Options = .init(queueDuration: 2)
        ) {
            self.conversion = conversion
            self.memoryDuration = memoryDuration
            self.lagLimit = lagLimit
            self.analyzer = analyzer
        }
    }

    public enum Phase: String, Sendable {
        case ready
        case capturing
        case paused
        /// The capture has ended and the file is being completed; what it holds is still being transcribed.
        case draining
        case ended
    }

    /// What a session can show at any time.
    public struct Status: Sendable {
        public var phase: Phase
        /// What the source granted and the file holds; nil before the start.
        public var format: AudioFormat?
        /// The length of the timeline: of the file, unless gaps are kept out of it.
        public var duration: MediaTime
        /// How much of it the recognizer has not taken yet.
        public var lag: MediaTime
        /// The stretch that is being transcribed late, as far as it is; nil while the recognizer keeps up. It joins
        /// ``events`` where the recognizer has caught up.
        public var behind: TimelineEvent?
        /// The level of each channel over the last 50 ms.
        public var levels: [ChannelLevel]
        /// Frames that went to the recognizer less those that the recording's own count asks for (law T5).
        public var driftFromSource: Int64
        /// The device's clock against the monotonic one; nil before the first frames.
        public var timing: CaptureTiming?
        public var statistics: CaptureStatistics
        /// What has happened to the audio: in the recording, and what the recognizer reports. The last one may still
        /// grow; see ``Swift/Array/note(_:)``.
        public var events: [TimelineEvent]
        /// Why nothing comes at the moment, while the source tries to get its device back.
        public var interruption: StenoError?
        /// Why the capture ended by itself, or could not start.
        public var captureError: StenoError?
        /// Why the file ended, or could not be made. The capture ends with it: a transcript never describes audio that the file lacks.
        public var recordingError: StenoError?
        /// Why the transcription ended. The recording goes on.
        public var transcriptionError: StenoError?
    }

    /// What a session leaves.
    public struct Draft: Sendable {
        public var recording: Recording?
        /// The text, with all events of the timeline.
        public var transcript: Transcript
        public var duration: MediaTime
        public var status: Status
        /// The range that was recorded and not transcribed, because the drain was cut short or the transcription failed.
        public var untranscribed: MediaTimeRange?
    }

    public let options: Options
    public let recording: Recording?
    private let source: CaptureSource
    private let transcriber: (any TranscriberModule)?
    private let output = ModuleOutput<TranscriptionResult>()

    private var phase = Phase.ready
    private var format: AudioFormat?
    private var starting: Task<StenoError?, Never>?
    private var recorder: LiveRecorder?
    private var inputs: LiveInputs?
    private var analyzer: SpeechAnalyzer?
    private var work: Task<Void, Never>?
    private var transcript = Transcript()
    private var transcriptionError: StenoError?
    /// Why it could not start.
    private var captureError: StenoError?
    private var recordingError: StenoError?

    /// - Parameters:
    ///   - source: a new one; it is started and stopped by the session.
    ///   - recording: nil records nothing; audio that the recognizer has no time for is then dropped and reported.
    ///   - transcriber: a new one; nil only records.
    public init(
        source: CaptureSource, recording: Recording?, transcriber: (any TranscriberModule)?,
        options: Options = Options()
    ) {
        self.source = source
        self.recording = recording
        self.transcriber = transcriber
        self.options = options
    }

    deinit {
        work?.cancel()
        output.finish(.cancelled)
    }

    /// The results as they come, for one reader. Ends when the session has ended; throws the reason when the
    /// transcription ended before it.
    public nonisolated var results: ModuleOutput<TranscriptionResult>.Results { output.results }

    /// Opens the device and the file and starts. Audio is recorded from here on; the recognizer's model may load
    /// meanwhile and misses nothing.
    ///
    /// - Throws: what the device or the file could not do. What the transcriber cannot do comes with ``results``.
    public func start() async throws(StenoError) {
        guard phase == .ready else {
            throw StenoError(.invalidArgument, "the session is \(phase.rawValue); make a new one to start again")
        }
        phase = .capturing
        // In a task that a stop can wait for.
        let starting = Task { await open() }
        self.starting = starting
        let error = await withTaskCancellationHandler {
            await starting.value
        } onCancel: {
            starting.cancel()
        }
        if let error { throw error }
    }

    private func open() async -> StenoError? {
        let format: AudioFormat
        do throws(StenoError) {
            format = try await source.start()
        } catch {
            captureError = error
            return endBeforeStart(error)
        }
        self.format = format
        do throws(StenoError) {
            let recorder = try await LiveRecorder.open(
                source: source, format: format, recording: recording, gapPolicy: options.conversion.gapPolicy,
                memoryDuration: options.memoryDuration,
                lag: LagWatch(limit: transcriber == nil ? nil : options.lagLimit))
            self.recorder = recorder
            begin(recorder, format: format)
        } catch {
            recordingError = error
            return endBeforeStart(error)
        }
        return nil
    }

    private func endBeforeStart(_ error: StenoError) -> StenoError {
        phase = .ended
        source.stop()
        output.finish(.failed(error))
        return error
    }

    private func begin(_ recorder: LiveRecorder, format: AudioFormat) {
        let analysis = Task { [weak self] in await self?.analyze(recorder, format: format) ?? () }
        work = Task { [weak self] in
            await recorder.run()
            await self?.captureEnded()
            await analysis.value
            await self?.end()
        }
    }

    private func captureEnded() { if phase != .ended { phase = .draining } }

    private func end() {
        phase = .ended
        output.finish(transcriptionError.map { .failed($0) } ?? .finished)
    }

    /// Feeds the transcriber and takes its results, until the recording's end or the transcription's.
    private func analyze(_ recorder: LiveRecorder, format: AudioFormat) async {
        guard let transcriber else {
            recorder.abandonAnalysis()
            return
        }
        do throws(StenoError) {
            guard
                let analyzerFormat = SpeechAnalyzer.bestAvailableAudioFormat(
                    compatibleWith: [transcriber], considering: format)
            else { throw StenoError(.incompatibleAudioFormats, "the transcriber takes no audio format at all") }
            let analyzer = SpeechAnalyzer(module: transcriber, options: options.analyzer, observer: recorder)
            let inputs = LiveInputs(
                backlog: recorder.backlog, format: format,
                frameCapacity: Int(options.memoryDuration * Double(format.sampleRate)),
                analyzerFormat: analyzerFormat, options: options.conversion, executor: analyzer.feederExecutor)
            self.inputs = inputs
            self.analyzer = analyzer
            let feeding = Task {
                do throws(StenoError) {
                    // Ahead of the audio, so that a model that is missing is said at once.
                    try await analyzer.prepareToAnalyze(in: analyzerFormat)
                    try await analyzer.analyzeSequence(LiveInputSequence(inputs: inputs))
                } catch {
                    try? await analyzer.finalizeAndFinish()
                    return error as StenoError?
                }
                do throws(StenoError) { try await analyzer.finalizeAndFinish() } catch { return error }
                return nil
            }
            for try await result in transcriber.results {
                transcript.apply(result)
                output.publish(result)
            }
            if let error = await feeding.value { throw error }
        } catch {
            transcriptionError = error
            await analyzer?.cancelAndFinishNow()
            // Nobody will take what waits; the recorder goes on without it.
            recorder.abandonAnalysis()
            output.finish(.failed(error))
        }
    }

    // MARK: Control

    /// Leaves out what comes from now on: it is neither recorded nor transcribed, and becomes a gap of kind `pause`.
    public func pause() {
        guard phase == .capturing else { return }
        recorder?.setPaused(true)
        phase = .paused
    }

    public func resume() {
        guard phase == .paused else { return }
        recorder?.setPaused(false)
        phase = .capturing
    }

    /// Ends the capture, completes the file, transcribes what it holds, and returns everything.
    ///
    /// However far the recognizer lags, nothing is lost; ``status`` shows the lag, and ``cutShort()`` ends the wait.
    /// Called again it waits for the same end. During ``start()`` it ends that.
    public func stop() async -> Draft {
        if phase == .ready { phase = .ended }
        // What the source holds is still recorded. Closing a device may block.
        await Task(executorPreference: BlockingExecutor(label: "steno.stop")) { [source] in source.stop() }.value
        _ = await starting?.value
        await work?.value
        output.finish(.finished)
        return await draft()
    }

    /// Ends a drain early: what the recognizer has taken becomes final, the rest stays recorded and not transcribed.
    public func cutShort() {
        recorder?.abandonAnalysis()
    }

    /// Where the session is. May be asked at any time, also while ``stop()`` drains.
    public var status: Status {
        get async {
            let progress = recorder?.currentProgress ?? LiveRecorder.Progress()
            var lag = MediaTime.zero
            if let analyzer, phase != .ended {
                lag = max(.zero, progress.duration - (await analyzer.acceptedThrough ?? .zero))
            }
            return Status(
                phase: phase, format: format, duration: progress.duration, lag: lag, behind: progress.lag.behind,
                levels: source.levels, driftFromSource: await inputs?.driftFromSource ?? 0, timing: source.timing,
                statistics: source.statistics, events: progress.events, interruption: progress.interruption,
                captureError: captureError ?? progress.captureError,
                recordingError: recordingError ?? progress.fileError, transcriptionError: transcriptionError)
        }
    }

    private func draft() async -> Draft {
        let progress = recorder?.currentProgress ?? LiveRecorder.Progress()
        var transcript = transcript
        transcript.duration = progress.duration
        for event in progress.events { transcript.events.note(event) }
        // With `keep`, the converter and the analyzer see the gaps that the recorder noted.
        for event in await inputs?.events ?? [] where event.kind == .dropped || event.kind == .channels {
            transcript.events.note(event)
        }
        var untranscribed: MediaTimeRange?
        if transcriber != nil {
            let accepted = await analyzer?.acceptedThrough ?? .zero
            // Less than one frame of the recognizer is rounding.
            if progress.duration - accepted > MediaTime(value: 1, timescale: 8000) {
                let rest = MediaTimeRange(start: accepted, end: progress.duration)
                untranscribed = rest
                transcript.events.note(TimelineEvent(.notTranscribed, range: rest))
            }
        }
        return Draft(
            recording: recording, transcript: transcript, duration: progress.duration, status: await status,
            untranscribed: untranscribed)
    }
}

extension TimelineEvent.Kind {
    /// Audio that was transcribed late: it had to wait while the recognizer was slower than real time, or loaded its
    /// model. Nothing of it is lost.
    public static let behind = Self(rawValue: "behind")
    /// Audio that was recorded and not transcribed.
    public static let notTranscribed = Self(rawValue: "notTranscribed")
}
