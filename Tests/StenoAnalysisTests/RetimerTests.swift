import CAllocationCounter
import StenoAnalysis
import StenoAudio
import StenoConversion
import StenoSoxr
import StenoTesting
import Testing

@Suite("Laws T2-T6: from source frames to start times")
struct RetimerTests {
    private let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)

    private func converter(_ options: AnalyzerInputConverter.Options = .init()) -> AnalyzerInputConverter {
        AnalyzerInputConverter(analyzerFormat: target, resampler: SoxrResamplerFactory(), options: options)
    }

    /// A ramp that tells each frame from its neighbours, mono at `rate`.
    private func ramp(_ frames: Int, rate: Int, from first: Int = 0) -> AudioBuffer {
        AudioBuffer(
            interleaved: (first..<first + frames).map { Int16(truncatingIfNeeded: $0 % 20011) }, sampleRate: rate)
    }

    /// Checks T2 on the way, and returns all frames that came out, with silence where the inputs leave a gap.
    private func joined(_ inputs: [AnalyzerInput]) -> [Int16] {
        var samples: [Int16] = []
        for input in inputs {
            let start = Int(input.bufferStartTime?.value ?? -1)
            #expect(input.bufferStartTime?.timescale == 16000)
            #expect(start >= samples.count, "a buffer starts before the last one ended")
            samples += [Int16](repeating: 0, count: max(0, start - samples.count))
            samples += input.buffer.samples(of: Int16.self)
        }
        return samples
    }

    @Test(arguments: [(44100, 1102), (48000, 480), (8000, 160), (192_000, 65536), (22050, 1), (16000, 7)])
    func chunkingIsInvisible(rate: Int, chunk: Int) throws {
        let audio = ramp(rate / 4 + 13, rate: rate)
        let whole = converter()
        let once = joined(try whole.convert(audio) + whole.finish())
        let cut = converter()
        var inputs: [AnalyzerInput] = []
        var first = 0
        while first < audio.frameCount {
            let end = min(first + chunk, audio.frameCount)
            inputs += try cut.convert(audio.copy(frames: first..<end))
            #expect(abs(cut.driftFromSource) <= 1)
            first = end
        }
        inputs += try cut.finish()
        #expect(joined(inputs) == once)
        #expect(once.count == Int((Double(audio.frameCount) * 16000 / Double(rate)).rounded()))
        #expect(try cut.finish().isEmpty, "a second finish brings nothing")
    }

    /// Case 011: nothing for four seconds, then a buffer stamped 4.0 s.
    @Test(arguments: [GapPolicy.fill, .keep])
    func audioThatStartsLateIsWhereItWas(policy: GapPolicy) throws {
        let converter = converter(.init(gapPolicy: policy))
        let loud = AudioBuffer(interleaved: [Int16](repeating: 8000, count: 4800), sampleRate: 48000)
        let inputs = try converter.convert(loud, at: MediaTime(value: 4, timescale: 1)) + converter.finish()
        let samples = joined(inputs)
        #expect(samples.count == 65600)
        #expect(samples[..<63900].allSatisfy { abs($0) < 50 })
        #expect(samples[64100..<65500].allSatisfy { abs($0 - 8000) < 200 })
        #expect(converter.events.map(\.kind) == [.gap])
        #expect(converter.events.first?.range == MediaTimeRange(start: .zero, end: frame(64000)))
        if policy == .keep { #expect(inputs.first?.bufferStartTime == frame(64000)) }
    }

    @Test func anAnnouncedGapKeepsTheReasonAndTheTime() throws {
        for policy in [GapPolicy.fill, .keep] {
            let converter = converter(.init(gapPolicy: policy))
            var inputs = try converter.convert(ramp(44100, rate: 44100))
            try converter.skip(22050, kind: .overrun) { (input) throws(StenoError) in inputs.append(input) }
            inputs += try converter.convert(ramp(44100, rate: 44100)) + converter.finish()
            #expect(joined(inputs).count == 40000)
            #expect(
                converter.events == [
                    TimelineEvent(.overrun, range: MediaTimeRange(start: frame(16000), end: frame(24000)))
                ])
            #expect(converter.retimer.ledger.missingFrames == 22050)
            #expect(abs(converter.driftFromSource) <= 1)
        }
    }

    /// Case 001 with a source whose stamps overlap by one frame in each buffer: jitter, counted and ignored.
    @Test func jitterOfTheSourceClockNeitherCutsNorFills() throws {
        let converter = converter()
        var frames = 0
        for index in 0..<200 {
            let stamp = MediaTime(value: Int64(index * 1024 - (index % 3)), timescale: 48000)
            for input in try converter.convert(ramp(1024, rate: 48000), at: stamp) { frames += input.buffer.frameCount }
        }
        for input in try converter.finish() { frames += input.buffer.frameCount }
        #expect(frames == Int((200.0 * 1024 / 3).rounded()))
        #expect(converter.retimer.ledger.jitteredStamps > 100)
        #expect(converter.retimer.ledger.trimmedFrames == 0)
        #expect(converter.events.isEmpty)
    }

    @Test func anOverlapBeyondTheToleranceIsTrimmed() throws {
        let converter = converter(.init(tolerance: MediaTime(value: 1, timescale: 16000)))
        var inputs = try converter.convert(ramp(1600, rate: 16000), at: .zero)
        inputs += try converter.convert(ramp(1600, rate: 16000, from: 1000), at: frame(1000))
        inputs += try converter.convert(ramp(100, rate: 16000, from: 0), at: frame(0))
        inputs += try converter.convert(ramp(1600, rate: 16000, from: 2600), at: frame(2600)) + converter.finish()
        #expect(joined(inputs) == ramp(4200, rate: 16000).samples(of: Int16.self))
        #expect(converter.retimer.ledger.trimmedFrames == 700)
        #expect(converter.events.map(\.kind) == [.overlapTrimmed, .overlapTrimmed])
    }

    @Test func anOverlapCanBeRejectedOrIgnored() throws {
        let rejecting = converter(.init(overlapPolicy: .reject))
        _ = try rejecting.convert(ramp(16000, rate: 16000), at: .zero)
        #expect(throws: StenoError.self) { try rejecting.convert(ramp(16000, rate: 16000), at: frame(100)) }
        let ignoring = converter(.init(overlapPolicy: .ignoreStamp))
        var inputs = try ignoring.convert(ramp(16000, rate: 16000), at: .zero)
        inputs += try ignoring.convert(ramp(16000, rate: 16000), at: frame(100)) + ignoring.finish()
        #expect(joined(inputs).count == 32000)
        #expect(ignoring.events.map(\.kind) == [.overlapIgnored])
    }

    /// Case 017: 48 002 frames for each second of the source's clock, for an hour.
    @Test func aSourceClockThatIsOffIsMeasuredAndNotCorrected() throws {
        var retimer = AnalyzerInputRetimer(sampleRate: 16000)
        for second in 0..<Int64(3600) {
            let placement = try retimer.place(
                frameCount: 48002, sampleRate: 48000, at: MediaTime(value: second, timescale: 1))
            #expect(placement.missingFrames == 0 && placement.overlappingFrames == 0)
            retimer.advance(48002, sampleRate: 48000)
        }
        #expect(retimer.clockDrift.frames(at: 48000) == -2 * 3599)
        #expect(retimer.sourceFrames == Int64((48002.0 * 3600 / 3).rounded()))
    }

    /// Law T4 over changes of the source's format: each stretch at its own rate, one rounding over the sum.
    @Test func aFormatChangeInMidStreamMakesNoJump() throws {
        let converter = converter()
        var inputs: [AnalyzerInput] = []
        let rates = [44100, 48000, 44100, 22050, 96000, 16000]
        for rate in rates { inputs += try converter.convert(ramp(rate / 3 + 1, rate: rate)) }
        inputs += try converter.finish()
        let exact = rates.reduce(0.0) { $0 + Double($1 / 3 + 1) * 16000 / Double($1) }
        #expect(joined(inputs).count == Int(exact.rounded()))
        #expect(converter.events.map(\.kind) == [TimelineEvent.Kind](repeating: .formatChanged, count: 5))
        #expect(converter.driftFromSource == 0)
    }

    /// Law T5: a day at 44.1 and at 48 kHz, with the rate changing every hour, in the arithmetic alone.
    @Test func aDayStaysWithinAFrame() throws {
        var retimer = AnalyzerInputRetimer(sampleRate: 16000)
        for hour in 0..<24 {
            let rate = hour.isMultiple(of: 2) ? 44100 : 48000
            for _ in 0..<3600 { retimer.advance(rate, sampleRate: rate) }
            #expect(retimer.sourceFrames == Int64(hour + 1) * 57_600_000)
        }
        // And where the stretches do not end on whole frames of the output.
        var odd = AnalyzerInputRetimer(sampleRate: 16000)
        for _ in 0..<10_000 {
            odd.advance(1102, sampleRate: 44100)
            odd.advance(1, sampleRate: 48000)
        }
        // 11 020 000 / 44.1 kHz and 10 000 / 48 kHz, at 16 kHz: 3 998 185.94 + 3333.33.
        #expect(odd.sourceFrames == 4_001_519)
    }

    /// Case 043: what the converter does with the channels reaches the events, at its place.
    @Test func aChannelInOppositePhaseIsReported() throws {
        let left = (0..<32000).map { Float(($0 * 7919) % 2000) / 4000 - 0.25 }
        let converter = converter()
        let buffer = AudioBuffer(
            interleaved: left.flatMap { [$0, -$0] }, sampleRate: 16000, channelLayout: .stereo)
        let samples = joined(try converter.convert(buffer) + converter.finish())
        #expect(converter.events.map(\.kind) == [.channels])
        #expect(converter.events.first?.detail.contains("in opposite phase: 1") == true)
        #expect(samples == left.map { Int16(($0 * 32768).rounded(.toNearestOrEven)) })
    }

    /// Law C5 on the way from a source's buffer to the analyzer's input.
    @Test func theSteadyStateAllocatesNothing() throws {
        guard allocation_count_supported() else { return }
        let converter = converter()
        let buffer = AudioBuffer(
            interleaved: (0..<960).map { Float($0 % 96) / 96 }, sampleRate: 48000, channelLayout: .stereo)
        var frames = 0
        func convert(_ count: Int) throws {
            for _ in 0..<count {
                try converter.convert(buffer) { (input) throws(StenoError) in frames += input.buffer.frameCount }
            }
        }
        try convert(300)
        let before = allocation_count_thread()
        try convert(1000)
        #expect(allocation_count_thread() == before)
        #expect(frames > 200_000)
    }
}
