import Foundation
import Steno
import StenoMedia
import StenoTesting
import Synchronization
import TestSupport
import Testing

@Suite("Live: the recording is the truth, and nothing of it is lost", .timeLimit(.minutes(2)))
struct LiveSessionTests {
    private let stereo = AudioFormat(sampleRate: 16000, channelCount: 2, sampleFormat: .int16)

    /// A source that is read as fast as the session takes it.
    private func source(_ steps: [ScriptedCaptureDevice.Step], format: AudioFormat) -> CaptureSource {
        var configuration = CaptureSource.Configuration()
        configuration.dropsWhenFull = false
        configuration.reconnection = nil
        let device = ScriptedCaptureDevice(format: format, steps)
        return CaptureSource(configuration: configuration) { () throws(StenoError) in try device.open() }
    }

    private func wave() -> String {
        FileManager.default.temporaryDirectory.appendingPathComponent("steno-\(UUID()).wav").path
    }

    /// All samples of a recorded file.
    private func samples(of path: String) throws -> [Int16] {
        let file = try AudioFileSource(path: path)
        var buffer = AudioBuffer(format: file.format, frameCapacity: 65536)
        var samples: [Int16] = []
        while try file.read(into: &buffer) == .frames { samples += buffer.samples(of: Int16.self) }
        return samples
    }

    /// What a device of this format counts, from frame `first`.
    private func counted(_ frames: Range<Int>, channels: Int = 2) -> [Int16] {
        frames.flatMap { frame in (0..<channels).map { Int16(truncatingIfNeeded: frame + $0) } }
    }

    /// A transcriber that notes all samples that it was given and says one word at the end.
    private func listener(_ heard: HeardSamples, delay: Double = 0) -> ScriptedTranscriber {
        ScriptedTranscriber { call, session in
            switch call {
            case .accept(let input):
                heard.samples.withLock { $0 += input.buffer.samples(of: Float.self) }
                // A recognizer that is slower than real time, and still ends when it is told to.
                let end = Date(timeIntervalSinceNow: delay * input.bufferDuration.seconds)
                while Date() < end && !session.isCancelled { Thread.sleep(forTimeInterval: 0.001) }
            case .finish:
                session.send(.scripted("done", from: 0, to: 0.1))
            case .prepare, .finalize: break
            }
        }
    }

    /// Lets a scripted source come to its own end, which a stop would cut off.
    private func untilTheSourceEnds(_ session: LiveSession) async throws {
        while ![.draining, .ended].contains(await session.status.phase) { try await Task.sleep(for: .milliseconds(1)) }
    }

    private final class HeardSamples: Sendable {
        let samples = Mutex<[Float]>([])
        var count: Int { samples.withLock { $0.count } }
    }

    @Test func whatWasWrittenIsWhatIsHeard() async throws {
        let path = wave()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let heard = HeardSamples()
        let session = LiveSession(
            source: source([.frames(100_000)], format: stereo), recording: .init(path: path),
            transcriber: listener(heard), options: .init(conversion: .init(channelPolicy: .channel(0))))
        try await session.start()
        var results: [TranscriptionResult] = []
        for try await result in session.results { results.append(result) }
        let draft = await session.stop()
        #expect(results.map(\.text) == ["done"])
        #expect(draft.transcript.text == "done")
        #expect(draft.duration == MediaTime(value: 100_000, timescale: 16000))
        #expect(draft.untranscribed == nil)
        #expect(try samples(of: path) == counted(0..<100_000))
        let expected = (0..<100_000).map { Float(Int16(truncatingIfNeeded: $0)) / 32768 }
        #expect(heard.samples.withLock { $0 } == expected)
    }

    /// Law A8: far more audio than fits into memory, with a recognizer that has not begun.
    @Test(arguments: [AudioFileWriter.FileType.wav, .flac])
    func aRecognizerThatLagsReadsTheRecordingBack(type: AudioFileWriter.FileType) async throws {
        let path = wave()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let heard = HeardSamples()
        let mayBegin = Atomic(false)
        let slow = ScriptedTranscriber { call, _ in
            if case .prepare = call {
                while !mayBegin.load(ordering: .relaxed) { Thread.sleep(forTimeInterval: 0.001) }
            }
            if case .accept(let input) = call {
                heard.samples.withLock { $0 += input.buffer.samples(of: Float.self) }
            }
        }
        let session = LiveSession(
            source: source([.frames(300_000), .gap(1000, .overrun), .frames(300_000)], format: stereo),
            recording: .init(path: path, type: type), transcriber: slow,
            options: .init(
                conversion: .init(channelPolicy: .channel(1)), memoryDuration: 0.5,
                analyzer: .init(queueDuration: 0.25)))
        try await session.start()
        try await untilTheSourceEnds(session)
        #expect(await session.status.lag >= MediaTime(value: 37, timescale: 1))
        mayBegin.store(true, ordering: .relaxed)
        let draft = await session.stop()
        #expect(draft.untranscribed == nil)
        #expect(draft.transcript.events.map(\.kind) == [.overrun, .behind])
        let expected =
            (1...300_000).map { Float(Int16(truncatingIfNeeded: $0)) / 32768 } + [Float](repeating: 0, count: 1000)
            + (301_001...601_000).map { Float(Int16(truncatingIfNeeded: $0)) / 32768 }
        #expect(heard.samples.withLock { $0 } == expected)
        #expect(try samples(of: path).count == 2 * 601_000)
    }

