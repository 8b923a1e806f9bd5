import Foundation
import StenoAnalysis
import StenoAudio
import Testing

@testable import StenoVosk

/// What Scripts/bootstrap-vosk brings, and what is made of it.
enum Fixture {
    static let vosk = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: ".steno/vosk")
    static let libraryPath = vosk.appending(path: "lib/libvosk.so").path
    static let modelPath = vosk.appending(path: "model-ko").path
    static let library = Result { () throws(StenoError) in try VoskLibrary(path: libraryPath) }
    static let model = Result { () throws(StenoError) in try VoskModel(path: modelPath, library: library.get()) }

    /// The same model without the noise that it adds to its input, so that equal audio gives equal results.
    static let steadyModel = Result {
        let folder = try modelCopy { folder in
            let configuration = folder.appending(path: "conf/mfcc.conf")
            let text = try String(contentsOf: configuration, encoding: .utf8)
            try FileManager.default.removeItem(at: configuration)
            try (text + "\n--dither=0\n").write(to: configuration, atomically: true, encoding: .utf8)
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        return try VoskModel(path: folder.path, library: library.get())
    }

    static func temporaryFolder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appending(path: "steno-vosk-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }

    /// A folder of links to the model's files, changed by `change`.
    static func modelCopy(_ change: (URL) throws -> Void) throws -> URL {
        let folder = try temporaryFolder()
        for file in try FileManager.default.subpathsOfDirectory(atPath: modelPath) {
            let (source, target) = ("\(modelPath)/\(file)", folder.appending(path: file))
            if try FileManager.default.attributesOfItem(atPath: source)[.type] as? FileAttributeType == .typeDirectory {
                try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
            } else {
                try FileManager.default.createDirectory(
                    at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
                try FileManager.default.createSymbolicLink(atPath: target.path, withDestinationPath: source)
            }
        }
        try change(folder)
        return folder
    }
}

/// Korean speech from a synthesizer, as 16-bit samples. The model reads it badly, but as words.
func speech(_ text: String = "조금만 생각을 하면서", sampleRate: Int = 16000) throws -> [Int16] {
    let folder = try Fixture.temporaryFolder()
    defer { try? FileManager.default.removeItem(at: folder) }
    let (spoken, samples) = (folder.appending(path: "spoken.wav").path, folder.appending(path: "samples.raw"))
    try run("espeak-ng", "-v", "ko", "-s", "130", "-w", spoken, text)
    try run("sox", "-R", "-D", "-v", "0.5", spoken, "-r", "\(sampleRate)", "-b", "16", "-e", "signed", samples.path)
    return try unsafe Data(contentsOf: samples).withUnsafeBytes { unsafe Array($0.bindMemory(to: Int16.self)) }
}

/// A quiet room, the same at each call: without the noise that a model adds it takes digital silence for speech.
func silence(seconds: Double, sampleRate: Int = 16000) -> [Int16] {
    var state: UInt32 = 1
    return (0..<Int(seconds * Double(sampleRate))).map { _ in
        state = state &* 1_664_525 &+ 1_013_904_223
        return Int16(state >> 27) - 16
    }
}

func run(_ command: String...) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "\(command)")
}

/// A recognizer and what it sent.
final class Session {
    final class Results: Sendable {
        let all = Lock<[TranscriptionResult]>([])
    }

    let format: AudioFormat
    let recognizer: any SpeechRecognizer
    private let sent: Results

    init(
        _ transcriber: VoskTranscriber, sampleRate: Int = 16000, sampleFormat: SampleFormat = .int16,
        cancelled: @escaping @Sendable ([TranscriptionResult]) -> Bool = { _ in false }
    ) throws {
        let sent = Results()
        format = AudioFormat(sampleRate: sampleRate, channelCount: 1, sampleFormat: sampleFormat)
        self.sent = sent
        recognizer = try transcriber.makeRecognizer(
            RecognizerSession(
                format: format, sink: { result in sent.all.withLock { $0.append(result) } },
                cancelled: { cancelled(sent.all.withLock { $0 }) }))
    }

    var results: [TranscriptionResult] { sent.all.withLock { $0 } }
    var finals: [TranscriptionResult] { results.filter(\.isFinal) }
    var words: [TranscribedWord] { finals.flatMap(\.words) }

    func accept<Sample: AudioSample>(_ samples: [Sample], at start: MediaTime? = nil) throws {
        let buffer = AudioBuffer(interleaved: samples, sampleRate: format.sampleRate)
        try recognizer.accept(AnalyzerInput(buffer: buffer, bufferStartTime: start))
    }
}

/// All of the audio through one session.
func transcribe<Sample: AudioSample>(
    _ samples: [Sample], with transcriber: VoskTranscriber, sampleRate: Int = 16000
) throws -> Session {
    let session = try Session(transcriber, sampleRate: sampleRate, sampleFormat: Sample.sampleFormat)
    try session.accept(samples)
    try session.recognizer.finish()
    return session
}

/// Words in order, each inside `bounds`, and the results in order too.
func expectOrder(_ session: Session, within bounds: MediaTimeRange, sourceLocation: SourceLocation = #_sourceLocation) {
    var (end, finalEnd) = (bounds.start, bounds.start)
    for result in session.finals {
        #expect(result.range.start >= finalEnd && result.range.end <= bounds.end, sourceLocation: sourceLocation)
        finalEnd = result.range.end
        for word in result.words {
            let range = word.range
            #expect(range.map { $0.start >= end && result.range.contains($0) } == true, sourceLocation: sourceLocation)
            end = range?.end ?? end
        }
    }
}

func time(_ seconds: Double) -> MediaTime { MediaTime(value: Int64(seconds * 16000), timescale: 16000) }

func range(_ start: Double, _ end: Double) -> MediaTimeRange { MediaTimeRange(start: time(start), end: time(end)) }
