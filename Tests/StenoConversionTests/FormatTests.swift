import Foundation
import StenoAudio
import StenoConversion
import StenoSoxr
import StenoTesting
import Testing

/// Sample formats in and out, and what is refused.
@Suite struct FormatTests {
    static func convert(_ input: AudioBuffer, to sampleFormat: SampleFormat, isInterleaved: Bool = true) throws
        -> AudioBuffer
    {
        let target = AudioFormat(
            sampleRate: input.format.sampleRate, channelLayout: input.format.channelLayout, sampleFormat: sampleFormat,
            isInterleaved: isInterleaved)
        return try AudioConverter(to: target, resampler: SoxrResamplerFactory()).convertAll([input])
    }

    static func convert(_ samples: [Float], to sampleFormat: SampleFormat) throws -> AudioBuffer {
        try convert(AudioBuffer(interleaved: samples, sampleRate: 16000), to: sampleFormat)
    }

    static func buffer(_ bytes: [UInt8], _ sampleFormat: SampleFormat, channelCount: Int = 1) -> AudioBuffer {
        let format = AudioFormat(sampleRate: 8000, channelCount: channelCount, sampleFormat: sampleFormat)
        var buffer = AudioBuffer(format: format, frameCapacity: bytes.count / format.bytesPerFrame)
        unsafe buffer.withUnsafeMutableBytes { target in
            unsafe target.copyBytes(from: bytes)
            return bytes.count / format.bytesPerFrame
        }
        return buffer
    }

