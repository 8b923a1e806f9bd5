import ExampleSupport
import Foundation
import Steno
import StenoWhisper

/// A Whisper transcriber that loads its model on its own thread, so that the recording starts before it is loaded, and
/// goes on when it is missing.
final class LoadingTranscriber: TranscriberModule {
    let output = ModuleOutput<TranscriptionResult>()
    let compatibleAudioFormats = [AudioFormat(sampleRate: 16000, channelLayout: .mono, sampleFormat: .float32)]
    let capabilities: TranscriberCapabilities = [.wordTimes, .confidence]
    private let model: String
    private let options: WhisperTranscriber.Options

    init(model: String, language: String?) {
        self.model = model
        var options = WhisperTranscriber.Options(language: language)
        // A decode with as many threads as cores collapses when anything else runs.
        options.threads = max(1, ProcessInfo.processInfo.activeProcessorCount - 1)
        self.options = options
    }

    func makeRecognizer(_ session: RecognizerSession<TranscriptionResult>) throws -> any SpeechRecognizer {
        let model = try WhisperModel(path: Models.path(of: model))
        let detector = try SileroModel(path: Models.detectorPath())
        return try WhisperTranscriber(model: model, detector: detector, options: options).makeRecognizer(session)
    }
}
