import StenoAnalysis
import StenoAudio
import StenoTesting
import Testing

@Suite("Laws T2, A6: one timeline in whole frames")
struct TimelineTests {
    private func analyze(
        _ inputs: [AnalyzerInput], policy: OverlapPolicy = .trim
    ) async throws -> (fed: [MediaTimeRange], events: [TimelineEvent]) {
        let module = ScriptedTranscriber()
        let analyzer = SpeechAnalyzer(modules: [module], options: .init(overlapPolicy: policy))
        for input in inputs {
            // One at a time, so that the module sees each buffer by itself.
            try await analyzer.analyzeSequence(sequence([input]))
            try await analyzer.finalize()
        }
        try await analyzer.finalizeAndFinish()
        return (module.accepted, await analyzer.events)
    }

    @Test func buffersWithoutStampsFollowEachOther() async throws {
        let (fed, events) = try await analyze(inputs(3, frames: 1001))
        #expect(fed.map(\.start) == [frame(0), frame(1001), frame(2002)])
        #expect(fed.last?.end == frame(3003))
        #expect(events.isEmpty)
    }

    @Test func aLaterStampLeavesAGapThatIsReported() async throws {
        let (fed, events) = try await analyze(inputs(2, stamps: [frame(16000), frame(32000)]))
        #expect(fed.map(\.start) == [frame(16000), frame(32000)])
        #expect(events.map(\.kind) == [.gap, .gap])
        #expect(events.map(\.range.duration) == [frame(16000), frame(14400)])
    }

    /// Case 001: buffers of 1024 frames at 0, 1023, 2047.
    @Test func aSmallOverlapIsTrimmedAndReported() async throws {
        let stamps: [MediaTime?] = [frame(0), frame(1023), frame(2047)]
        let (fed, events) = try await analyze(inputs(3, frames: 1024, stamps: stamps))
        #expect(fed.map(\.start) == [frame(0), frame(1024), frame(2047)])
        #expect(fed.map(\.duration) == [frame(1024), frame(1023), frame(1024)])
        #expect(events == [TimelineEvent(.overlapTrimmed, range: MediaTimeRange(start: frame(1023), end: frame(1024)))])
    }

    @Test func aBufferThatWasThereAlreadyIsDroppedWhole() async throws {
        let (fed, events) = try await analyze(inputs(3, stamps: [nil, frame(0), nil]))
        #expect(fed.map(\.start) == [frame(0), frame(1600)])
        #expect(events.map(\.range) == [MediaTimeRange(start: frame(0), end: frame(1600))])
    }

    @Test func anIgnoredStampPlacesTheAudioBehind() async throws {
        let (fed, events) = try await analyze(inputs(2, stamps: [nil, frame(100)]), policy: .ignoreStamp)
        #expect(fed.map(\.start) == [frame(0), frame(1600)])
        #expect(events.map(\.kind) == [.overlapIgnored])
    }

    @Test func aRejectedOverlapDoesNotEndTheSession() async throws {
        let module = ScriptedTranscriber()
        let analyzer = SpeechAnalyzer(modules: [module], options: .init(overlapPolicy: .reject))
        let disordered = sequence(inputs(2, stamps: [nil, frame(100)]))
        let found = await code { () async throws(StenoError) in try await analyzer.analyzeSequence(disordered) }
        #expect(found == .audioDisordered)
        try await analyzer.analyzeSequence(sequence(inputs(1)))
        try await analyzer.finalizeAndFinish()
        #expect(module.accepted.last?.end == frame(3200))
    }

    /// Stamps in a timescale that cannot name a frame: 0.1 s buffers of 1600.5 frames would overlap by fractions.
    @Test func aStampOffByLessThanAFrameIsContiguous() async throws {
        let stamps = (0..<20).map { MediaTime(value: Int64($0) * 1_000_300, timescale: 10_000_000) as MediaTime? }
        let (fed, events) = try await analyze(inputs(20, frames: 1600, stamps: Array(stamps.prefix(2))))
        #expect(fed.last?.end == frame(32000))
        #expect(events.isEmpty)
    }
}