    @Test func floatsAreRoundedToNearestAndSaturated() throws {
        let step: Float = 1 / 32768
        let input: [Float] = [
            0, 0.49 * step, 0.5 * step, 0.51 * step, 1.5 * step, -0.5 * step, -0.51 * step, 0.5, -0.5,
        ]
        #expect(try Self.convert(input, to: .int16).samples(of: Int16.self) == [0, 0, 0, 1, 2, 0, -1, 16384, -16384])
        let loud: [Float] = [1, 1 - step, -1, 1.5, -7, 1e30, -1e30, .infinity, -.infinity, .nan]
        let int16 = try Self.convert(loud, to: .int16).samples(of: Int16.self)
        #expect(int16 == [32767, 32767, -32768, 32767, -32768, 32767, -32768, 32767, -32768, 0])
        let int32 = try Self.convert(loud, to: .int32).samples(of: Int32.self)
        #expect(int32[0] == .max && int32[2] == .min && int32[3] == .max && int32[4] == .min && int32[9] == 0)
        #expect(
            try Self.convert(loud, to: .uint8).samples(of: UInt8.self) == [255, 255, 0, 255, 0, 255, 0, 255, 0, 128])
    }

    /// Every 16-bit value survives every format that can hold it, in vectors and in the rest behind them.
    @Test func sixteenBitsSurvive() throws {
        let all = (Int16.min...Int16.max).map { $0 }
        for samples in [all] + (1...17).map({ Array(all.suffix($0)) }) {
            for format in [SampleFormat.int24, .int24in32, .int32, .float32, .float64] {
                let there = try Self.convert(AudioBuffer(interleaved: samples, sampleRate: 16000), to: format)
                #expect(try Self.convert(there, to: .int16).samples(of: Int16.self) == samples)
            }
        }
    }

    @Test func integerFormatsHaveTheirByteOrderAndScale() throws {
        let value: Float = -0x12_3456 * 0x1p-23
        #expect(try Self.convert([value], to: .int24).content == [0xAA, 0xCB, 0xED])
        #expect(try Self.convert([value], to: .int24in32).content == [0xAA, 0xCB, 0xED, 0xFF])
        #expect(try Self.convert([value], to: .int32).content == [0x00, 0xAA, 0xCB, 0xED])
        // The upper byte of 24 in 32 is not looked at.
        let odd = try Self.convert(Self.buffer([0xAA, 0xCB, 0xED, 0x77], .int24in32), to: .float32)
        #expect(odd.samples(of: Float.self) == [value])
    }

    @Test func planarAndInterleavedAreTheSameAudio() throws {
        var random = SeededRandom(seed: 1)
        for channels in [2, 3] {
            for sampleFormat in [SampleFormat.int16, .float32, .int24] {
                let format = AudioFormat(sampleRate: 16000, channelCount: channels, sampleFormat: sampleFormat)
                let input = AudioBuffer.noise(format, frames: 1001, using: &random)
                let planar = try Self.convert(input, to: sampleFormat, isInterleaved: false)
                #expect(try Self.convert(planar, to: sampleFormat).content == input.content)
                #expect(planar.content != input.content)
            }
        }
    }

    /// Where nothing changes nothing is touched: not the lowest bits, not what is no number.
    @Test func oneFormatIsCopied() throws {
        var random = SeededRandom(seed: 2)
        for sampleFormat in SampleFormat.allCases {
            for isInterleaved in [true, false] {
                let format = AudioFormat(
                    sampleRate: 16000, channelCount: 2, sampleFormat: sampleFormat, isInterleaved: isInterleaved)
                var input = AudioBuffer(format: format, frameCapacity: 777)
                unsafe input.withUnsafeMutableBytes { bytes in
                    for i in 0..<bytes.count { unsafe bytes[i] = UInt8(truncatingIfNeeded: random.next()) }
                    return 777
                }
                let converter = AudioConverter(to: format, resampler: SoxrResamplerFactory())
                #expect(try converter.convertAll(input.cut(longest: 100, using: &random)).content == input.content)
            }
        }
    }

    @Test func oneChannelGoesToAll() throws {
        let input = AudioBuffer(interleaved: [Int16(1), -2, 300], sampleRate: 16000)
        let target = AudioFormat(sampleRate: 16000, channelCount: 3, sampleFormat: .int16)
        let output = try AudioConverter(to: target, resampler: SoxrResamplerFactory()).convertAll([input])
        #expect(output.samples(of: Int16.self) == [1, 1, 1, -2, -2, -2, 300, 300, 300])
    }

    /// All codes of G.711, against sox.
    @Test(arguments: [(SampleFormat.muLaw, "mu-law"), (.aLaw, "a-law")])
    func companding(_ format: SampleFormat, _ name: String) throws {
        let codes = (0..<256).map { UInt8($0) }
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("steno-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let (source, result) = (directory.appendingPathComponent("in.raw"), directory.appendingPathComponent("out.raw"))
        try Data(codes).write(to: source)
        let sox = Process()
        sox.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        sox.arguments = [
            "sox", "-D", "-t", "raw", "-r", "8000", "-c", "1", "-e", name, source.path,
            "-t", "raw", "-e", "signed-integer", "-b", "16", "-L", result.path,
        ]
        try sox.run()
        sox.waitUntilExit()
        #expect(sox.terminationStatus == 0)
        let bytes = [UInt8](try Data(contentsOf: result))
        let expected = stride(from: 0, to: bytes.count, by: 2).map {
            Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
        }

        let decoded = try Self.convert(Self.buffer(codes, format), to: .int16)
        #expect(decoded.samples(of: Int16.self) == expected)
        // Back again: the same codes, but that µ-law has two zeros.
        let encoded = try Self.convert(decoded, to: format).content
        #expect(encoded == codes.map { format == .muLaw && $0 == 0x7F ? 0xFF : $0 })
        // Every value goes to a code within half a step: 2^segment * 4 for µ-law, at least 8 for A-law.
        let all = (Int16.min...Int16.max).map { $0 }
        let near = try Self.convert(
            Self.convert(AudioBuffer(interleaved: all, sampleRate: 8000), to: format), to: .int16)
        for (value, coded) in zip(all, near.samples(of: Int16.self)) {
            let magnitude = abs(Int(value))
            let limit = format == .muLaw ? max(4, (magnitude + 132) / 32) : max(8, magnitude / 32)
            #expect(abs(Int(value) - Int(coded)) <= limit || magnitude > 32100)
        }
    }

    /// Law C4.
    @Test func refusalsNameBothFormatsAndChangeNothing() throws {
        let target = AudioFormat(sampleRate: 16000, channelCount: 2, sampleFormat: .int16)
        let good = AudioBuffer(interleaved: TestSignals.noise(frameCount: 4800, seed: 1), sampleRate: 48000)
        let bad = AudioBuffer.silence(
            format: AudioFormat(sampleRate: 44100, channelCount: 3, sampleFormat: .float32), frameCount: 10)
        let converter = AudioConverter(to: target, resampler: SoxrResamplerFactory())
        var output = AudioBuffer(format: target, frameCapacity: 0)
        try converter.convert(good, into: &output)
        var all = output
        let error = #expect(throws: StenoError.self) { try converter.convert(bad, into: &output) }
        #expect(error?.code == .unsupportedConversion)
        #expect(error?.message.contains("44100 Hz, 3 channels, float32") == true)
        #expect(error?.message.contains("16000 Hz, stereo, int16") == true)
        #expect(output.frameCount == 0)
        try converter.convert(good, into: &output)
        all.append(output)
        try converter.finish(into: &output)
        all.append(output)
        let undisturbed = try AudioConverter(to: target, resampler: SoxrResamplerFactory()).convertAll([good, good])
        #expect(all.content == undisturbed.content)
    }

    @Test func aChannelThatIsNotThereIsRefused() {
        let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)
        let input = AudioBuffer.silence(
            format: AudioFormat(sampleRate: 16000, channelCount: 2, sampleFormat: .int16), frameCount: 10)
        for channel in [-1, 2] {
            let converter = AudioConverter(
                to: target, channelPolicy: .channel(channel), resampler: SoxrResamplerFactory())
            let error = #expect(throws: StenoError.self) { try converter.convertAll([input]) }
            #expect(error?.code == .invalidArgument)
        }
    }

    @Test func aFailureOfTheResamplerStays() throws {
        struct Failing: ResamplerFactory {
            final class Resampler: StenoConversion.Resampler {
                func resample(
                    _ input: Span<Float>, into output: inout MutableSpan<Float>
                ) throws(StenoError) -> (consumed: Int, produced: Int) {
                    throw StenoError(.conversionFailed, "forced", nativeCode: 7)
                }
                func drain(into output: inout MutableSpan<Float>) throws(StenoError) -> Int { 0 }
            }
            func makeResampler(
                from inputRate: Int, to outputRate: Int, channelCount: Int
            ) throws(StenoError) -> any StenoConversion.Resampler { Resampler() }
        }
        let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)
        let converter = AudioConverter(to: target, resampler: Failing())
        var output = AudioBuffer(format: target, frameCapacity: 0)
        let input = AudioBuffer(interleaved: [Float](repeating: 0, count: 480), sampleRate: 48000)
        for _ in 0..<2 {
            let error = #expect(throws: StenoError.self) { try converter.convert(input, into: &output) }
            #expect(error?.code == .conversionFailed && error?.nativeCode == 7)
            #expect(error?.message.contains("48000 Hz, mono, float32") == true)
            #expect(error?.message.contains("16000 Hz, mono, int16") == true)
        }
        #expect(throws: StenoError.self) { try converter.finish(into: &output) }
    }
}
