import Foundation
import Steno
import StenoTesting
import Synchronization
import Testing

/// A long transcription that is interrupted goes on where it was, with the result of one that was not.
@Suite("Checkpoints", .timeLimit(.minutes(2)))
struct CheckpointTests {
    /// Where in 21 s of noise there is half a second of silence.
    private static let pauses = [5.45, 11.15, 16.85]

    private let folder = FileManager.default.temporaryDirectory.appending(path: "steno-\(UUID())").path
    private var audio: String { folder + "/talk.wav" }
    private var checkpoint: TranscriptionCheckpoint {
        TranscriptionCheckpoint(path: folder + "/kept", audioPath: audio, identity: "m", sectionDuration: 6)
    }

    private func withAudio(_ body: () async throws -> Void) async throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { remove(folder) }
        var samples = TestSignals.noise(frameCount: 21 * 44100, seed: 5)
        for pause in Self.pauses {
            for frame in Int(pause * 44100)..<Int((pause + 0.5) * 44100) { samples[frame] = 0 }
        }
        let buffer = AudioBuffer(interleaved: samples, sampleRate: 44100)
        let writer = try AudioFileWriter(path: audio, type: .wav, format: buffer.format)
        try writer.write(buffer)
        try writer.close()
        try await body()
    }

    private struct Outcome {
        var transcript: Transcript
        var notices: [String] = []
        /// Where the audio of each section began.
        var starts: [Double] = []
    }

    /// Runs a recognizer whose text tells of all the audio that it ever heard, so that it is the same only if it began
    /// anew at the same places.
    private func run(
        _ checkpoint: TranscriptionCheckpoint?, through limit: Double = .infinity,
        of script: [ScriptedCaptureDevice.Step]? = nil
    ) async throws -> Outcome? {
        let starts = Lock<[Double]>([])
        let options = AnalyzerInputConverter.Options(gapPolicy: .keep)
        let transcription = FileTranscription(checkpoint: checkpoint, options: options) { () throws(StenoError) in
            let memory = Lock((sum: UInt64(0), frames: Int64(0), said: Int64(0)))
            return ScriptedTranscriber(keepsCalls: false) { call, session in
                guard case .accept(let input) = call else { return }
                let start = input.bufferStartTime ?? .zero
                let sent = memory.withLock { memory -> [TranscriptionResult] in
                    if memory.frames == 0 {
                        starts.withLock { $0.append(start.seconds) }
                        memory.frames = start.frames(at: 16000)
                        memory.said = memory.frames
                    }
                    var results: [TranscriptionResult] = []
                    for sample in input.buffer.samples(of: Float.self) {
                        memory.sum = memory.sum &* 31 &+ UInt64(sample.bitPattern)
                        memory.frames += 1
                        guard memory.frames - memory.said == 8000 else { continue }
                        let range = MediaTimeRange(
                            start: MediaTime(frames: memory.said, sampleRate: 16000),
                            end: MediaTime(frames: memory.frames, sampleRate: 16000))
                        let text = String(memory.sum, radix: 36)
                        results.append(
                            TranscriptionResult(
                                range: range, text: text, words: [TranscribedWord(text, range: range, confidence: 0.3)],
                                alternatives: ["\u{2028}\n\"\\"], language: "en",
                                languageConfidence: 0.75, isFinal: true))
                        memory.said = memory.frames
                    }
                    return results
                }
                for result in sent { session.send(result) }
            }
        } source: { () throws(StenoError) in
            guard let script else { return try AudioFileSource(path: audio) }
            return try ScriptedCaptureDevice(format: ScriptedTranscriber.usualFormat, script).open()
        }
        var outcome = Outcome(transcript: Transcript())
        do throws(StenoError) {
            outcome.transcript = try await transcription.run { (update) throws(StenoError) in
                switch update {
                case .result(let result):
                    if result.range.end.seconds > limit { throw StenoError(.cancelled, "enough") }
                case .notice(let text): outcome.notices.append(text)
                case .progress: break
                }
            }
        } catch {
            guard error.code == .cancelled else { throw error }
            return nil
        }
        outcome.starts = starts.withLock { $0 }
        return outcome
    }

    @Test func sectionsBeginInPauses() async throws {
        try await withAudio {
            let outcome = try #require(await run(checkpoint))
            #expect(outcome.starts.count == 4)
            for (start, pause) in zip(outcome.starts, [-0.25] + Self.pauses) {
                #expect(abs(start - pause - 0.25) < 0.05, "\(start)")
            }
            #expect(outcome.transcript.duration == MediaTime(value: 21, timescale: 1))
            #expect(outcome.transcript.events.isEmpty && outcome.notices.isEmpty)
            #expect(try await run(nil)?.starts == [0])
            // The last section is not kept: whoever ends behind it has the result.
            #expect(try await run(checkpoint)?.starts == outcome.starts.suffix(1))
            checkpoint.remove()
            #expect(!FileManager.default.fileExists(atPath: checkpoint.path))
        }
    }

    @Test func itGoesOnWhereItWas() async throws {
        try await withAudio {
            let whole = try #require(await run(checkpoint))
            for limit in stride(from: 0.6, to: 21, by: 1.3) {
                checkpoint.remove()
                #expect(try await run(checkpoint, through: limit) == nil)
                let rest = try #require(await run(checkpoint))
                #expect(rest.transcript == whole.transcript && rest.notices.isEmpty)
                // A section whose last result came may not be kept yet.
                let done = whole.starts.lastIndex { $0 <= limit - 0.5 } ?? 0
                #expect(rest.starts.first ?? 0 >= whole.starts[done], "stopped at \(limit) s")
            }
        }
    }

    /// Audio that is missing is the quietest place, also where it is longer than sections.
    @Test func gaps() async throws {
        try await withAudio {
            let script: [ScriptedCaptureDevice.Step] = [
                .frames(70_000), .gap(300_000, .overrun), .frames(93_000), .gap(1600, .overrun), .frames(50_000),
            ]
            let whole = try #require(await run(checkpoint, of: script))
            let ranges = [(70_000, 370_000), (463_000, 464_600)].map { (start: Int64, end: Int64) in
                MediaTimeRange(
                    start: MediaTime(frames: start, sampleRate: 16000), end: MediaTime(frames: end, sampleRate: 16000))
            }
            #expect(whole.transcript.events.filter { $0.kind == .overrun }.map(\.range) == ranges)
            #expect(whole.transcript.duration == MediaTime(frames: 514_600, sampleRate: 16000))
            #expect(whole.starts.count > 2)
            for limit in [4.3, 24, 28, 31] {
                checkpoint.remove()
                #expect(try await run(checkpoint, through: limit, of: script) == nil)
                #expect(try await run(checkpoint, of: script)?.transcript == whole.transcript)
            }
        }
    }

    /// What was cut off or changed anywhere never shows in the result.
    @Test func damage() async throws {
        try await withAudio {
            let whole = try #require(await run(checkpoint))
            let url = URL(fileURLWithPath: checkpoint.path)
            let intact = try Data(contentsOf: url)
            let header = try #require(intact.firstIndex(of: 10))
            for _ in 0..<40 {
                var damaged = intact
                if Bool.random() {
                    damaged = damaged.prefix(.random(in: header + 1..<damaged.count))
                } else {
                    damaged[.random(in: header + 1..<damaged.count)] ^= UInt8(1) << UInt8.random(in: 0..<8)
                }
                try damaged.write(to: url)
                let outcome = try #require(await run(checkpoint))
                #expect(outcome.transcript == whole.transcript)
                // Begun anew, or an end that was cut off.
                #expect(outcome.starts == whole.starts.suffix(outcome.starts.count))
                #expect(outcome.notices.isEmpty || outcome.starts == whole.starts)
                if damaged.count == intact.count {
                    #expect(outcome.notices.first?.contains("damaged") == true || damaged.last != 10)
                }
                // It was replaced, or completed.
                #expect(try Data(contentsOf: url) == intact)
            }
            // Two lines changed places.
            var lines = intact.split(separator: 10)
            lines.swapAt(1, 2)
            try Data(lines.joined(separator: [10]) + [10]).write(to: url)
            #expect(try await run(checkpoint)?.notices.count == 1)
        }
    }

    @Test func otherAudioOrSettings() async throws {
        try await withAudio {
            let starts = try #require(await run(checkpoint)).starts
            var other = checkpoint
            other.identity = "another model"
            let outcome = try #require(await run(other))
            #expect(outcome.starts == starts && outcome.notices.first?.contains("other settings") == true)
            #expect(try await run(other)?.notices == [])
            other.sectionDuration = 7
            #expect(try await run(other)?.notices.count == 1)
            // Of the same size and length, but newer.
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: 9)], ofItemAtPath: audio)
            #expect(try await run(other)?.notices.count == 1)
        }
    }

    /// Finds out what is spoken, unless it is told.
    private final class Detecting: TranscriberModule {
        let detect: @Sendable () -> String?
        let output = ModuleOutput<TranscriptionResult>()
        let compatibleAudioFormats = [ScriptedTranscriber.usualFormat]
        let capabilities: TranscriberCapabilities = [.languageDetection]

        init(_ detect: @escaping @Sendable () -> String?) { self.detect = detect }

        func assuming(language: String) -> any TranscriberModule { Detecting { language } }

        func makeRecognizer(_ session: RecognizerSession<TranscriptionResult>) throws -> any SpeechRecognizer {
            let language = detect()
            return try ScriptedTranscriber { call, session in
                guard case .accept(let input) = call, let start = input.bufferStartTime else { return }
                let end = start.frames(at: 16000) + Int64(input.buffer.frameCount)
                // How the audio is divided into buffers depends on who waits for whom.
                for second in start.frames(at: 16000) / 16000..<end / 16000 {
                    let range = MediaTimeRange(
                        start: MediaTime(frames: second * 16000 + 15000, sampleRate: 16000),
                        end: MediaTime(frames: second * 16000 + 16000, sampleRate: 16000))
                    session.send(TranscriptionResult(range: range, text: "a", language: language, isFinal: true))
                }
            }.makeRecognizer(session)
        }
    }

    @Test func theLanguageOfTheFirstTextIsThatOfAll() async throws {
        try await withAudio {
            let next = Lock(["mistake", "xx", nil])
            let transcription = FileTranscription(path: audio, checkpoint: checkpoint) { () throws(StenoError) in
                Detecting { next.withLock { $0.popLast() ?? nil } }
            }
            let whole = try await transcription.run()
            #expect(Set(whole.segments.map(\.language)) == [nil, "xx"] && whole.language == "xx")
            // Going on, what is kept has it.
            #expect(try await transcription.run() == whole)
            #expect(next.withLock { $0.count } == 1)
        }
    }

    @Test func sectionsWithoutLength() async throws {
        try await withAudio {
            for duration in [0, -1, .nan, .infinity] {
                var wrong = checkpoint
                wrong.sectionDuration = duration
                let error = await #expect(throws: StenoError.self) { try await run(wrong) }
                #expect(error?.code == .invalidArgument)
            }
        }
    }

    /// What is no checkpoint is nobody's to overwrite, even where a user named it by mistake.
    @Test func aFileOfAnotherKind() async throws {
        try await withAudio {
            let wrong = TranscriptionCheckpoint(path: audio, audioPath: audio, identity: "m", sectionDuration: 6)
            let before = try Data(contentsOf: URL(fileURLWithPath: audio))
            let outcome = try #require(await run(wrong))
            #expect(outcome.notices.first?.contains("no checkpoint") == true)
            wrong.remove()
            #expect(try Data(contentsOf: URL(fileURLWithPath: audio)) == before)
            // Nor does the work fail where nothing can be kept.
            var nowhere = checkpoint
            nowhere.path = folder + "/missing/kept"
            let unkept = try #require(await run(nowhere))
            #expect(unkept.transcript == outcome.transcript && unkept.notices.count == 1)
        }
    }
}