    @Test func withoutARecordingWhatDoesNotFitIsDroppedAndReported() async throws {
        let heard = HeardSamples()
        let mayBegin = Atomic(false)
        let slow = ScriptedTranscriber { call, _ in
            if case .prepare = call {
                while !mayBegin.load(ordering: .relaxed) { Thread.sleep(forTimeInterval: 0.001) }
            }
            if case .accept(let input) = call {
                heard.samples.withLock { $0 += input.buffer.samples(of: Float.self) }
            }
        }
        let session = LiveSession(
            source: source([.frames(160_000)], format: stereo), recording: nil, transcriber: slow,
            options: .init(memoryDuration: 2))
        try await session.start()
        try await untilTheSourceEnds(session)
        mayBegin.store(true, ordering: .relaxed)
        let draft = await session.stop()
        let dropped = draft.transcript.events.filter { $0.kind == .dropped }
        #expect(!dropped.isEmpty)
        // Silence takes the place of what was dropped, so that later times stay right.
        #expect(heard.count == 160_000)
        #expect(dropped.map(\.range.duration).reduce(.zero, +) >= MediaTime(value: 4, timescale: 1))
    }

    /// Transcription can fail; a recording cannot.
    @Test func aFailingTranscriberLeavesTheRecordingWhole() async throws {
        for failsAt in ["prepare", "accept", "finish"] {
            let path = wave()
            defer { try? FileManager.default.removeItem(atPath: path) }
            let failing = ScriptedTranscriber { call, _ in
                if "\(call)".hasPrefix(failsAt) { throw StenoError(.engineFailed, "at \(failsAt)") }
            }
            let session = LiveSession(
                source: source([.frames(200_000)], format: stereo), recording: .init(path: path), transcriber: failing)
            try await session.start()
            let reading = Task { () -> StenoError? in
                do throws(StenoError) { for try await _ in session.results {} } catch { return error }
                return nil
            }
            let error = await reading.value
            #expect(error?.code == .engineFailed, "\(failsAt)")
            try await untilTheSourceEnds(session)
            let draft = await session.stop()
            #expect(draft.status.transcriptionError?.message == "at \(failsAt)")
            #expect(draft.status.recordingError == nil)
            #expect(try samples(of: path) == counted(0..<200_000))
        }
    }

    @Test func aModelWithoutAFormatIsSaidAndTheRecordingGoesOn() async throws {
        let path = wave()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let session = LiveSession(
            source: source([.frames(1000)], format: stereo), recording: .init(path: path),
            transcriber: ScriptedTranscriber(formats: []))
        try await session.start()
        try await untilTheSourceEnds(session)
        let draft = await session.stop()
        #expect(draft.status.transcriptionError?.code == .incompatibleAudioFormats)
        #expect(try samples(of: path) == counted(0..<1000))
    }

    private static func m4a(_ path: String) -> LiveSession.Recording {
        .init(path: path) { (path, format) throws(StenoError) in try MediaFileWriter(path: path, format: format) }
    }

    /// The writer of another back end, which keeps no plain samples: what a recognizer that lags hears is what came.
    @Test func aRecordingToM4AHasTheRightLength() async throws {
        let path = temporaryFile("m4a")
        defer { remove(path) }
        let heard = HeardSamples()
        let session = LiveSession(
            source: source([.frames(100_001), .gap(1000, .overrun), .frames(20_000)], format: stereo),
            recording: Self.m4a(path), transcriber: listener(heard, delay: 0.02),
            options: .init(conversion: .init(channelPolicy: .channel(0)), memoryDuration: 0.5))
        try await session.start()
        try await untilTheSourceEnds(session)
        let draft = await session.stop()
        #expect(draft.transcript.text == "done" && draft.untranscribed == nil)
        #expect(draft.status.recordingError == nil)
        let expected = (0..<121_001).map { frame in
            (100_001..<101_001).contains(frame) ? 0 : Float(Int16(truncatingIfNeeded: frame)) / 32768
        }
        #expect(heard.samples.withLock { $0 } == expected)
        let raw = temporaryFile("raw")
        defer { remove(raw) }
        try tool("ffmpeg", "-v", "error", "-i", path, "-f", "s16le", raw)
        // It decodes the padding of the last packet too, of which the header tells.
        #expect((121_001..<121_001 + 1024).contains(try contents(of: raw).count / 4))
        #expect(try MediaFileSource(path: path).frameCount == 121_001)
    }

