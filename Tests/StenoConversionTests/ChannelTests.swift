import StenoAudio
import StenoConversion
import StenoSoxr
import StenoTesting
import Testing

/// Law C3: how channels become one.
@Suite struct ChannelTests {
    static let rate = 48000
    static let target = AudioFormat(sampleRate: rate, channelCount: 1, sampleFormat: .float32)
    static let voice = TestSignals.babble(sampleRate: rate, frameCount: rate)
    static let silence = [Float](repeating: 0, count: rate)

    /// The mono output of channels at the same rate, and what was done.
    static func mix(
        _ channels: [[Float]], layout: ChannelLayout? = nil, policy: ChannelPolicy = .automatic
    ) throws -> (samples: [Float], report: ChannelReport, changes: [ChannelChange]) {
        let converter = AudioConverter(to: target, channelPolicy: policy, resampler: SoxrResamplerFactory())
        var output = AudioBuffer(format: target, frameCapacity: 0)
        try converter.convert(AudioBuffer(channels: channels, sampleRate: rate, layout: layout), into: &output)
        let report = try #require(converter.channelReport)
        var samples = output.samples(of: Float.self)
        try converter.finish(into: &output)
        samples += output.samples(of: Float.self)
        #expect(samples.count == channels[0].count)
        return (samples, report, converter.takeChannelChanges())
    }

    /// Case 043.
    @Test func oppositePhaseLeavesOneChannel() throws {
        let (samples, report, changes) = try Self.mix([Self.voice, Self.voice.map { -$0 }])
        #expect(samples == Self.voice)
        #expect(report.channels.map(\.use) == [.used, .oppositePhase])
        #expect(changes.map(\.frame) == [0])
        #expect(changes.first?.report.description == "channels used: 0; in opposite phase: 1")
    }

    /// Case 045.
    @Test func theOneLiveChannelOfFourComesOutWhole() throws {
        let (samples, report, changes) = try Self.mix([Self.silence, Self.voice, Self.silence, Self.silence])
        #expect(samples == Self.voice)
        #expect(report.channels.map(\.use) == [.silent, .used, .silent, .silent])
        #expect(report.channels[1].gain == 1)
        #expect(changes.count == 1)
    }

    @Test func aChannelWithNoiseAloneIsLeftOut() throws {
        let noise = TestSignals.noise(amplitude: 0.0005, frameCount: Self.rate, seed: 1)
        let (_, report, _) = try Self.mix([Self.voice, noise])
        #expect(report.channels.map(\.use) == [.used, .silent])
        #expect(abs(report.channels[1].level! - 0.000_289) < 0.0001)
    }

    /// Case 047.
    @Test(arguments: [ChannelPolicy.automatic, .mean]) func correlatedFullScaleDoesNotClip(_ policy: ChannelPolicy)
        throws
    {
        let sine = TestSignals.sine(frequency: 440, amplitude: 0.9, sampleRate: Self.rate, frameCount: Self.rate)
        for channels in 1...9 {
            let (samples, report, changes) = try Self.mix([[Float]](repeating: sine, count: channels), policy: policy)
            #expect(zip(samples, sine).allSatisfy { abs($0 - $1) < 1e-6 })
            #expect(report.channels.allSatisfy { $0.use == .used } && changes.isEmpty)
        }
    }

    /// Case 049, and the channel that a policy forces.
    @Test func eightChannelsForASecondAreASecond() throws {
        let channels = (0..<8).map { TestSignals.noise(frameCount: Self.rate, seed: UInt64($0)) }
        let mean = try Self.mix(channels, policy: .mean).samples
        let expected = (0..<Self.rate).map { frame in channels.reduce(0) { $0 + $1[frame] } / 8 }
        #expect(zip(mean, expected).allSatisfy { abs($0 - $1) < 1e-6 })
        for index in 0..<8 {
            let (samples, report, _) = try Self.mix(channels, policy: .channel(index))
            #expect(samples == channels[index])
            #expect(report.channels.map(\.use) == (0..<8).map { $0 == index ? .used : .notChosen })
        }
    }

    @Test func surroundIsMixedByBS775() throws {
        let signals = (0..<6).map { TestSignals.noise(frameCount: 4800, seed: UInt64($0)) }
        let root: Float = 0.70710678
        func expected(_ weights: [Float]) -> [Float] {
            let sum = weights.reduce(0, +)
            return (0..<4800).map { frame in (0..<6).reduce(0) { $0 + signals[$1][frame] * weights[$1] } / sum }
        }
        let (mono, report, _) = try Self.mix(signals, layout: .surround51)
        #expect(zip(mono, expected([root, root, 1, 0, 0.5, 0.5])).allSatisfy { abs($0 - $1) < 1e-6 })
        #expect(report.channels[3].use == .notChosen)

        let target = AudioFormat(sampleRate: Self.rate, channelLayout: .stereo, sampleFormat: .float32)
        let stereo = try AudioConverter(to: target, resampler: SoxrResamplerFactory())
            .convertAll([AudioBuffer(channels: signals, sampleRate: Self.rate, layout: .surround51)])
            .samples(of: Float.self)
        for (side, weights) in [[1, 0, root, 0, root, 0], [0, 1, root, 0, 0, root]].enumerated() {
            let samples = stride(from: side, to: stereo.count, by: 2).map { stereo[$0] }
            #expect(zip(samples, expected(weights)).allSatisfy { abs($0 - $1) < 1e-6 })
        }
    }

