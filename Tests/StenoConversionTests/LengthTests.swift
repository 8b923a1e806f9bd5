import StenoAudio
import StenoConversion
import StenoSampleRate
import StenoSoxr
import StenoTesting
import Testing

/// Laws T3 and T4: total length and independence of how a stream is cut.
@Suite struct LengthTests {
    /// Random streams that change their format up to twice.
    struct Case {
        var target: AudioFormat
        var policy: ChannelPolicy
        var stretches: [AudioBuffer] = []
        /// `round(sum of frames * output rate / input rate)`, rounded once.
        var expected: Int

        init(_ random: inout SeededRandom, longest: Int) {
            let rates = [8000, 11025, 16000, 22050, 24000, 44100, 48000, 96000, 192_000]
            let targetChannels = [1, 1, 1, 2].randomElement(using: &random)!
            target = AudioFormat(
                sampleRate: [8000, 16000, 24000, 44100, 48000].randomElement(using: &random)!,
                channelCount: targetChannels, sampleFormat: SampleFormat.allCases.randomElement(using: &random)!,
                isInterleaved: Bool.random(using: &random))
            policy = [.automatic, .automatic, .mean, .channel(0)].randomElement(using: &random)!
            var (numerator, denominator) = (Int128(0), Int128(1))
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let rate =
                    Bool.random(using: &random)
                    ? rates.randomElement(using: &random)! : Int.random(in: 8000...192_000, using: &random)
                let format = AudioFormat(
                    sampleRate: rate,
                    channelCount: targetChannels == 2
                        ? Int.random(in: 1...2, using: &random) : Int.random(in: 1...9, using: &random),
                    sampleFormat: SampleFormat.allCases.randomElement(using: &random)!,
                    isInterleaved: Bool.random(using: &random))
                if format == stretches.last?.format { continue }
                let frames = Int.random(in: 1...longest, using: &random)
                stretches.append(.noise(format, frames: frames, using: &random))
                numerator = numerator * Int128(rate) + Int128(frames * target.sampleRate) * denominator
                denominator *= Int128(rate)
            }
            expected = Int((2 * numerator + denominator) / (2 * denominator))
        }

