public import StenoAudio

/// One kind of analysis, attached to one ``SpeechAnalyzer``: what a back end implements.
///
/// A module is cheap and holds options; the work is done by the ``SpeechRecognizer`` that it makes, on a thread of its
/// own that may block. The core owns everything around it: the queue, the time base, order, clamping, cancellation, and
/// the sequence of results.
public protocol SpeechModule: AnyObject, Sendable {
    associatedtype Result: SpeechModuleResult

    /// Formats that the module takes, best first.
    var compatibleAudioFormats: [AudioFormat] { get }

    /// The module's result channel: `let output = ModuleOutput<Result>()`.
    var output: ModuleOutput<Result> { get }

    /// Loads what the module needs (a model) and makes the recognizer of one session. Blocks; called on the module's
    /// own thread, once for each session.
    func makeRecognizer(_ session: RecognizerSession<Result>) throws -> any SpeechRecognizer
}

extension SpeechModule {
    /// The module's results; the same sequence at each access. For one reader.
    public var results: ModuleOutput<Result>.Results { output.results }

    func endResults(_ reason: SpeechAnalyzer.FinishReason) { output.finish(reason) }

    /// Ends the results of a module that never got a recognizer.
    func endUnused(_ reason: SpeechAnalyzer.FinishReason) {
        if output.attach() { endResults(reason) }
    }
}

/// A module that turns speech into text.
public protocol TranscriberModule: SpeechModule where Result == TranscriptionResult {
    /// What the engine can do. Asking for more is an error when the module is made, not silence (law A7).
    var capabilities: TranscriberCapabilities { get }

    /// A transcriber for later audio of the same recording, of which earlier results said that it is in `language`, a BCP 47
    /// code: one that does not find that out again, if this one would. Else, and by default, itself.
    func assuming(language: String) throws(StenoError) -> any TranscriberModule
}

extension TranscriberModule {
    public func assuming(language: String) throws(StenoError) -> any TranscriberModule { self }
}

/// What a transcriber can do, as data.
public struct TranscriberCapabilities: OptionSet, Sendable, Hashable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let volatileResults = Self(rawValue: 1 << 0)
    public static let wordTimes = Self(rawValue: 1 << 1)
    public static let confidence = Self(rawValue: 1 << 2)
    public static let alternatives = Self(rawValue: 1 << 3)
    public static let contextualStrings = Self(rawValue: 1 << 4)
    public static let languageDetection = Self(rawValue: 1 << 5)
    public static let translation = Self(rawValue: 1 << 6)
}

/// The recognizer of one session. All calls come from one thread and may block.
///
/// Results go to ``RecognizerSession/send(_:)`` at any time during a call. Times are those of the buffers that were
/// given, and nothing else.
public protocol SpeechRecognizer: AnyObject {
    /// Takes the next audio. `input.bufferStartTime` is always set. It lies behind the end of the previous buffer when
    /// audio is missing between them. The buffer may be kept.
    func accept(_ input: AnalyzerInput) throws

    /// Sends everything up to `time` as final results, and goes on. `time` is at most the end of what was accepted.
    func finalize(through time: MediaTime) throws

    /// Sends everything that is left as final results. Nothing is called afterwards.
    func finish() throws
}

/// What a recognizer gets from the core for one session.
public final class RecognizerSession<Result: SpeechModuleResult>: Sendable {
    /// The format of every buffer of the session; one of the module's own.
    public let format: AudioFormat
    private let sink: @Sendable (Result) -> Void
    private let reporter: @Sendable (TimelineEvent) -> Void
    private let cancelled: @Sendable () -> Bool

    package init(
        format: AudioFormat, sink: @escaping @Sendable (Result) -> Void,
        reporter: @escaping @Sendable (TimelineEvent) -> Void = { _ in }, cancelled: @escaping @Sendable () -> Bool
    ) {
        self.format = format
        self.sink = sink
        self.reporter = reporter
        self.cancelled = cancelled
    }

    /// Publishes a result. What lies outside the audio is clamped, and what was final already is never said again.
    public func send(_ result: Result) { sink(result) }

    /// Tells what happened to a stretch of the audio: speech that the engine could make nothing of, audio that it skipped.
    /// It reaches ``SpeechAnalyzer/events`` and the transcript. What of it lies outside the audio is clamped; it is no
    /// failure, which is thrown, and no text.
    public func report(_ event: TimelineEvent) { reporter(event) }

    /// Whether the session was cancelled. A long call asks this often enough to return within 200 ms (law A9), from
    /// any thread.
    public var isCancelled: Bool { cancelled() }
}

extension StenoError.Code {
    /// The model is not there.
    public static let modelNotFound = StenoError.Code(rawValue: "model.notFound")
    /// The model is there but cannot be used: truncated, of another kind, damaged.
    public static let modelInvalid = StenoError.Code(rawValue: "model.invalid")
    /// The engine's library is not there or does not fit.
    public static let engineNotFound = StenoError.Code(rawValue: "engine.notFound")
    /// The engine reported a failure.
    public static let engineFailed = StenoError.Code(rawValue: "engine.failed")
    /// The module cannot do what was asked of it.
    public static let unsupportedOption = StenoError.Code(rawValue: "module.unsupportedOption")
    /// The language is unknown to the module.
    public static let unsupportedLanguage = StenoError.Code(rawValue: "module.unsupportedLanguage")
}
