import Foundation
import StenoAnalysis
import StenoAudio
import StenoWhisper
import Synchronization
import Testing

/// What Scripts/bootstrap made, and speech made on the spot.
enum Fixtures {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../.steno").standardized
    static let modelPath = root.appending(path: "models/ggml-tiny.en.bin").path
    static let detectorPath = root.appending(path: "models/ggml-silero-v6.2.0.bin").path

    static let model = Result { try WhisperModel(path: modelPath) }
    /// The same with one token more, the last of the text twice: whisper.cpp takes that for a model of 99 languages. Its
    /// languages were never trained, so German, and the token to translate, are made what such a model says first: 0.00 s.
    static let multilingual = Result {
        var data = try Data(contentsOf: URL(filePath: modelPath))
        let name = try #require(data.range(of: Data("decoder.token_embedding.weight".utf8)))
        func row(_ token: Int) -> Range<Int> {
            let size = 384 * MemoryLayout<Float16>.size
            return name.upperBound + token * size..<name.upperBound + (token + 1) * size
        }
        data.insert(contentsOf: data[row(50_255)], at: row(50_256).lowerBound)
        for token in [50_261, 50_358] { data.replaceSubrange(row(token), with: data[row(50_364)]) }
        // The low bytes of the header's first number and of the tensor's last dimension.
        for count in [4, name.lowerBound - 4] { data[count] += 1 }
        let file = try temporary("bin")
        defer { try? FileManager.default.removeItem(at: file) }
        try data.write(to: file)
        return try WhisperModel(path: file.path)
    }
    static let detector = Result { try SileroModel(path: detectorPath) }

    static let jfk = Result { try samples(["sox", root.appending(path: "samples/jfk.wav").path]) }

    /// A synthetic voice, without the silence around it.
    static func speech(_ text: String, speed: Int = 130) throws -> [Int16] {
        let file = try temporary("wav")
        defer { try? FileManager.default.removeItem(at: file) }
        _ = try run(["espeak-ng", "-v", "en-us", "-s", "\(speed)", "-w", file.path, text])
        let spoken = try samples(["sox", file.path])
        let loud = spoken.indices.filter { abs(Int(spoken[$0])) > 300 }
        return Array(spoken[try #require(loud.first)...(try #require(loud.last))])
    }

    static func silence(_ seconds: Double) -> [Int16] { [Int16](repeating: 0, count: Int(seconds * 16_000)) }

    /// White noise at a level below full scale.
    static func noise(_ seconds: Double, decibels: Double) -> [Int16] {
        var random = SystemRandomNumberGenerator()
        let amplitude = 32768 * pow(10, decibels / 20) * 3.0.squareRoot()
        return (0..<Int(seconds * 16_000)).map { _ in Int16(Double.random(in: -amplitude...amplitude, using: &random)) }
    }

    /// The lines that whisper.cpp's command line makes of the same samples, without their times.
    static func commandLine(_ samples: [Int16], threads: Int = 1) throws -> [String] {
        let (raw, wave) = (try temporary("raw"), try temporary("wav"))
        defer { for file in [raw, wave] { try? FileManager.default.removeItem(at: file) } }
        try unsafe samples.withUnsafeBytes { unsafe Data($0) }.write(to: raw)
        _ = try run(["sox", "-t", "s16", "-r", "16000", "-c", "1", raw.path, wave.path])
        let tool = root.appending(path: "bin/whisper-cli").path
        let output = try run([tool, "-m", modelPath, "-t", "\(threads)", "-np", wave.path])
        return String(decoding: output, as: UTF8.self).split(separator: "\n").compactMap { line in
            line.firstIndex(of: "]").map { line[$0...].dropFirst().trimmingCharacters(in: .whitespaces) }
        }
    }

    static func temporary(_ type: String) throws -> URL {
        FileManager.default.temporaryDirectory.appending(path: "steno-\(UUID().uuidString).\(type)")
    }

    private static func samples(_ command: [String]) throws -> [Int16] {
        let data = try run(command + ["-r", "16000", "-c", "1", "-t", "s16", "-"])
        return stride(from: 0, to: data.count - 1, by: 2).map {
            Int16(bitPattern: UInt16(data[$0]) | UInt16(data[$0 + 1]) << 8)
        }
    }

    private static func run(_ command: [String]) throws -> Data {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(command)")
        return data
    }
}

/// One recognizer, driven as the analyzer drives it.
final class Session: Sendable {
    let recognized = Mutex<[TranscriptionResult]>([])
    let reported = Mutex<[TimelineEvent]>([])
    let isCancelled = Atomic(false)

    func recognizer(_ transcriber: WhisperTranscriber, format: SampleFormat = .int16) throws -> any SpeechRecognizer {
        let format = AudioFormat(sampleRate: 16_000, channelLayout: .mono, sampleFormat: format)
        return try transcriber.makeRecognizer(
            RecognizerSession(
                format: format, sink: { result in self.recognized.withLock { $0.append(result) } },
                reporter: { event in self.reported.withLock { $0.append(event) } },
                cancelled: { self.isCancelled.load(ordering: .relaxed) }))
    }

    var results: [TranscriptionResult] { recognized.withLock { $0 } }
    var events: [TimelineEvent] { reported.withLock { $0 } }
}

extension SpeechRecognizer {
    /// Feeds `samples` in buffers of `chunk` frames, the first at frame `start`.
    func accept<S: AudioSample>(_ samples: [S], chunk: Int = 1600, start: Int = 0) throws {
        for first in stride(from: 0, to: samples.count, by: chunk) {
            let part = Array(samples[first..<min(first + chunk, samples.count)])
            try accept(
                AnalyzerInput(
                    buffer: AudioBuffer(interleaved: part, sampleRate: 16_000),
                    bufferStartTime: MediaTime(frames: Int64(start + first), sampleRate: 16_000)))
        }
    }
}

/// A transcriber on one thread, which decodes the same and does not suffer from what else the machine does.
func makeTranscriber(
    model: Result<WhisperModel, any Error> = Fixtures.model, detector: Bool = false,
    _ change: (inout WhisperTranscriber.Options) -> Void = { _ in }
) throws -> WhisperTranscriber {
    var options = WhisperTranscriber.Options()
    options.threads = 1
    change(&options)
    return try WhisperTranscriber(
        model: model.get(), detector: detector ? Fixtures.detector.get() : nil, options: options)
}

func transcribe(_ samples: [Int16], detector: Bool = false, chunk: Int = 1600) throws -> [TranscriptionResult] {
    let session = Session()
    let recognizer = try session.recognizer(makeTranscriber(detector: detector))
    try recognizer.accept(samples, chunk: chunk)
    try recognizer.finish()
    return session.results
}

/// Letters and digits of lower-case words, for comparing texts.
func plainWords(_ texts: [String]) -> [String] {
    texts.joined(separator: " ").lowercased().split(separator: " ")
        .map { $0.filter { $0.isLetter || $0.isNumber } }.filter { !$0.isEmpty }
}

/// Words inserted, deleted or replaced.
func editDistance(_ a: [String], _ b: [String]) -> Int {
    var row = Array(0...b.count)
    for (i, word) in a.enumerated() {
        var diagonal = row[0]
        row[0] = i + 1
        for j in b.indices {
            (diagonal, row[j + 1]) = (row[j + 1], min(row[j + 1] + 1, row[j] + 1, diagonal + (word == b[j] ? 0 : 1)))
        }
    }
    return row[b.count]
}
