import Foundation
import StenoTesting
import Synchronization
import Testing

@testable import Steno

/// A recognizer that falls behind is told, once for each time that it does.
@Suite(.timeLimit(.minutes(2))) struct LagTests {
    func seconds(_ value: Double) -> MediaTime { MediaTime(value: Int64(value * 1000), timescale: 1000) }

    func behind(_ start: Double, _ end: Double, upTo lag: Double) -> TimelineEvent {
        TimelineEvent(
            .behind, range: MediaTimeRange(start: seconds(start), end: seconds(end)),
            detail: "up to \(lag) s behind the recording")
    }

    @Test func aStretchBeginsAtTheLimitAndEndsAtHalfOfIt() {
        var watch = LagWatch(limit: seconds(5))
        watch.record(through: seconds(6))
        #expect(watch.behind != nil)
        #expect(watch.accept(through: seconds(3)) == nil)
        watch.record(through: seconds(9))
        watch.record(through: seconds(10))
        // It goes up and down between the two, and is one stretch.
        for time in stride(from: 6.0, through: 20, by: 1) {
            #expect(watch.accept(through: seconds(time)) == nil)
            watch.record(through: seconds(time + 5.5))
        }
        #expect(watch.behind == behind(0, 20, upTo: 7))
        #expect(watch.accept(through: seconds(23.1)) == behind(0, 23.1, upTo: 7))
        #expect(watch.behind == nil)
        for time in stride(from: 24.0, through: 40, by: 1) {
            #expect(watch.accept(through: seconds(time)) == nil)
            watch.record(through: seconds(time + 5))
            #expect(watch.behind == nil)
        }
        watch.record(through: seconds(46))
        #expect(watch.behind == behind(40, 40, upTo: 6))
        #expect(watch.stop() == behind(40, 40, upTo: 6))
        watch.record(through: seconds(100))
        #expect(watch.behind == nil && watch.stop() == nil)
    }

    /// Nobody has to hear a gap that is kept out of the recording.
    @Test func aKeptGapIsNoLag() {
        var watch = LagWatch(limit: seconds(5))
        watch.record(through: seconds(1))
        watch.record(through: seconds(3600), isGap: true)
        watch.record(through: seconds(3602))
        #expect(watch.behind == nil)
        #expect(watch.accept(through: seconds(1)) == nil)
        #expect(watch.accept(through: seconds(3602)) == nil)
        watch.record(through: seconds(3608))
        #expect(watch.behind?.range.start == seconds(3602))
    }

    /// A recognizer that stands still for a while: the session says so meanwhile, and where that was afterwards; nothing is
    /// lost.
    @Test func aSessionSaysThatItIsBehindAndThatItWas() async throws {
        let path = temporaryFile()
        defer { remove(path) }
        let mayGoOn = Atomic(false)
        let frames = Atomic(0)
        let slow = ScriptedTranscriber { call, session in
            guard case .accept(let input) = call else { return }
            while !mayGoOn.load(ordering: .relaxed) { Thread.sleep(forTimeInterval: 0.001) }
            frames.add(input.buffer.frameCount, ordering: .relaxed)
        }
        let device = ScriptedCaptureDevice(
            format: ScriptedTranscriber.usualFormat, [.frames(40 * 16_000)])
        let session = LiveSession(
            source: source(device), recording: .init(path: path), transcriber: slow,
            options: .init(memoryDuration: 1, analyzer: .init(queueDuration: 0.5)))
        try await session.start()
        while await session.status.duration < seconds(40) { try await Task.sleep(for: .milliseconds(1)) }
        let during = await session.status
        #expect(during.behind?.range.start ?? seconds(99) <= seconds(1))
        #expect(during.events.isEmpty)
        mayGoOn.store(true, ordering: .relaxed)
        let draft = await session.stop()
        #expect(draft.status.behind == nil)
        #expect(draft.transcript.events == draft.status.events)
        let event = try #require(draft.transcript.events.first)
        #expect(draft.transcript.events.map(\.kind) == [.behind])
        #expect(event.range.start == during.behind?.range.start)
        // The rest of it is less than half of the limit late.
        #expect(event.range.end > seconds(37.5) && event.range.end <= seconds(40))
        #expect(frames.load(ordering: .relaxed) == 40 * 16_000)
    }

    @Test func whoKeepsUpIsNotBehindAndNeitherIsNobody() async throws {
        for transcriber in [PeriodicListener(period: 1).transcriber, nil] {
            let device = ScriptedCaptureDevice(format: ScriptedTranscriber.usualFormat, [.frames(40 * 16_000)])
            let session = LiveSession(
                source: source(device), recording: nil, transcriber: transcriber,
                options: .init(memoryDuration: 60, lagLimit: seconds(transcriber == nil ? 1 : 60)))
            try await session.start()
            while ![.draining, .ended].contains(await session.status.phase) {
                try await Task.sleep(for: .milliseconds(1))
            }
            let draft = await session.stop()
            #expect(draft.duration == seconds(40))
            #expect(draft.status.behind == nil && draft.transcript.events.isEmpty)
        }
    }

    /// A transcription that has ended is not behind: why it ended is said.
    @Test func aFailedTranscriptionIsNotBehindForEver() async throws {
        let path = temporaryFile()
        defer { remove(path) }
        let failing = ScriptedTranscriber { call, _ in
            if case .prepare = call { throw StenoError(.engineFailed, "no") }
        }
        let device = ScriptedCaptureDevice(format: ScriptedTranscriber.usualFormat, pace: .realTime, [.frames(.max)])
        let session = LiveSession(
            source: source(device), recording: .init(path: path), transcriber: failing,
            options: .init(lagLimit: seconds(0.3)))
        try await session.start()
        while await session.status.duration < seconds(1) { try await Task.sleep(for: .milliseconds(5)) }
        let draft = await session.stop()
        #expect(draft.status.transcriptionError?.code == .engineFailed)
        #expect(draft.status.behind == nil)
    }

    /// What a recognizer reports reaches the session while it goes on, and the transcript.
    @Test func reportedEventsReachTheStatusAndTheTranscript() async throws {
        let kind = TimelineEvent.Kind(rawValue: "test")
        let reported = TimelineEvent(kind, range: MediaTimeRange(start: .zero, end: seconds(0.01)), detail: "said")
        let hasReported = Atomic(false)
        let transcriber = ScriptedTranscriber { call, session in
            guard case .accept = call, !hasReported.exchange(true, ordering: .relaxed) else { return }
            session.report(reported)
        }
        let device = ScriptedCaptureDevice(format: ScriptedTranscriber.usualFormat, pace: .realTime, [.frames(.max)])
        let session = LiveSession(source: source(device), recording: nil, transcriber: transcriber)
        try await session.start()
        while await session.status.events.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        #expect(await session.status.events.map(\.kind) == [kind])
        #expect(await session.stop().transcript.events.map(\.detail) == ["said"])
    }
}