        func check(_ factory: any ResamplerFactory, _ random: inout SeededRandom) throws {
            let converter = AudioConverter(to: target, channelPolicy: policy, resampler: factory)
            let whole = try converter.convertAll(stretches)
            #expect(whole.frameCount == expected, "\(self)")
            let longest = [1, 7, 480, 65536].randomElement(using: &random)!
            let pieces = stretches.flatMap { $0.cut(longest: longest, using: &random) }
            // The converter is used again: after `finish` it starts a new stream.
            let cut = try converter.convertAll(pieces)
            #expect(cut.content == whole.content, "\(self)")
        }
    }

    @Test func thousandsOfRandomStreams() throws {
        var random = SeededRandom(seed: 1)
        for _ in 0..<2500 { try Case(&random, longest: 300).check(LinearFactory(), &random) }
    }

    @Test func randomStreamsThroughTheRealResamplers() throws {
        var random = SeededRandom(seed: 2)
        for _ in 0..<120 { try Case(&random, longest: 3000).check(SoxrResamplerFactory(), &random) }
        for _ in 0..<60 { try Case(&random, longest: 3000).check(SampleRateResamplerFactory(), &random) }
    }

    /// Case 033.
    @Test func aHundredSecondsInBlocksOf441Frames() throws {
        let target = AudioFormat(sampleRate: 48000, channelCount: 1, sampleFormat: .int16)
        let converter = AudioConverter(to: target, resampler: SoxrResamplerFactory())
        let block = AudioBuffer(
            interleaved: TestSignals.noise(frameCount: 441, seed: 1), sampleRate: 44100)
        var output = AudioBuffer(format: target, frameCapacity: 0)
        var total = Int64(0)
        for index in 1...10000 {
            try converter.convert(block, into: &output)
            total += Int64(output.frameCount)
            #expect(total + converter.heldFrames == Int64(index * 480))
        }
        try converter.finish(into: &output)
        #expect(total + Int64(output.frameCount) == 4_800_000)
    }

    /// Case 035.
    @Test func aSmallChangeOfTheRateInMidStream() throws {
        let buffers = [48000, 48010].map {
            AudioBuffer(interleaved: TestSignals.sine(frequency: 440, sampleRate: $0, frameCount: $0), sampleRate: $0)
        }
        let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .float32)
        let output = try AudioConverter(to: target, resampler: SoxrResamplerFactory()).convertAll(buffers)
        #expect(output.frameCount == 32000)
        // The sine goes on: both are whole numbers of periods.
        let middle = output.samples(of: Float.self)[8000..<24000]
        let steps = zip(middle.dropFirst(), middle).map { abs($0 - $1) }
        #expect(steps.max()! < 0.5 * 2 * .pi * 440 / 16000 * 1.1)
    }

    /// Cases 015 and 037: an impulse keeps its place, also ten frames before the end.
    @Test(arguments: [(5000, 20000), (19990, 20000), (0, 20000), (0, 1)])
    func impulsesKeepTheirPlace(_ position: Int, _ frames: Int) throws {
        for rate in [48000, 44100, 22050, 8000] {
            let input = AudioBuffer(
                interleaved: TestSignals.impulse(at: position, frameCount: frames), sampleRate: rate)
            let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .float32)
            let output = try AudioConverter(to: target, resampler: SoxrResamplerFactory()).convertAll([input])
            let samples = output.samples(of: Float.self)
            let peak = samples.indices.max { abs(samples[$0]) < abs(samples[$1]) } ?? 0
            #expect(abs(Double(peak) - Double(position) * 16000 / Double(rate)) <= 1)
            if !samples.isEmpty { #expect(samples[peak] > 0.25) }
        }
    }

    @Test func finishIsIdempotentAndEmptyStreamsAreEmpty() throws {
        let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)
        let converter = AudioConverter(to: target, resampler: SoxrResamplerFactory())
        var output = AudioBuffer(format: target, frameCapacity: 0)
        try converter.finish(into: &output)
        #expect(output.frameCount == 0)
        let stereo = AudioFormat(sampleRate: 44100, channelCount: 2, sampleFormat: .int16)
        try converter.convert(.silence(format: stereo, frameCount: 0), into: &output)
        #expect(output.frameCount == 0)
        try converter.convert(.silence(format: stereo, frameCount: 441), into: &output)
        #expect(converter.heldFrames == 160 - Int64(output.frameCount))
        try converter.finish(into: &output)
        #expect(output.frameCount == 160)
        try converter.finish(into: &output)
        #expect(output.frameCount == 0 && converter.heldFrames == 0)
    }

    /// Law C5.
    @Test(.enabled(if: allocationCounter != nil)) func theSteadyStateAllocatesNothing() throws {
        let count = try #require(allocationCounter)
        let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)
        for (rate, channels) in [(48000, 2), (44100, 6), (16000, 3), (8000, 1)] {
            for sampleFormat in SampleFormat.allCases {
                for policy in [ChannelPolicy.automatic, .mean, .channel(0)] {
                    var random = SeededRandom(seed: 3)
                    let input = AudioBuffer.noise(
                        AudioFormat(
                            sampleRate: rate, channelCount: channels, sampleFormat: sampleFormat,
                            isInterleaved: channels != 6),
                        frames: rate / 100, using: &random)
                    let converter = AudioConverter(
                        to: target, channelPolicy: policy, resampler: SoxrResamplerFactory())
                    var output = AudioBuffer(format: target, frameCapacity: 0)
                    func second() throws {
                        for _ in 0..<100 {
                            try converter.convert(input, into: &output)
                            _ = converter.takeChannelChanges()
                        }
                    }
                    try second()
                    let before = count()
                    try second()
                    #expect(count() == before, "\(input.format), \(policy)")
                }
            }
        }
    }
}
