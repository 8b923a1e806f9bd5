import StenoAnalysis
import StenoAudio
import StenoTesting
import Testing

@Suite("Law A4: results whatever the module sends", .timeLimit(.minutes(1)))
struct ResultTests {
    /// Sends `results` on the first buffer of one second of audio.
    private func publish(
        _ results: [TranscriptionResult]
    ) async throws -> (results: [TranscriptionResult], events: [TimelineEvent]) {
        let module = ScriptedTranscriber { call, session in
            if case .accept = call { for result in results { session.send(result) } }
        }
        let analyzer = SpeechAnalyzer(modules: [module])
        try await analyzer.analyzeSequence(sequence(inputs(1, frames: 16000)))
        try await analyzer.finalizeAndFinish()
        return (try await collect(module.results), await analyzer.events)
    }

    /// Case 009: the engine counts its padding as audio.
    @Test func endsAreClampedToTheAudioAndTextFromPaddingIsDropped() async throws {
        let (results, _) = try await publish([
            .scripted("in the audio", from: 0.2, to: 30), .scripted("from padding", from: 1.5, to: 2),
        ])
        #expect(results.map(\.text) == ["in the audio"])
        #expect(results.first?.range.end == frame(16000))
    }

    @Test func finalResultsNeverOverlapAndKeepTheirText() async throws {
        let (results, _) = try await publish([
            .scripted("one", from: 0, to: 0.5), .scripted("two", from: 0.4, to: 0.7),
            .scripted("late", from: 0, to: 0.3),
        ])
        #expect(results.map(\.text) == ["one", "two", "late"])
        #expect(zip(results, results.dropFirst()).allSatisfy { $0.range.end <= $1.range.start })
        #expect(results.allSatisfy { $0.resultsFinalizationTime >= $0.range.end })
    }

    @Test func whatStaysVolatileIsTakenBackAtTheEnd() async throws {
        let (results, _) = try await publish([
            .scripted("maybe this goes on", from: 0, to: 0.9, isFinal: false), .scripted("maybe", from: 0, to: 0.4),
        ])
        #expect(results.map(\.text) == ["maybe this goes on", "maybe", ""])
        #expect(results.last?.isFinal == false)
        #expect(results.last?.range == MediaTimeRange(start: frame(6400), end: frame(14400)))
    }

    /// Case 075: growing hypotheses for one utterance; a reader that comes late finds the newest alone.
    @Test func anUnreadVolatileResultIsReplacedByALaterOne() async throws {
        let growing = (1...5).map {
            TranscriptionResult.scripted("word \($0)", from: 0, to: Double($0) / 10, isFinal: false)
        }
        let (results, _) = try await publish(growing + [.scripted("words", from: 0, to: 0.5)])
        #expect(results.map(\.text) == ["words"])
    }

    @Test func volatileTextAboutFinalAudioIsNotPublished() async throws {
        let (results, _) = try await publish([
            .scripted("done", from: 0, to: 0.5), .scripted("again", from: 0, to: 0.4, isFinal: false),
        ])
        #expect(results.map(\.text) == ["done"])
    }

    /// What a recognizer reports is told within the audio, before the call that reported it has returned to the core.
    @Test func reportedEventsAreClampedToTheAudio() async throws {
        let kind = TimelineEvent.Kind(rawValue: "test")
        @Sendable func event(_ start: Int64, _ end: Int64) -> TimelineEvent {
            TimelineEvent(kind, range: MediaTimeRange(start: frame(start), end: frame(end)), detail: "\(start)")
        }
        let module = ScriptedTranscriber { call, session in
            guard case .accept = call else { return }
            for reported in [event(-8000, 1000), event(2000, 3000), event(15_000, 99_000), event(20_000, 30_000)] {
                session.report(reported)
            }
        }
        let analyzer = SpeechAnalyzer(modules: [module])
        try await analyzer.analyzeSequence(sequence(inputs(1, frames: 16000)))
        try await analyzer.finalizeAndFinish()
        let ranges = [(0, 1000), (2000, 3000), (15_000, 16_000), (16_000, 16_000)].map {
            MediaTimeRange(start: frame($0), end: frame($1))
        }
        #expect(await analyzer.events.map(\.range) == ranges)
        #expect(await analyzer.events.map(\.detail) == ["-8000", "2000", "15000", "20000"])
        #expect(try await collect(module.results).isEmpty)
    }

    /// Law A11: saying nothing is a success, and makes the silence final.
    @Test func anEmptyTranscriptIsASuccess() async throws {
        let (results, events) = try await publish([])
        #expect(results.isEmpty)
        #expect(events.isEmpty)
    }
}
