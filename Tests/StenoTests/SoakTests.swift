import Foundation
import Steno
import StenoTesting
import Synchronization
import Testing

/// Memory is that of the whole process, so each of these has one of its own.
@Suite("Long and overloaded sessions", .serialized, .timeLimit(.minutes(isSoak ? 120 : 5)))
struct SoakTests {
    /// Law A8: a recognizer at half of real time, for ten minutes of audio.
    @Test func aRecognizerAtHalfSpeedCostsNoMemory() async {
        await #expect(processExitsWith: .success) {
            let path = temporaryFile()
            defer { remove(path) }
            let speed = isSoak ? 20.0 : 150
            let format = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)
            let device = ScriptedCaptureDevice(format: format, pace: .times(speed), [.frames(16000 * 600)])
            let listener = PeriodicListener(period: 1, delay: 2 / speed)
            let session = LiveSession(
                source: source(device), recording: .init(path: path), transcriber: listener.transcriber)
            try await session.start()
            var memory = MemoryWatch()
            var longestLag = MediaTime.zero
            while true {
                let status = await session.status
                if status.phase == .ended { break }
                longestLag = max(longestLag, status.lag)
                // From then on everything is in use that will be.
                if status.duration > MediaTime(value: 60, timescale: 1) { memory.note() }
                try await Task.sleep(for: .milliseconds(20))
            }
            let draft = await session.stop()
            #expect(memory.growth < 5_000_000)
            #expect(longestLag > MediaTime(value: 240, timescale: 1))
            #expect(draft.untranscribed == nil)
            #expect(draft.transcript.segments.map(\.text) == (0..<600).map { "w\($0)" })
            #expect(listener.heard.misplaced == 0)
            #expect(try AudioFileSource(path: path).frameCount == 16000 * 600)
            report("half speed: memory grew by \(memory.growth) bytes, lag up to \(longestLag.seconds) s")
        }
    }

    /// Cases 103 and 105: a recognizer that stalls for 20 minutes of audio; then stop drains all of it, and shows how
    /// far it is.
    @Test func aStalledRecognizerIsDrainedAtStop() async {
        await #expect(processExitsWith: .success) {
            let path = temporaryFile()
            defer { remove(path) }
            let format = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)
            let device = ScriptedCaptureDevice(format: format, [.frames(16000 * 1200)])
            let mayBegin = DispatchSemaphore(value: 0)
            let listener = PeriodicListener(period: 10, delay: 0.001) { mayBegin.wait() }
            let session = LiveSession(
                source: source(device), recording: .init(path: path), transcriber: listener.transcriber)
            try await session.start()
            var memory = MemoryWatch()
            while await session.status.phase == .capturing {
                if await session.status.duration > MediaTime(value: 60, timescale: 1) { memory.note() }
                try await Task.sleep(for: .milliseconds(5))
            }
            #expect(await session.status.lag == MediaTime(value: 1200, timescale: 1))
            mayBegin.signal()
            let stopping = Task { await session.stop() }
            var lags: [MediaTime] = []
            while await session.status.phase != .ended {
                lags.append(await session.status.lag)
                memory.note()
                try await Task.sleep(for: .milliseconds(10))
            }
            let draft = await stopping.value
            #expect(zip(lags, lags.dropFirst()).allSatisfy { $0 >= $1 })
            #expect(Set(lags.map(\.value)).count > 10)
            #expect(draft.untranscribed == nil)
            #expect(draft.transcript.segments.map(\.text) == (0..<120).map { "w\($0)" })
            #expect(memory.growth < 5_000_000)
        }
    }

    /// Case 107, laws T4 to T6: a day at 44.1 kHz, with a gap in each hour; by hand in full, six minutes of it elsewhere.
    @Test func aDayIsExactToTheFrameAndCostsNoMemory() async {
        await #expect(processExitsWith: .success) {
            let path = temporaryFile()
            defer { remove(path) }
            let hour = isSoak ? 3600 : 15
            let format = AudioFormat(sampleRate: 44100, channelCount: 1, sampleFormat: .int16)
            let steps = (0..<24).flatMap { index in
                [
                    ScriptedCaptureDevice.Step.frames(44100 * hour - 1001 - index),
                    .gap(1001 + Int64(index), .overrun),
                ]
            }
            let device = ScriptedCaptureDevice(format: format, steps.map { $0 })
            let listener = PeriodicListener(period: 15)
            let session = LiveSession(
                source: source(device), recording: .init(path: path), transcriber: listener.transcriber)
            let start = ContinuousClock.now
            try await session.start()
            var memory = MemoryWatch()
            while await session.status.phase != .ended {
                let status = await session.status
                if status.duration > MediaTime(value: Int64(hour), timescale: 1) { memory.note() }
                #expect(abs(status.driftFromSource) <= 1)
                try await Task.sleep(for: .milliseconds(isSoak ? 500 : 20))
            }
            let draft = await session.stop()
            let seconds = Int64(24 * hour)
            #expect(draft.duration == MediaTime(value: seconds, timescale: 1))
            #expect(draft.untranscribed == nil)
            #expect(draft.transcript.segments.count == Int(seconds / 15))
            #expect(
                draft.transcript.segments.map(\.range.start)
                    == (0..<seconds / 15).map { MediaTime(value: 15 * $0, timescale: 1) })
            let gaps = (0..<24).map { index in
                let end = Int64(44100 * hour * (index + 1))
                return MediaTimeRange(
                    start: MediaTime(frames: end - 1001 - Int64(index), sampleRate: 44100),
                    end: MediaTime(frames: end, sampleRate: 44100))
            }
            #expect(draft.transcript.events.filter { $0.kind == .overrun }.map(\.range) == gaps)
            let heard = listener.heard
            #expect(heard.frames == seconds * 16000)
            #expect(heard.misplaced == 0)
            #expect(try AudioFileSource(path: path).frameCount == seconds * 44100)
            #expect(memory.growth < 5_000_000)
            let took = ContinuousClock.now - start
            report("a day of \(seconds) s: memory grew by \(memory.growth) bytes; took \(took)")
        }
    }

    /// Every core busy, and one more: each frame is recorded or accounted for. By hand for ten minutes.
    @Test func withBusyCoresEachFrameIsAccountedFor() async {
        await #expect(processExitsWith: .success) {
            let path = temporaryFile()
            defer { remove(path) }
            let isOver = Atomic(false)
            for _ in 0...ProcessInfo.processInfo.activeProcessorCount {
                Thread.detachNewThread { while !isOver.load(ordering: .relaxed) {} }
            }
            let format = AudioFormat(sampleRate: 48000, channelCount: 2, sampleFormat: .int16)
            let device = ScriptedCaptureDevice(format: format, pace: .realTime, [.frames(.max)])
            let listener = PeriodicListener(period: 1)
            let session = LiveSession(
                source: CaptureSource { () throws(StenoError) in try device.open() }, recording: .init(path: path),
                transcriber: listener.transcriber)
            try await session.start()
            try await Task.sleep(for: .seconds(isSoak ? 600 : 3))
            let draft = await session.stop()
            isOver.store(true, ordering: .relaxed)
            let counts = draft.status.statistics
            #expect(counts.offered == counts.accepted + counts.dropped)
            #expect(draft.duration == MediaTime(frames: counts.offered + counts.missing, sampleRate: 48000))
            #expect(try AudioFileSource(path: path).frameCount == counts.offered + counts.missing)
            let lost = draft.transcript.events.filter { $0.kind == .overrun }.map(\.range.duration).reduce(.zero, +)
            #expect(lost == MediaTime(frames: counts.dropped, sampleRate: 48000))
            report("busy: \(counts), drift \(String(describing: draft.status.timing?.drift))")
        }
    }

    /// Everything but the recognizer, at 48 kHz in stereo, for a minute of real time. The figure counts in a release build.
    @Test(.enabled(if: isSoak)) func theCostOfALiveSession() async {
        await #expect(processExitsWith: .success) {
            let path = temporaryFile()
            defer { remove(path) }
            func processorTime() -> Double {
                var time = timespec()
                unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
                return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
            }
            let format = AudioFormat(sampleRate: 48000, channelCount: 2, sampleFormat: .int16)
            let device = ScriptedCaptureDevice(format: format, pace: .realTime, [.frames(.max)])
            let session = LiveSession(
                source: CaptureSource { () throws(StenoError) in try device.open() }, recording: .init(path: path),
                transcriber: ScriptedTranscriber(keepsCalls: false))
            try await session.start()
            try await Task.sleep(for: .seconds(2))
            let (before, start) = (processorTime(), ContinuousClock.now)
            try await Task.sleep(for: .seconds(60))
            let share = (processorTime() - before) / ((ContinuousClock.now - start) / .seconds(1))
            let draft = await session.stop()
            #expect(draft.untranscribed == nil)
            report("cost: \(share * 100) % of one core; \(draft.status.statistics)")
        }
    }

    /// Case 109: sessions leave nothing behind, and neither do those that fail.
    @Test func manySessionsLeaveNothingBehind() async {
        await #expect(processExitsWith: .success) {
            let format = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)
            func run(failing: Bool) async throws {
                let device = ScriptedCaptureDevice(format: format, [.frames(16000)])
                let transcriber = ScriptedTranscriber { _, _ in
                    if failing { throw StenoError(.modelNotFound, "by the script") }
                }
                let path = temporaryFile()
                defer { remove(path) }
                let session = LiveSession(
                    source: source(device), recording: .init(path: path), transcriber: transcriber)
                try await session.start()
                while await session.status.phase != .ended { try await Task.sleep(for: .milliseconds(1)) }
                let draft = await session.stop()
                #expect((draft.status.transcriptionError == nil) == !failing)
                #expect(draft.duration == MediaTime(value: 1, timescale: 1))
            }
            func openFiles() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            }
            func threads() throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
            }
            for index in 0..<40 { try await run(failing: index.isMultiple(of: 2)) }
            try await Task.sleep(for: .milliseconds(300))
            var memory = MemoryWatch()
            memory.note()
            let (files, tasks) = (try openFiles(), try threads())
            for index in 0..<400 { try await run(failing: index.isMultiple(of: 2)) }
            try await Task.sleep(for: .milliseconds(300))
            memory.note()
            #expect(memory.growth < 2_000_000)
            #expect(try openFiles() <= files)
            #expect(try threads() <= tasks + 4)
            report("400 sessions: memory grew by \(memory.growth) bytes")
        }
    }
}
