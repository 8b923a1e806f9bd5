import Foundation
import Steno
import StenoWhisper
import TestSupport
import Testing

func printTranscript(of path: String, model modelPath: String) async throws {
    let model = try WhisperModel(path: modelPath)
    let transcriber = try WhisperTranscriber(model: model)
    let transcript = try await FileTranscription(path: path, transcriber: transcriber).run()
    for segment in transcript.segments {
        print(segment.range.start.seconds, segment.text)
    }
}

func record(
    _ source: CaptureSource, to path: String, for duration: Duration, model: WhisperModel, detector: SileroModel
) async throws {
    var options = WhisperTranscriber.Options()
    options.streaming = .lowLatency
    let session = LiveSession(
        source: source, recording: .init(path: path),
        transcriber: try WhisperTranscriber(model: model, detector: detector, options: options))
    try await session.start()
    Task {
        for try await result in session.results { print(result.isFinal ? "" : "  …", result.text) }
    }
    try await Task.sleep(for: duration)
    let draft = await session.stop()
    print(draft.duration.seconds, draft.transcript.text)
}

/// The examples of the README are the functions above, word for word; so they compile, and here they run.
extension TranscribeTests {
    @Test func theReadmeShowsWhatCompiles() throws {
        let readme = try String(contentsOfFile: root + "/README.md", encoding: .utf8)
        let source = try String(contentsOfFile: #filePath, encoding: .utf8)
        let blocks = readme.split(separator: "```swift\n").dropFirst().compactMap { $0.split(separator: "```").first }
        let examples = blocks.filter { !$0.contains("swift-tools-version") }
        #expect(examples.count == 2)
        for example in examples {
            let function = try #require(example.range(of: "func ")).lowerBound
            #expect(source.contains(example[function...]))
            for line in example[..<function].split(separator: "\n") { #expect(source.contains(line + "\n")) }
        }
    }

    @Test func theReadmeTranscribesAFile() async throws {
        try await printTranscript(of: yes(), model: model)
    }

    @Test func theReadmeRecords() async throws {
        let (file, recording) = (try yes(), try #require(folder).path("recording.wav"))
        var configuration = CaptureSource.Configuration()
        configuration.dropsWhenFull = false
        let source = CaptureSource(configuration: configuration) { () throws(StenoError) in
            try AudioFileSource(path: file)
        }
        try await record(
            source, to: recording, for: .seconds(1), model: WhisperModel(path: model),
            detector: SileroModel(path: root + "/.steno/models/ggml-silero-v6.2.0.bin"))
        #expect(try AudioFileSource(path: recording).duration == AudioFileSource(path: file).duration)
    }
}
