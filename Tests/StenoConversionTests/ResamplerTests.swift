import StenoAudio
import StenoConversion
import StenoSampleRate
import StenoSoxr
import StenoTesting
import Testing

@Suite struct ResamplerTests {
    static let rates = [
        (48000, 16000), (44100, 16000), (8000, 16000), (22050, 16000), (192_000, 16000), (16000, 44100),
    ]

    @Test(arguments: rates) func soxrKeepsTheLaws(_ from: Int, _ to: Int) throws {
        let violations = try checkResampler(
            SoxrResamplerFactory(), from: from, to: to, channelCount: 2, countAllocations: allocationCounter)
        #expect(violations.isEmpty, "\(violations)")
    }

    @Test(arguments: SampleRateResamplerFactory.Quality.allCases)
    func samplerateKeepsTheLaws(_ quality: SampleRateResamplerFactory.Quality) throws {
        // The figures that libsamplerate's own documentation gives.
        var limits = ResamplerLimits()
        switch quality {
        case .fast: (limits.passBand, limits.stopBand, limits.rejection) = (0.7, 1.3, 90)
        case .medium: (limits.passBand, limits.stopBand) = (0.85, 1.15)
        case .best: break
        }
        for (from, to) in Self.rates.prefix(3) {
            let violations = try checkResampler(
                SampleRateResamplerFactory(quality: quality), from: from, to: to, channelCount: 2, limits: limits,
                countAllocations: allocationCounter)
            #expect(violations.isEmpty, "\(from) to \(to) Hz: \(violations)")
        }
    }

    @Test func theCheckFindsEachBrokenLaw() throws {
        let laws = Set(try checkResampler(CarelessFactory(), from: 48000, to: 16000).map(\.law))
        #expect(laws == ["chunking", "length", "impulse", "passBand", "stopBand", "constant"])
    }

    @Test func ratiosBeyondTheLibraryAreRefused() {
        let error = #expect(throws: StenoError.self) {
            try SampleRateResamplerFactory().makeResampler(from: 8000, to: 8000 * 300, channelCount: 1)
        }
        #expect(error?.code == .unsupportedConversion)
        #expect(error?.message.contains("2400000 Hz") == true)
    }
}

/// Takes every third frame of each call but the first, adds a little, keeps nothing between calls and never drains.
private struct CarelessFactory: ResamplerFactory {
    final class Careless: Resampler {
        func resample(
            _ input: Span<Float>, into output: inout MutableSpan<Float>
        ) throws(StenoError) -> (consumed: Int, produced: Int) {
            let count = min(input.count / 3, output.count + 1)
            for i in 1..<max(1, count) { output[i - 1] = input[3 * i] + 0.001 }
            return (input.count, max(0, count - 1))
        }

        func drain(into output: inout MutableSpan<Float>) throws(StenoError) -> Int { 0 }
    }

    func makeResampler(from inputRate: Int, to outputRate: Int, channelCount: Int) throws(StenoError) -> any Resampler {
        Careless()
    }
}
