import Foundation
import Steno
import StenoTesting
import StenoVosk
import StenoWhisper
import Testing

/// Two real engines and a scripted module on one analyzer: each hears the same audio in its own format and says what it
/// says alone.
@Suite(.timeLimit(.minutes(2)), .serialized)
struct ModulesTests {
    @Test func severalEnginesOnOneAnalyzer() async throws {
        let fixture = try Fixture()
        defer { fixture.remove() }
        func modules() throws -> [any TranscriberModule] { try [fixture.whisper(), fixture.vosk(), counter()] }
        let together = try await results(of: modules())
        var alone: [[TranscriptionResult]] = []
        for module in try modules() { try await alone += results(of: [module]) }
        for (alone, together) in zip(alone, together) { #expect(finals(alone) == finals(together)) }
        #expect(
            together[0].map(\.text).joined(separator: " ").lowercased().contains("what your country can do for you"))
        #expect(together[1].contains { !$0.isFinal } && !finals(together[1]).isEmpty)
        #expect(finals(together[2]).map(\.text) == ["88000 frames at 8000 Hz"])
    }

    /// Fed in pieces in real time, each module is finalized and read on its own; one that fails takes none along.
    @Test func severalEnginesLive() async throws {
        let fixture = try Fixture()
        defer { fixture.remove() }
        let failing = ScriptedTranscriber { call, _ in
            if case .accept(let input) = call, input.bufferStartTime ?? .zero > MediaTime(value: 2, timescale: 1) {
                throw StenoError(.engineFailed, "out of order")
            }
        }
        let (whisper, vosk, counter) = try (fixture.whisper(isLive: true), fixture.vosk(), counter())
        let detector = try SileroDetector(model: fixture.silero)
        let analyzer = SpeechAnalyzer(
            modules: [whisper, vosk, detector, counter, failing] as [any SpeechModule],
            options: .init(moduleFailurePolicy: .dropModule),
            resampler: SoxrResamplerFactory())
        try await analyzer.prepareToAnalyze(in: sessionFormat)
        async let heard = collect(vosk)
        let start = ContinuousClock.now
        let (inputs, continuation) = AsyncStream.makeStream(of: AnalyzerInput.self)
        try await analyzer.start(inputSequence: inputs)
        for (index, input) in try pieces().enumerated() {
            try await Task.sleep(until: start + .milliseconds(100 * (index + 1)))
            continuation.yield(input)
        }
        continuation.finish()
        try await analyzer.finalizeAndFinishThroughEndOfInput()
        let text = try await finals(collect(whisper)).map(\.text).joined(separator: " ")
        #expect(text.lowercased().contains("what you can do for your country"))
        let speech = try await collect(detector).filter(\.isFinal).map(\.range)
        #expect((2...6).contains(speech.count) && (speech.last?.end.seconds ?? 0) > 10)
        #expect(try await heard.contains { !$0.isFinal })
        #expect(try await finals(collect(counter)).map(\.text) == ["88000 frames at 8000 Hz"])
        #expect(await analyzer.moduleFailures.map(\.error.code) == [.engineFailed])
        await #expect(throws: StenoError.self) { try await collect(failing) }
    }

    private let sessionFormat = AudioFormat(sampleRate: 48000, channelCount: 1, sampleFormat: .float32)

    private func results(of modules: [any TranscriberModule]) async throws -> [[TranscriptionResult]] {
        let analyzer = SpeechAnalyzer(modules: modules, resampler: SoxrResamplerFactory())
        let pieces = try pieces()
        let inputs = AsyncStream { continuation in
            for piece in pieces { continuation.yield(piece) }
            continuation.finish()
        }
        try await analyzer.analyzeSequence(inputs)
        try await analyzer.finalizeAndFinish()
        var results: [[TranscriptionResult]] = []
        for module in modules { try await results.append(collect(module)) }
        return results
    }

    /// The sample at 48 kHz, a tenth of a second each.
    private func pieces() throws -> [AnalyzerInput] {
        let file = try AudioFileSource(path: samplePath)
        let converter = AnalyzerInputConverter(analyzerFormat: sessionFormat, resampler: SoxrResamplerFactory())
        var buffer = AudioBuffer(format: file.format, frameCapacity: file.format.sampleRate / 10)
        var inputs: [AnalyzerInput] = []
        while try file.read(into: &buffer) == .frames { inputs += try converter.convert(buffer) }
        return try inputs + converter.finish()
    }

    private func collect<Module: SpeechModule>(_ module: Module) async throws -> [Module.Result] {
        var results: [Module.Result] = []
        for try await result in module.results { results.append(result) }
        return results
    }

    private func finals(_ results: [TranscriptionResult]) -> [TranscriptionResult] {
        results.filter { $0.isFinal && !$0.isEmpty }
    }

    /// Takes 8 kHz only and tells at the end how much of it came.
    private func counter() -> ScriptedTranscriber {
        let format = AudioFormat(sampleRate: 8000, channelCount: 1, sampleFormat: .int16)
        let count = Lock(Int64(0))
        return ScriptedTranscriber(formats: [format]) { call, session in
            switch call {
            case .accept(let input): count.withLock { $0 += Int64(input.buffer.frameCount) }
            case .finish:
                let frames = count.withLock { $0 }
                let range = MediaTimeRange(start: .zero, end: MediaTime(frames: frames, sampleRate: 8000))
                let text = "\(frames) frames at \(session.format.sampleRate) Hz"
                session.send(TranscriptionResult(range: range, text: text, isFinal: true))
            default: break
            }
        }
    }
}

private let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../.steno").standardized
private let samplePath = root.appending(path: "samples/jfk.wav").path

/// The engines with their models, and Vosk's without the noise that it adds to its input, so that equal audio gives equal
/// results.
private struct Fixture {
    private let folder: URL
    private let whisperModel: WhisperModel
    let silero: SileroModel
    private let voskModel: VoskModel

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "steno-vosk-\(UUID())")
        try FileManager.default.copyItem(at: root.appending(path: "vosk/model-ko"), to: folder)
        let features = folder.appending(path: "conf/mfcc.conf")
        let text = try String(contentsOf: features, encoding: .utf8)
        try (text + "\n--dither=0\n").write(to: features, atomically: true, encoding: .utf8)
        let library = try VoskLibrary(path: root.appending(path: "vosk/lib/libvosk.so").path)
        voskModel = try VoskModel(path: folder.path, library: library)
        silero = try SileroModel(path: root.appending(path: "models/ggml-silero-v6.2.0.bin").path)
        whisperModel = try WhisperModel(path: root.appending(path: "models/ggml-tiny.en.bin").path)
    }

    func whisper(isLive: Bool = false) throws -> WhisperTranscriber {
        var options = WhisperTranscriber.Options()
        options.threads = 1
        if isLive { options.streaming = .balanced }
        options.streaming?.keepsEveryStep = true
        return try WhisperTranscriber(model: whisperModel, detector: isLive ? silero : nil, options: options)
    }

    func vosk() throws -> VoskTranscriber { try VoskTranscriber(model: voskModel) }

    func remove() { try? FileManager.default.removeItem(at: folder) }
}
