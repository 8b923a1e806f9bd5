public import StenoAnalysis
public import StenoAudio
import Synchronization

/// A transcriber that does what a closure says, and remembers what it was given: for timing and faults that a real engine
/// cannot be made to show.
public final class ScriptedTranscriber: TranscriberModule {
    /// One call from the core, on the module's thread.
    public enum Call: Sendable {
        case prepare
        case accept(AnalyzerInput)
        case finalize(through: MediaTime)
        case finish
    }

    public typealias Script = @Sendable (Call, RecognizerSession<TranscriptionResult>) throws -> Void

    public let output = ModuleOutput<TranscriptionResult>()
    public let compatibleAudioFormats: [AudioFormat]
    public let capabilities: TranscriberCapabilities
    private let script: Script
    private let keepsCalls: Bool
    private let record = Lock<[Call]>([])

    /// The format that most recognizers take.
    public static let usualFormat = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .float32)

    /// - Parameters:
    ///   - keepsCalls: false where so much audio comes that it must not be kept.
    ///   - script: called for each call; it sends what results it likes and may throw or block.
    public init(
        formats: [AudioFormat] = [usualFormat], capabilities: TranscriberCapabilities = [.volatileResults, .wordTimes],
        keepsCalls: Bool = true, script: @escaping Script = { _, _ in }
    ) {
        self.compatibleAudioFormats = formats
        self.capabilities = capabilities
        self.keepsCalls = keepsCalls
        self.script = script
    }

    /// All calls so far, with their audio.
    public var calls: [Call] { record.withLock { $0 } }

    /// The audio of all buffers so far, where each lay.
    public var accepted: [MediaTimeRange] {
        calls.compactMap { call in
            guard case .accept(let input) = call else { return nil }
            return MediaTimeRange(start: input.bufferStartTime ?? .zero, duration: input.bufferDuration)
        }
    }

    public func makeRecognizer(_ session: RecognizerSession<TranscriptionResult>) throws -> any SpeechRecognizer {
        let recognizer = Recognizer(module: self, session: session)
        try recognizer.call(.prepare)
        return recognizer
    }

    private final class Recognizer: SpeechRecognizer {
        let module: ScriptedTranscriber
        let session: RecognizerSession<TranscriptionResult>

        init(module: ScriptedTranscriber, session: RecognizerSession<TranscriptionResult>) {
            self.module = module
            self.session = session
        }

        func call(_ call: Call) throws {
            if module.keepsCalls { module.record.withLock { $0.append(call) } }
            try module.script(call, session)
        }

        func accept(_ input: AnalyzerInput) throws { try call(.accept(input)) }
        func finalize(through time: MediaTime) throws { try call(.finalize(through: time)) }
        func finish() throws { try call(.finish) }
    }
}

extension TranscriptionResult {
    /// A result from `start` to `end` in seconds.
    public static func scripted(
        _ text: String, from start: Double, to end: Double, isFinal: Bool = true
    ) -> TranscriptionResult {
        TranscriptionResult(
            range: MediaTimeRange(
                start: MediaTime(value: Int64(start * 1000), timescale: 1000),
                end: MediaTime(value: Int64(end * 1000), timescale: 1000)),
            text: text, isFinal: isFinal)
    }
}
