import StenoAudio

/// The length of a stream in output frames as an exact rational: the sum over the stretches of
/// `frames * output rate / input rate`, rounded once and only where a whole number is needed (law T4).
///
/// The fraction's denominator is a common multiple of the input rates met so far. Above 2^62, which takes three or more
/// changes between rates up to 2^31 Hz without common factors, the fraction is rounded to a multiple of 2^-62 frame.
package struct StreamLength {
    private var whole: Int64 = 0
    private var numerator: Int128 = 0
    private var denominator: Int128 = 1

    /// The rounded length with `frames` more frames of a stretch.
    package func rounded(adding frames: Int64, from inputRate: Int, to outputRate: Int) -> Int64 {
        if inputRate == outputRate && numerator == 0 { return whole + frames }
        if numerator == 0 {
            let (product, overflow) = frames.multipliedReportingOverflow(by: Int64(outputRate))
            if !overflow {
                let (quotient, remainder) = product.quotientAndRemainder(dividingBy: Int64(inputRate))
                return whole + quotient + (2 * remainder >= inputRate ? 1 : 0)
            }
        }
        var sum = self
        sum.add(frames, from: inputRate, to: outputRate)
        return sum.whole + (2 * sum.numerator >= sum.denominator ? 1 : 0)
    }

    package init() {}

    package mutating func add(_ frames: Int64, from inputRate: Int, to outputRate: Int) {
        let rate = Int128(inputRate)
        let (quotient, remainder) = (Int128(frames) * Int128(outputRate)).quotientAndRemainder(dividingBy: rate)
        let sum = numerator * rate + remainder * denominator
        let common = denominator * rate
        let carry = sum / common
        whole += Int64(quotient + carry)
        numerator = sum - carry * common
        let divisor = greatestCommonDivisor(numerator, common)
        numerator /= divisor
        denominator = common / divisor
        let limit: Int128 = 1 << 62
        if denominator > limit {
            // The fraction has at most 93 bits on either side: 31 bits of the scale fit twice.
            let high = (numerator << 31) / denominator
            let low = (((numerator << 31) % denominator) << 31) / denominator
            numerator = (high << 31) + low
            denominator = limit
        }
    }
}
