import Glibc
import StenoAudio
import StenoConversion
import StenoSoxr
import StenoTesting
import Testing

/// What the default path does to sines, from Float32 to mono at 16 kHz.
@Suite struct QualityTests {
    static let rates = [48000, 44100, 8000]

    /// A second of a sine through the converter; the middle of it.
    static func convert<S: AudioSample>(
        _ frequency: Double, amplitude: Double, from rate: Int, as type: S.Type
    ) throws -> [S] {
        let sine = TestSignals.sine(frequency: frequency, amplitude: amplitude, sampleRate: rate, frameCount: rate)
        let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: S.sampleFormat)
        let converter = AudioConverter(to: target, resampler: SoxrResamplerFactory())
        let output = try converter.convertAll([AudioBuffer(interleaved: sine, sampleRate: rate)])
        return Array(output.samples(of: S.self)[4000..<12000])
    }

    @Test(arguments: rates) func thePassBandIsFlat(_ rate: Int) throws {
        for part in [0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1] {
            let frequency = part * (rate == 8000 ? 3600 : 7200)
            let output = try Self.convert(frequency, amplitude: 0.5, from: rate, as: Float.self)
            let level = 20 * log10(SineFit(output, frequency: frequency / 16000).amplitude / 0.5)
            #expect(abs(level) < 0.1, "\(frequency) Hz at \(level) dB")
        }
    }

    @Test(arguments: [48000, 44100]) func aliasesAreGone(_ rate: Int) throws {
        for frequency in [8400.0, 8800, 9500, 11000, 14000, 18000, 21000] {
            let output = try Self.convert(frequency, amplitude: 0.9, from: rate, as: Float.self)
            let power = output.reduce(0) { $0 + Double($1) * Double($1) } / Double(output.count)
            let level = 10 * log10(power / (0.9 * 0.9 / 2))
            #expect(level < -100, "\(frequency) Hz at \(level) dB")
        }
    }

    @Test(arguments: rates) func noiseAndImagesAreLow(_ rate: Int) throws {
        for frequency in [313.0, 997, 2503, 3571] {
            let float = try Self.convert(frequency, amplitude: 0.98, from: rate, as: Float.self)
            let exact = SineFit(float, frequency: frequency / 16000).signalToNoise
            #expect(exact >= 120, "\(frequency) Hz in Float32: \(exact) dB")
            let int16 = try Self.convert(frequency, amplitude: 0.98, from: rate, as: Int16.self)
            let rounded = SineFit(int16.map { Float($0) / 32768 }, frequency: frequency / 16000).signalToNoise
            #expect(rounded >= 96, "\(frequency) Hz in Int16: \(rounded) dB")
        }
    }
}
