import StenoAudio
import StenoConversion
import StenoSoxr
import Testing

@Suite struct LengthTests {
    /// Law T3 and T4 over random formats, changes of format in mid-stream and random cuts.
    @Test func randomStreamsHaveExactLengthHoweverTheyAreCut() throws {
        var random = SeededRandom(seed: 1)
        let rates = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 96000, 192_000]
        for index in 0..<400 {
            let target = AudioFormat(
                sampleRate: [8000, 16000, 24000, 44100, 48000].randomElement(using: &random)!, channelCount: 1,
                sampleFormat: [.int16, .float32].randomElement(using: &random)!)
            var stretches: [AudioBuffer] = []
            // Out frames as a rational over the product of the input rates.
            var (numerator, denominator) = (Int128(0), Int128(1))
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let rate =
                    Bool.random(using: &random)
                    ? rates.randomElement(using: &random)! : Int.random(in: 8000...192_000, using: &random)
                let format = AudioFormat(
                    sampleRate: rate, channelCount: Int.random(in: 1...8, using: &random),
                    sampleFormat: SampleFormat.allCases.randomElement(using: &random)!,
                    isInterleaved: Bool.random(using: &random))
                if format == stretches.last?.format { continue }
                let frames = Int.random(in: 0...3000, using: &random)
                if frames == 0 { continue }
                stretches.append(.noise(format, frames: frames, using: &random))
                numerator = numerator * Int128(rate) + Int128(frames * target.sampleRate) * denominator
                denominator *= Int128(rate)
            }
            let expected = Int((2 * numerator + denominator) / (2 * denominator))
            let whole = try AudioConverter(to: target, resampler: SoxrResamplerFactory()).convertAll(stretches)
            let pieces = stretches.flatMap { buffer in
                buffer.cut(longest: [1, 7, 480, 4096].randomElement(using: &random)!, using: &random)
            }
            let cut = try AudioConverter(to: target, resampler: SoxrResamplerFactory()).convertAll(pieces)
            #expect(whole.frameCount == expected, "case \(index): \(stretches.map(\.format)) to \(target)")
            #expect(cut.content == whole.content, "case \(index): \(stretches.map(\.format)) to \(target)")
        }
    }
}
