import CConversionReference
import Glibc
import StenoAudio
import StenoConversion
import StenoSampleRate
import StenoSoxr
import StenoTesting

/// One line of the benchmark: how long our way takes for a unit of work, and the reference's in the same run.
struct BenchmarkRow {
    let name: String
    let method: String
    /// Seconds of processor time for a second of audio.
    let seconds: Double
    let referenceSeconds: Double?
    /// The median over the rounds of reference / ours: our speed relative to the reference's.
    let ratio: Double?
}

/// Processor seconds of this thread, which other work on the machine does not lengthen.
func processorSeconds() -> Double {
    var time = timespec()
    unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

/// Runs both ways in turn, so that a change of the machine's speed meets both.
func compare(rounds: Int, _ ours: () throws -> Double, _ reference: () throws -> Double) rethrows
    -> (seconds: Double, referenceSeconds: Double, ratio: Double)
{
    var (times, references, ratios): ([Double], [Double], [Double]) = ([], [], [])
    for round in 0..<rounds {
        let time: Double
        let other: Double
        if round.isMultiple(of: 2) {
            time = try ours()
            other = try reference()
        } else {
            other = try reference()
            time = try ours()
        }
        times.append(time)
        references.append(other)
        ratios.append(other / time)
    }
    return (median(times), median(references), median(ratios))
}

/// A stream of 10 ms buffers: tones of a voice's range with noise, each channel a little different.
struct ConversionInput {
    let buffers: [AudioBuffer]
    let samples: [[Float]]
    let format: AudioFormat

    init(sampleRate: Int, channelCount: Int) {
        format = AudioFormat(sampleRate: sampleRate, channelCount: channelCount, sampleFormat: .float32)
        let frames = sampleRate / 100
        var noise: UInt32 = 1
        samples = (0..<100).map { buffer in
            (0..<frames * channelCount).map { index in
                let time = Double(buffer * frames + index / channelCount) / Double(sampleRate)
                noise = noise &* 1_664_525 &+ 1_013_904_223
                return Float(0.3 * sin(2 * .pi * 220 * time) + 0.2 * sin(2 * .pi * 1400 * time))
                    + Float(Int32(bitPattern: noise)) * 0x1p-36 * Float(1 + index % channelCount)
            }
        }
        let layout = ChannelLayout(channelCount: channelCount)
        buffers = samples.map { AudioBuffer(interleaved: $0, sampleRate: sampleRate, channelLayout: layout) }
    }
}

/// Processor seconds for a second of audio through our converter.
func timeConverter(
    _ input: ConversionInput, seconds: Int, policy: ChannelPolicy = .automatic, factory: any ResamplerFactory
) throws -> Double {
    let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)
    let converter = AudioConverter(to: target, channelPolicy: policy, resampler: factory)
    var output = AudioBuffer(format: target, frameCapacity: 16000)
    for buffer in input.buffers { try converter.convert(buffer, into: &output) }
    let start = processorSeconds()
    for _ in 0..<seconds {
        for buffer in input.buffers { try converter.convert(buffer, into: &output) }
    }
    return (processorSeconds() - start) / Double(seconds)
}

/// Processor seconds for a second of audio through the same work in C.
func timeReference(_ input: ConversionInput, seconds: Int, recipe: UInt) -> Double {
    let channels = input.format.channelCount
    guard
        let reference = unsafe conversion_reference_create(
            Double(input.format.sampleRate), 16000, channels, input.format.sampleRate, recipe)
    else { return .nan }
    defer { unsafe conversion_reference_destroy(reference) }
    var output = [Int16](repeating: 0, count: 16384)
    func second() {
        for samples in input.samples {
            _ = unsafe conversion_reference_convert(reference, samples, samples.count / channels, &output, 16384)
        }
    }
    second()
    let start = processorSeconds()
    for _ in 0..<seconds { second() }
    return (processorSeconds() - start) / Double(seconds)
}