    /// A disk that is full ends the recording with a typed error, and the capture with it; what was written stays.
    @Test(arguments: [LiveSession.Recording(path: "/dev/full"), m4a("/dev/full")])
    func aFullDiskIsTypedAndEndsTheSession(recording: LiveSession.Recording) async throws {
        let session = LiveSession(
            source: source([.frames(2_000_000)], format: stereo), recording: recording, transcriber: nil)
        do {
            try await session.start()
            let draft = await session.stop()
            #expect(draft.status.recordingError?.code == .diskFull)
            #expect(draft.duration < MediaTime(value: 10, timescale: 1))
        } catch {
            #expect(error.code == .diskFull)
        }
    }

    @Test func aPauseIsAGapInFileAndTranscript() async throws {
        let path = wave()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let heard = HeardSamples()
        let device = ScriptedCaptureDevice(format: stereo, pace: .realTime, [.frames(16000 * 60)])
        let session = LiveSession(
            source: CaptureSource { () throws(StenoError) in try device.open() }, recording: .init(path: path),
            transcriber: listener(heard))
        try await session.start()
        func wait(until frames: Int64) async throws {
            while await session.status.duration < MediaTime(frames: frames, sampleRate: 16000) {
                try await Task.sleep(for: .milliseconds(5))
            }
        }
        try await wait(until: 4000)
        await session.pause()
        #expect(await session.status.phase == .paused)
        try await Task.sleep(for: .milliseconds(300))
        await session.resume()
        let resumed = await session.status.duration
        try await wait(until: resumed.frames(at: 16000) + 12000)
        let draft = await session.stop()
        let pauses = draft.transcript.events.filter { $0.kind == .pause }
        #expect(pauses.count == 1)
        let length = pauses.first?.range.duration ?? .zero
        #expect(length > MediaTime(value: 1, timescale: 10))
        let frames = Int(draft.duration.value)
        let file = try samples(of: path)
        #expect(file.count == 2 * frames)
        #expect(heard.count == frames)
        // Frames after the pause are where they would be had it been recorded.
        let end = Int((pauses.first?.range.end ?? .zero).value)
        #expect(Array(file[(2 * end)...]) == counted(end..<frames))
    }

    /// Case 023: stop ends the capture, not the recognition.
    @Test func stopWaitsForASlowRecognizer() async throws {
        let heard = HeardSamples()
        let session = LiveSession(
            source: source([.frames(80_000)], format: stereo), recording: .init(path: "/dev/null"),
            transcriber: listener(heard, delay: 0.1))
        try await session.start()
        try await untilTheSourceEnds(session)
        let draft = await session.stop()
        #expect(heard.count == 80_000)
        #expect(draft.transcript.text == "done")
    }

    /// Cases 025 and 027: the end is there when the last result is, however long that takes.
    @Test func stopWaitsForTheLastResult() async throws {
        let late = ScriptedTranscriber { call, session in
            guard case .finish = call else { return }
            Thread.sleep(forTimeInterval: 1.5)
            session.send(.scripted("late", from: 0, to: 0.5))
        }
        let session = LiveSession(source: source([.frames(16_000)], format: stereo), recording: nil, transcriber: late)
        try await session.start()
        try await untilTheSourceEnds(session)
        let draft = await session.stop()
        #expect(draft.transcript.text == "late")
        #expect(draft.untranscribed == nil)
    }

    /// Cases 031 and 015: nothing stays in the resampler; a word that ends with the last frame is heard to its end.
    @Test func theResamplerIsDrainedBeforeTheRecognizer() async throws {
        let format = AudioFormat(sampleRate: 48000, channelCount: 1, sampleFormat: .int16)
        for frames in [1, 47_999, 100_001] {
            let heard = HeardSamples()
            let session = LiveSession(
                source: source([.frames(frames)], format: format), recording: nil, transcriber: listener(heard))
            try await session.start()
            try await untilTheSourceEnds(session)
            let draft = await session.stop()
            #expect(heard.count == Int((Double(frames) / 3).rounded()))
            #expect(draft.untranscribed == nil)
            #expect(draft.status.driftFromSource == 0)
        }
    }

