package import ExampleSupport
import Foundation
package import Steno
import StenoVosk
import StenoWhisper

/// A recognizer as it is named on a command line.
package struct RecognizerChoice: Sendable {
    package enum Backend: String, CaseIterable, Sendable { case whisper, vosk }

    private enum Preset: String, CaseIterable {
        case lowLatency = "low-latency"
        case balanced, accurate

        var streaming: WhisperTranscriber.Streaming {
            switch self {
            case .lowLatency: .lowLatency
            case .balanced: .balanced
            case .accurate: .accurate
            }
        }
    }

    package var backend = Backend.whisper
    /// Threads for decoding; nil for one for each core.
    package var threads: Int?
    package var usesDetector = true
    private var preset: Preset?
    private var keepsEveryStep = false
    private var model: String?
    private var language: String?

    package init() {}

    package static let help = """
          --backend NAME      whisper (whisper.cpp) or vosk (libvosk) (default: whisper)
          --model NAME|PATH   for whisper a model file, or a name such as tiny.en for ggml-tiny.en.bin in $STENO_MODELS,
                              ./.steno/models or ~/.local/share/steno/models (default: tiny.en); for vosk the folder of
                              a model (default: ./.steno/vosk/model-ko)
          --language CODE     the language spoken, such as en or pt-BR (default: the model's, or detected); not for vosk,
                              whose models know one
        """

    package static let liveHelp = """
          --preset PRESET     text sooner, or with fewer errors: low-latency, balanced or accurate (default: low-latency);
                              not for vosk
          --every-step        decode at every step, however long it takes, so that a replay gives the same text on every
                              machine; not for vosk
        """

    /// Takes the option if it is one of those above; of the live ones only if `isLive`.
    package mutating func take(
        _ option: String, from reader: inout ArgumentReader, isLive: Bool = false
    ) throws(ArgumentReader.UsageError) -> Bool {
        switch option {
        case "--backend": backend = try reader.choice()
        case "--model": model = try reader.value()
        case "--language": language = try reader.value()
        case "--preset" where isLive: preset = try reader.choice()
        case "--every-step" where isLive: keepsEveryStep = true
        default: return false
        }
        return true
    }

    /// Throws when something was asked for that the back end cannot do. To be called once all options are read.
    package func check() throws(ArgumentReader.UsageError) {
        guard backend == .vosk else { return }
        let asked = [
            "--language": language != nil, "--threads": threads != nil, "--no-detector": !usesDetector,
            "--preset": preset != nil, "--every-step": keepsEveryStep,
        ]
        if let option = asked.filter(\.value).keys.min() {
            throw .init("\(option) is not for --backend vosk")
        }
    }

    /// Throws where the model is there and does not know the language that was asked for. That it is missing or damaged
    /// keeps nobody from recording. Blocks.
    package func checkLanguage() throws(StenoError) {
        guard backend == .whisper, let language else { return }
        do throws(StenoError) {
            try WhisperTranscriber.check(language: language, ofModelAt: modelPath)
        } catch {
            if error.code == .unsupportedLanguage { throw error }
        }
    }

    /// Loads the model; each call of what comes back makes a module for one session. Blocks.
    ///
    /// - Parameter isLive: Whether volatile text is shown.
    package func load(
        isLive: Bool
    ) throws(StenoError) -> @Sendable () throws(StenoError) -> any TranscriberModule {
        switch backend {
        case .whisper:
            let model = try WhisperModel(path: modelPath)
            let detector = usesDetector ? try SileroModel(path: Models.detectorPath()) : nil
            var options = WhisperTranscriber.Options(language: language)
            options.threads = threads
            if isLive {
                options.streaming = (preset ?? .lowLatency).streaming
                options.streaming?.keepsEveryStep = keepsEveryStep
            }
            return { [options] () throws(StenoError) in
                try WhisperTranscriber(model: model, detector: detector, options: options)
            }
        case .vosk:
            let model = try VoskModel(path: modelPath, library: VoskLibrary(path: Self.voskLibraryPath))
            var options = VoskTranscriber.Options()
            options.volatileResults = isLive ? .text : .off
            return { [options] () throws(StenoError) in try VoskTranscriber(model: model, options: options) }
        }
    }

    /// What the text of a file depends on besides its audio, for a checkpoint.
    package var identity: String {
        let path = modelPath
        let size = (try? URL(fileURLWithPath: path).resourceValues(forKeys: [.fileSizeKey]))?.fileSize ?? 0
        let numbers = threads.map(String.init) ?? "all"
        return "\(backend.rawValue) \(path) (\(size)), language \(language ?? "detected"), detector \(usesDetector), "
            + "threads \(numbers)"
    }

    private var modelPath: String {
        switch backend {
        case .whisper: Models.path(of: model ?? "tiny.en")
        case .vosk: model ?? ".steno/vosk/model-ko"
        }
    }

    /// The library that Scripts/bootstrap-vosk brought, unless another one is named; nil leaves it to the loader.
    private static var voskLibraryPath: String? {
        let path = ".steno/vosk/lib/libvosk.so"
        let isNamed = ProcessInfo.processInfo.environment[VoskLibrary.environmentVariable] != nil
        return !isNamed && FileManager.default.fileExists(atPath: path) ? path : nil
    }
}

/// A transcriber that loads its model on its own thread, so that a recording starts before it is loaded, and goes on when
/// it is missing.
package final class LoadingTranscriber: TranscriberModule {
    package let output = ModuleOutput<TranscriptionResult>()
    package let compatibleAudioFormats = [
        AudioFormat(sampleRate: 16000, channelLayout: .mono, sampleFormat: .float32)
    ]
    package let capabilities: TranscriberCapabilities
    private let choice: RecognizerChoice

    package init(_ choice: RecognizerChoice) {
        self.choice = choice
        capabilities = [.wordTimes, .confidence, .volatileResults]
    }

    package func makeRecognizer(
        _ session: RecognizerSession<TranscriptionResult>
    ) throws -> any SpeechRecognizer {
        try choice.load(isLive: true)().makeRecognizer(session)
    }
}