    /// Speech on the input that a driver calls low frequency is not lost.
    @Test func theLowFrequencyChannelIsUsedWhereItIsAlone() throws {
        let (samples, report, _) = try Self.mix(
            (0..<6).map { $0 == 3 ? Self.voice : Self.silence }, layout: .surround51)
        #expect(samples == Self.voice)
        #expect(report.channels[3].use == .used)
    }

    /// A wire that changes its polarity, a channel that comes and goes: gains move in a line, never in a step.
    @Test func gainsNeverJump() throws {
        let sine = TestSignals.sine(frequency: 100, amplitude: 0.5, sampleRate: Self.rate, frameCount: Self.rate * 4)
        let second = sine.indices.map { frame -> Float in
            switch frame / Self.rate {
            case 0: sine[frame]
            case 1: -sine[frame]
            case 2: 0
            default: sine[frame]
            }
        }
        let (samples, _, changes) = try Self.mix([sine, second])
        let largest = zip(samples.dropFirst(), samples).map { abs($0 - $1) }.max()!
        // The steepest of a sine, and a gain that goes from 0.5 to 1 within 20 ms; the source's own step at the seams
        // is at a zero of the sine.
        let limit: Float = 0.5 * 2 * .pi * 100 / 48000 * 1.02 + 0.5 * 0.5 / 960
        #expect(largest < limit)
        #expect(changes.count == 2)
        #expect(changes.first?.report.channels.map(\.use) == [.used, .oppositePhase])
        #expect(changes.last?.report.channels.map(\.use) == [.used, .used])
        #expect(changes.allSatisfy { $0.frame.isMultiple(of: 960) })
        // The end of each second is the sine at full level; but a channel that falls silent stays in the mean for
        // seconds, or every pause of a talker would change the gain.
        for (second, gain) in [1, 1, 0.5, 1].enumerated() as EnumeratedSequence<[Float]> {
            let part = ((second + 1) * Self.rate - 4800)..<((second + 1) * Self.rate)
            #expect(zip(samples[part], sine[part]).allSatisfy { abs($0 - $1 * gain) < 1e-6 })
        }
    }

    /// Law T3 where the policy decides something.
    @Test func decisionsDoNotDependOnHowTheStreamIsCut() throws {
        var random = SeededRandom(seed: 5)
        for rate in [8000, 44100, 48000] {
            let channels = (0..<4).map { channel in
                (0..<rate * 2).map { frame -> Float in
                    let block = frame / (rate / 7) + channel
                    let sine = Float(((frame * 440 / rate * 37 + frame) % 200) - 100) / 250
                    return block % 5 == 0 ? 0 : block % 3 == 0 ? -sine : sine
                }
            }
            let input = AudioBuffer(channels: channels, sampleRate: rate)
            let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)
            let converter = AudioConverter(to: target, resampler: SoxrResamplerFactory())
            let whole = try converter.convertAll([input])
            let changes = converter.takeChannelChanges()
            #expect(changes.count > 3)
            for longest in [1, 33, 480, 5000] {
                let cut = try converter.convertAll(input.cut(longest: longest, using: &random))
                #expect(cut.content == whole.content)
                #expect(converter.takeChannelChanges() == changes)
            }
        }
    }

    /// A quiet talker far from a loud one is not lost, nor one who begins when the loud one is done.
    @Test func quietChannelsComeBack() throws {
        let loud = TestSignals.babble(sampleRate: Self.rate, frameCount: Self.rate)
        let quiet = loud.map { $0 * 0.004 }
        let both = try Self.mix([loud + Self.silence, Self.silence + quiet])
        #expect(both.report.channels.map(\.use) == [.used, .used])
        // Its first words are there.
        #expect(both.samples[(Self.rate + 9600)...].contains { abs($0) > 0.0005 })
    }

    /// Below and around the level at which a channel counts as silent, the mean goes on.
    @Test func whatIsAlmostSilentComesOut() throws {
        let faint = (0..<20).flatMap { step in
            TestSignals.noise(amplitude: 0.000_02 * Float(1 + step), frameCount: 960, seed: UInt64(step))
        }
        let (samples, _, changes) = try Self.mix([faint, faint])
        #expect(zip(samples, faint).allSatisfy { abs($0 - $1) < 1e-9 } && changes.isEmpty)
    }

    @Test func notANumberAndInfinityStayOutOfTheFilter() throws {
        let frames = 4800
        for channels in 1...3 {
            for policy in [ChannelPolicy.automatic, .mean, .channel(0)] {
                let sine = TestSignals.sine(frequency: 440, sampleRate: Self.rate, frameCount: frames)
                var broken = [[Float]](repeating: sine, count: channels)
                let wrong: [Int: Float] = [0: .nan, 700: .infinity, 2001: -.infinity, 4799: -.nan]
                for (frame, value) in wrong { broken[channels - 1][frame] = value }
                var repaired = broken
                for (frame, value) in wrong {
                    repaired[channels - 1][frame] = value.isNaN ? 0 : (value > 0 ? 1 : -1)
                }
                let output = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)
                let converter = AudioConverter(
                    to: output, channelPolicy: policy, resampler: SoxrResamplerFactory())
                let first = try converter.convertAll([AudioBuffer(channels: broken, sampleRate: Self.rate)])
                let second = try converter.convertAll([AudioBuffer(channels: repaired, sampleRate: Self.rate)])
                #expect(first.content == second.content)
            }
        }
    }
}