/// `steno-bench conversion`: speed against C, over resamplers, channels and rates.
func benchmarkConversion(rounds: Int = 21, seconds: Int = 20) throws -> [BenchmarkRow] {
    func row(
        _ name: String, _ rate: Int, _ channels: Int, policy: ChannelPolicy = .automatic,
        factory: any ResamplerFactory = SoxrResamplerFactory(), recipe: UInt = 4
    ) throws -> BenchmarkRow {
        let input = ConversionInput(sampleRate: rate, channelCount: channels)
        let result = try compare(rounds: rounds) {
            try timeConverter(input, seconds: seconds, policy: policy, factory: factory)
        } _: {
            timeReference(input, seconds: seconds, recipe: recipe)
        }
        return BenchmarkRow(
            name: name, method: "10 ms buffers; reference: C on libsoxr, recipe \(recipe)", seconds: result.seconds,
            referenceSeconds: result.referenceSeconds, ratio: result.ratio)
    }
    var rows = [try row("48 kHz stereo Float32 to 16 kHz mono Int16", 48000, 2)]
    rows.append(try row("the same, mean of all channels", 48000, 2, policy: .mean))
    rows.append(
        try row("the same, libsoxr VHQ", 48000, 2, factory: SoxrResamplerFactory(quality: .veryHigh), recipe: 6))
    for quality in SampleRateResamplerFactory.Quality.allCases {
        let factory = SampleRateResamplerFactory(quality: quality)
        rows.append(try row("the same, libsamplerate \(quality)", 48000, 2, factory: factory))
    }
    for channels in [1, 6, 8] { rows.append(try row("48 kHz, \(channels) channels", 48000, channels)) }
    for rate in [8000, 16000, 22050, 44100, 96000, 192_000] { rows.append(try row("\(rate) Hz stereo", rate, 2)) }
    return rows
}

/// What a path does to sines, in dB.
struct QualityRow {
    let name: String
    /// The largest deviation of the level up to 7.2 kHz (3.6 kHz from 8 kHz).
    let ripple: Double
    /// The loudest alias or image, below the sine that it comes from.
    let rejection: Double
    /// Signal to noise, the worst of some frequencies.
    let float32: Double
    let int16: Double
}

/// The quality of the default path to 16 kHz mono, beside other resamplers.
func measureConversionQuality() throws -> [QualityRow] {
    let factories: [(String, any ResamplerFactory)] =
        [
            ("libsoxr HQ", SoxrResamplerFactory()),
            ("libsoxr VHQ", SoxrResamplerFactory(quality: .veryHigh)),
        ]
        + SampleRateResamplerFactory.Quality.allCases.map {
            ("libsamplerate \($0)", SampleRateResamplerFactory(quality: $0))
        }
    var rows: [QualityRow] = []
    for (name, factory) in factories {
        for rate in [48000, 44100, 8000] {
            func convert<S: AudioSample>(_ frequency: Double, _ amplitude: Double, _ type: S.Type) throws -> [S] {
                let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: S.sampleFormat)
                let converter = AudioConverter(to: target, resampler: factory)
                let sine = TestSignals.sine(
                    frequency: frequency, amplitude: amplitude, sampleRate: rate, frameCount: rate)
                var output = AudioBuffer(format: target, frameCapacity: 0)
                try converter.convert(AudioBuffer(interleaved: sine, sampleRate: rate), into: &output)
                return Array(output.samples(of: S.self)[4000..<12000])
            }
            let limit = rate == 8000 ? 3600.0 : 7200
            var (ripple, rejection, float32, int16) = (0.0, Double.infinity, Double.infinity, Double.infinity)
            for part in [0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1] {
                let frequency = (part * limit).rounded(.down) + 0.5
                let fit = SineFit(try convert(frequency, 0.98, Float.self), frequency: frequency / 16000)
                ripple = max(ripple, abs(20 * log10(fit.amplitude / 0.98)))
                rejection = min(rejection, fit.signalToNoise)
                float32 = min(float32, fit.signalToNoise)
                let coarse = try convert(frequency, 0.98, Int16.self).map { Float($0) * 0x1p-15 }
                int16 = min(int16, SineFit(coarse, frequency: frequency / 16000).signalToNoise)
            }
            if rate > 16000 {
                for frequency in stride(from: 8400.0, to: Double(rate) / 2 - 500, by: 700) {
                    let output = try convert(frequency, 0.98, Float.self)
                    let power = output.reduce(0) { $0 + Double($1) * Double($1) } / Double(output.count)
                    rejection = min(rejection, 10 * log10(0.98 * 0.98 / 2 / max(power, 1e-30)))
                }
            }
            rows.append(
                QualityRow(
                    name: "\(name), \(rate) Hz", ripple: ripple, rejection: rejection, float32: float32, int16: int16))
        }
    }
    return rows
}
