import StenoConversion
import StenoTesting
import Testing

/// Law T4: the sum over stretches is exact and rounded once.
@Suite struct StreamLengthTests {
    @Test func sumsAreExact() {
        var random = SeededRandom(seed: 1)
        for _ in 0..<2000 {
            var length = StreamLength()
            var (numerator, denominator) = (Int128(0), Int128(1))
            let output = Int.random(in: 8000...192_000, using: &random)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let input = Int.random(in: 8000...192_000, using: &random)
                let frames = Int64.random(in: 0...10_000_000, using: &random)
                numerator = numerator * Int128(input) + Int128(frames) * Int128(output) * denominator
                denominator *= Int128(input)
                let rounded = Int64((2 * numerator + denominator) / (2 * denominator))
                #expect(length.rounded(adding: frames, from: input, to: output) == rounded)
                length.add(frames, from: input, to: output)
                #expect(length.rounded(adding: 0, from: input, to: output) == rounded)
            }
        }
    }

    /// A hundred years at the highest rate.
    @Test func aCenturyFits() {
        let frames = Int64(192_000) * 86400 * 36525
        var length = StreamLength()
        length.add(frames + 1, from: 192_000, to: 44100)
        #expect(length.rounded(adding: 3, from: 192_000, to: 44100) == frames / 192_000 * 44100 + 1)
    }

    /// Rates without common factors, so many that the exact fraction no longer fits.
    @Test func manyOddRatesStayWithinAFrame() {
        let primes = [47981, 47977, 47969, 47963, 47951, 47947, 47939, 47933, 47917, 47911]
        var length = StreamLength()
        var expected = 0.0
        for round in 0..<100 {
            let rate = primes[round % primes.count]
            length.add(Int64(1000 + round), from: rate, to: 16000)
            expected += Double(1000 + round) * 16000 / Double(rate)
        }
        #expect(abs(Double(length.rounded(adding: 0, from: 16000, to: 16000)) - expected) <= 0.501)
    }
}
