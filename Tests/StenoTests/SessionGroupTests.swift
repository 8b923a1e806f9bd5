import Foundation
import Steno
import StenoTesting
import Testing

@Suite("Several sources on one time base", .timeLimit(.minutes(1)))
struct SessionGroupTests {
    private let format = AudioFormat(sampleRate: 8000, channelCount: 1, sampleFormat: .int16)

    /// A source on a clock of its own that starts late, delivers so many frames for each second of that clock, and says
    /// a word in each second of its own time.
    private func member(
        _ name: String, startsAfter delay: Duration, framesPerSecond: Int, seconds: Int, origin: ContinuousClock.Instant
    ) -> SessionGroup.Member {
        let clock = ManualClock()
        let start = clock.now
        var configuration = CaptureSource.Configuration()
        configuration.now = { origin + delay + (clock.now - start) }
        configuration.dropsWhenFull = false
        configuration.reconnection = nil
        let device = ScriptedCaptureDevice(
            format: format, pace: .manual(clock, framesPerSecond: framesPerSecond), [.frames(8000 * seconds)])
        let source = CaptureSource(configuration: configuration) { () throws(StenoError) in try device.open() }
        let transcriber = ScriptedTranscriber { call, session in
            guard case .finish = call else { return }
            for second in 0..<seconds {
                var result = TranscriptionResult.scripted(
                    "\(name)\(second)", from: Double(second), to: Double(second) + 0.5)
                result.words = [TranscribedWord(result.text, range: result.range)]
                session.send(result)
            }
        }
        return .init(name: name, session: LiveSession(source: source, recording: nil, transcriber: transcriber))
    }

    private func milliseconds(_ value: Int64) -> MediaTime { MediaTime(value: value, timescale: 1000) }

    /// Case 019: the second starts 0.8 s later; common zero is the earliest start.
    @Test func aLateSourceIsOffset() async throws {
        let origin = ContinuousClock.now
        let group = SessionGroup([
            member("late", startsAfter: .milliseconds(800), framesPerSecond: 8000, seconds: 3, origin: origin),
            member("early", startsAfter: .zero, framesPerSecond: 8000, seconds: 4, origin: origin),
        ])
        try await group.start()
        var results: [TranscriptionResult] = []
        for try await result in group.results { results.append(result) }
        let draft = await group.stop()
        #expect(draft.alignments == [SourceAlignment(offset: milliseconds(800)), SourceAlignment(offset: .zero)])
        let segments = draft.transcript.segments
        #expect(segments.map(\.text) == ["early0", "late0", "early1", "late1", "early2", "late2", "early3"])
        #expect(segments.map(\.source) == ["early", "late", "early", "late", "early", "late", "early"])
        #expect(segments.map(\.range.start) == [0, 800, 1000, 1800, 2000, 2800, 3000].map { milliseconds($0) })
        #expect(segments.allSatisfy { $0.words.map(\.range) == [$0.range] })
        #expect(draft.transcript.duration == milliseconds(4000))
        #expect(Set(results.map(TranscriptSegment.init)) == Set(segments))
        var writer = JSONWriter()
        let json = writer.write(draft.transcript)
        #expect(try JSONReader.read(json.utf8).segments == segments)
    }

    /// Case 017 for two: the second clock gains 250 ppm, 150 ms in these ten minutes. Its words are where they were
    /// spoken, and the reference's are where its file has them.
    @Test func theDriftBetweenTheClocksIsTakenOff() async throws {
        let origin = ContinuousClock.now
        let group = SessionGroup([
            member("slow", startsAfter: .zero, framesPerSecond: 8000, seconds: 600, origin: origin),
            member("fast", startsAfter: .milliseconds(500), framesPerSecond: 8002, seconds: 600, origin: origin),
        ])
        try await group.start()
        for try await _ in group.results {}
        let draft = await group.stop()
        for segment in draft.transcript.segments {
            let second = try #require(Int64(segment.text.dropFirst(4)))
            if segment.source == "slow" {
                #expect(segment.range.start == milliseconds(1000 * second))
            } else {
                let spoken = milliseconds(500 + 1000 * second * 8000 / 8002)
                #expect(abs(segment.range.start.seconds - spoken.seconds) < 0.002, "\(segment.text)")
            }
        }
        #expect(draft.transcript.segments.count == 1200)
        #expect(abs((draft.alignments[1]?.partsPerBillion ?? 0) - 250_000) < 1000)
    }

    /// One that fails does not end the other.
    @Test func aMemberThatCannotStartIsSaidAndStopsTheOthers() async throws {
        let device = ScriptedCaptureDevice(format: format)
        let broken = LiveSession(
            source: CaptureSource { () throws(StenoError) in try device.open() }, recording: nil, transcriber: nil)
        let other = member("other", startsAfter: .zero, framesPerSecond: 8000, seconds: 1, origin: .now)
        let group = SessionGroup([other, .init(name: "broken", session: broken)])
        let error = await #expect(throws: StenoError.self) { try await group.start() }
        #expect(error?.code == .noSuchDevice)
        #expect(await other.session.status.phase == .ended)
    }

    @Test func aFailingTranscriberLeavesTheOtherItsText() async throws {
        let device = ScriptedCaptureDevice(format: format, [.frames(8000)])
        let failing = ScriptedTranscriber { _, _ in throw StenoError(.engineFailed, "by the script") }
        let broken = LiveSession(
            source: CaptureSource { () throws(StenoError) in try device.open() }, recording: nil, transcriber: failing)
        let other = member("other", startsAfter: .zero, framesPerSecond: 8000, seconds: 2, origin: .now)
        let group = SessionGroup([.init(name: "broken", session: broken), other])
        try await group.start()
        var texts: [String] = []
        do {
            for try await result in group.results { texts.append(result.text) }
            Issue.record("the results merely ended")
        } catch {
            #expect(error.code == .engineFailed)
        }
        #expect(texts == ["other0", "other1"])
        #expect(await group.stop().transcript.text == "other0 other1")
    }
}
