import Foundation
import Steno
import StenoTesting
import Testing
import ToneSpotter

/// Keys of 60 to 100 ms with pauses of 50 to 120 ms, and where each is.
struct Dialling {
    let keys: String
    let sampleRate: Int
    private(set) var samples: [Float]
    private(set) var ranges: [MediaTimeRange] = []

    init(_ keys: String = "0123456789*#ABCD5551", sampleRate: Int = 8000) {
        self.keys = keys
        self.sampleRate = sampleRate
        samples = [Float](repeating: 0, count: sampleRate / 3)
        let (low, high) = ([697.0, 770, 852, 941], [1209.0, 1336, 1477, 1633])
        for (index, key) in keys.enumerated() {
            let position = Array("123A456B789C*0#D").firstIndex(of: key) ?? 0
            let length = sampleRate * (60 + 5 * (index % 9)) / 1000
            let row = TestSignals.sine(
                frequency: low[position / 4], amplitude: 0.2, sampleRate: sampleRate, frameCount: length)
            let column = TestSignals.sine(
                frequency: high[position % 4], amplitude: 0.25, sampleRate: sampleRate, frameCount: length)
            ranges.append(
                MediaTimeRange(
                    start: MediaTime(frames: Int64(samples.count), sampleRate: sampleRate),
                    end: MediaTime(frames: Int64(samples.count + length), sampleRate: sampleRate)))
            samples +=
                zip(row, column).map(+) + [Float](repeating: 0, count: sampleRate * (50 + 10 * (index % 8)) / 1000)
        }
        let noise = TestSignals.noise(amplitude: 0.003, frameCount: samples.count, seed: 1)
        samples = zip(samples, noise).map(+)
    }

    var buffer: AudioBuffer { AudioBuffer(interleaved: samples, sampleRate: sampleRate) }

    func expect(_ results: [TranscriptSegment], sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(results.map(\.text).joined() == keys, sourceLocation: sourceLocation)
        let limit = MediaTime(value: 20, timescale: 1000)
        for (result, range) in zip(results, ranges) {
            let word = try #require(result.words.first?.range, sourceLocation: sourceLocation)
            #expect(max(word.start, range.start) - min(word.start, range.start) < limit, sourceLocation: sourceLocation)
            #expect(max(word.end, range.end) - min(word.end, range.end) < limit, sourceLocation: sourceLocation)
        }
    }
}

@Suite(.timeLimit(.minutes(1)))
struct ToneSpotterTests {
    /// In one line: everything that a back end owes.
    @Test func itKeepsTheLaws() async {
        let speech = Dialling().buffer
        #expect(await checkTranscriber(speech: speech) { ToneSpotter() }.isEmpty)
    }

    @Test func keysOfAFile() async throws {
        let dialling = Dialling()
        let path = FileManager.default.temporaryDirectory.appending(path: "dtmf-\(UUID()).wav").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let file = try AudioFileWriter(path: path, type: .wav, format: dialling.buffer.format)
        try file.write(dialling.buffer)
        try file.close()
        try await dialling.expect(FileTranscription(path: path, transcriber: ToneSpotter()).run().segments)
        // The program lies beside the test bundle.
        let program = Process()
        program.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
            .deletingLastPathComponent().appending(path: "dtmf")
        program.arguments = [path]
        let output = Pipe()
        program.standardOutput = output
        try program.run()
        let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        program.waitUntilExit()
        #expect(text.split(separator: "\n").compactMap { $0.split(separator: " ").last }.joined() == dialling.keys)
    }

    /// As from a device: at 48 kHz, in pieces that come when their time has come.
    @Test func keysAsTheySound() async throws {
        let dialling = Dialling("0800#", sampleRate: 48000)
        let source = CaptureSource { () throws(StenoError) in Line(dialling) }
        let session = LiveSession(source: source, recording: nil, transcriber: ToneSpotter())
        try await session.start()
        var volatile = ""
        for try await result in session.results where !result.isFinal { volatile += result.text }
        try await dialling.expect(session.stop().transcript.segments)
        #expect(!volatile.isEmpty)
    }

    @Test func aKeyThatIsTooShortIsNone() async throws {
        for (milliseconds, expected) in [(20, ""), (24, ""), (40, "1"), (45, "1")] {
            let tones = [697.0, 1209].map { tone in
                TestSignals.sine(frequency: tone, amplitude: 0.2, sampleRate: 8000, frameCount: 8 * milliseconds)
            }
            let silence = [Float](repeating: 0, count: 800)
            #expect(try await keys(in: silence + zip(tones[0], tones[1]).map(+) + silence) == expected)
        }
    }

    /// What has no two tones is no key: noise, one tone, a voice.
    @Test func otherSoundsAreNoKeys() async throws {
        let signals = [
            TestSignals.noise(frameCount: 80_000, seed: 2),
            TestSignals.sine(frequency: 697, sampleRate: 8000, frameCount: 8000),
            TestSignals.babble(sampleRate: 8000, frameCount: 80_000),
        ]
        for signal in signals { #expect(try await keys(in: signal) == "") }
    }

    private func keys(in samples: [Float]) async throws -> String {
        let spotter = ToneSpotter()
        let analyzer = SpeechAnalyzer(modules: [spotter])
        let input = AnalyzerInput(buffer: AudioBuffer(interleaved: samples, sampleRate: 8000))
        try await analyzer.analyzeSequence(
            AsyncStream { continuation in
                continuation.yield(input)
                continuation.finish()
            })
        try await analyzer.finalizeAndFinish()
        return try await spotter.results.filter(\.isFinal).map(\.text).reduce("", +)
    }
}

/// The audio of a dialling as a device gives it.
final class Line: CaptureStream {
    let format: AudioFormat
    private let audio: AudioBuffer
    private var position = 0
    private let start = ContinuousClock.now

    init(_ dialling: Dialling) {
        audio = dialling.buffer
        format = audio.format
    }

    func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead {
        let now = Int((ContinuousClock.now - start) / .milliseconds(1)) * format.sampleRate / 1000
        let end = min(now, position + buffer.frameCapacity, audio.frameCount)
        guard end > position else {
            usleep(10_000)
            return position == audio.frameCount ? .end : .nothing
        }
        if buffer.format != format { buffer = AudioBuffer(format: format, frameCapacity: buffer.frameCapacity) }
        buffer.removeAll()
        buffer.append(audio, frames: position..<end)
        position = end
        return .frames
    }
}