    @Test func aStopDuringTheStartEndsIt() async throws {
        let mayOpen = Atomic(false)
        let device = ScriptedCaptureDevice(format: stereo, pace: .realTime, [.frames(.max)])
        let session = LiveSession(
            source: CaptureSource { () throws(StenoError) in
                while !mayOpen.load(ordering: .relaxed) { Thread.sleep(forTimeInterval: 0.001) }
                return try device.open()
            }, recording: nil, transcriber: nil)
        let starting = Task { try await session.start() }
        while await session.status.phase == .ready { await Task.yield() }
        let stopping = Task { await session.stop() }
        let error = await #expect(throws: StenoError.self) { try await starting.value }
        #expect(error?.code == .cancelled)
        let draft = await stopping.value
        #expect(draft.status.phase == .ended)
        #expect(draft.status.captureError?.code == .cancelled)
        mayOpen.store(true, ordering: .relaxed)
    }

    @Test(arguments: [LiveSession.Recording(path: "/no/such/folder/x.wav"), m4a("/no/such/folder/x.m4a")])
    func theStatusSaysWhichPartCouldNotStart(recording: LiveSession.Recording) async throws {
        let session = LiveSession(
            source: source([.frames(100)], format: stereo), recording: recording, transcriber: nil)
        await #expect(throws: StenoError.self) { try await session.start() }
        let status = await session.status
        #expect(status.recordingError?.code == .fileNotFound)
        #expect(status.captureError == nil)
        #expect(status.format == stereo)
    }

    @Test func aDrainCanBeCutShort() async throws {
        let path = wave()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let heard = HeardSamples()
        let session = LiveSession(
            source: source([.frames(1_600_000)], format: stereo), recording: .init(path: path),
            transcriber: listener(heard, delay: 0.2), options: .init(memoryDuration: 1))
        try await session.start()
        try await untilTheSourceEnds(session)
        let stopping = Task { await session.stop() }
        await session.cutShort()
        let draft = await stopping.value
        let rest = try #require(draft.untranscribed)
        #expect(rest.end == MediaTime(value: 100, timescale: 1))
        #expect(heard.count == Int(rest.start.frames(at: 16000)))
        #expect(draft.transcript.events.last?.kind == .notTranscribed)
        #expect(draft.transcript.text == "done")
        #expect(try samples(of: path).count == 3_200_000)
    }

    /// The recording stays in its first format, whatever the device turns into.
    @Test func aDeviceThatChangesItsFormatKeepsTheTimeline() async throws {
        let path = wave()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let heard = HeardSamples()
        let mono = AudioFormat(sampleRate: 8000, channelCount: 1, sampleFormat: .int16)
        let six = AudioFormat(sampleRate: 48000, channelCount: 6, sampleFormat: .float32)
        let session = LiveSession(
            source: source(
                [.frames(16000), .format(mono), .frames(8000), .format(six), .frames(48000)], format: stereo),
            recording: .init(path: path), transcriber: listener(heard))
        try await session.start()
        try await untilTheSourceEnds(session)
        let draft = await session.stop()
        #expect(draft.status.recordingError == nil)
        #expect(draft.transcript.events.filter { $0.kind == .formatChanged }.count == 2)
        #expect(abs(draft.duration.value - 48000) <= 2)
        #expect(heard.count == Int(draft.duration.value))
        #expect(try samples(of: path).count == 2 * Int(draft.duration.value))
    }

    @Test func stopBeforeStartAndTwiceReturns() async throws {
        let session = LiveSession(
            source: source([.frames(100)], format: stereo), recording: nil, transcriber: ScriptedTranscriber())
        let draft = await session.stop()
        #expect(draft.duration == .zero)
        _ = await session.stop()
        await #expect(throws: StenoError.self) { try await session.start() }
    }

    @Test func aDeviceThatCannotBeOpenedIsSaidByStart() async throws {
        let device = ScriptedCaptureDevice(format: stereo)
        let session = LiveSession(
            source: CaptureSource { () throws(StenoError) in try device.open() }, recording: nil,
            transcriber: ScriptedTranscriber())
        do {
            try await session.start()
            Issue.record("a device that is not there was opened")
        } catch {
            #expect(error.code == .noSuchDevice)
        }
        do {
            for try await _ in session.results {}
            Issue.record("the results merely ended")
        } catch {
            #expect(error.code == .noSuchDevice)
        }
    }
}
