/// An exact point in time, or an exact duration: `value / timescale` seconds (law T1).
///
/// The natural timescale is a sample rate, and then `value` is a count of frames. Comparing, adding and converting
/// never go through floating point; two times are equal when they are the same rational number, whatever their
/// timescales.
///
/// An `Int64` count at the largest timescale spans 136 years. As with `Int`, a result outside that range traps.
public struct MediaTime: Sendable {
    /// The count of `1 / timescale` seconds.
    public var value: Int64
    /// Units for each second; above zero.
    public let timescale: Int32

    /// - Precondition: `timescale > 0`.
    public init(value: Int64, timescale: Int32) {
        precondition(timescale > 0, "a timescale is above zero, not \(timescale)")
        self.value = value
        self.timescale = timescale
    }

    /// The time of a frame: `frames / sampleRate` seconds.
    ///
    /// - Precondition: `sampleRate` is in `1...Int32.max`.
    public init(frames: Int64, sampleRate: Int) {
        self.init(value: frames, timescale: Int32(sampleRate))
    }

    public static let zero = MediaTime(value: 0, timescale: 1)

    /// Seconds, for display only.
    public var seconds: Double { Double(value) / Double(timescale) }

    /// The same time counted in another unit, rounded once by `rule` where it does not fit exactly.
    public func converted(
        to timescale: Int32, rounding rule: FloatingPointRoundingRule = .toNearestOrAwayFromZero
    ) -> MediaTime {
        MediaTime(value: count(at: timescale, rounding: rule), timescale: timescale)
    }

    /// The position as a number of frames at `sampleRate`, rounded once by `rule`.
    public func frames(
        at sampleRate: Int, rounding rule: FloatingPointRoundingRule = .toNearestOrAwayFromZero
    ) -> Int64 {
        count(at: Int32(sampleRate), rounding: rule)
    }

    private func count(at target: Int32, rounding rule: FloatingPointRoundingRule) -> Int64 {
        if target == timescale { return value }
        return Int64(divide(Int128(value) * Int128(target), by: Int128(timescale), rounding: rule))
    }
}

/// `dividend / divisor` for a positive divisor, rounded by `rule` in integers.
package func divide(_ dividend: Int128, by divisor: Int128, rounding rule: FloatingPointRoundingRule) -> Int128 {
    let (quotient, remainder) = dividend.quotientAndRemainder(dividingBy: divisor)
    if remainder == 0 { return quotient }
    let away: Int128 = dividend < 0 ? -1 : 1
    switch rule {
    case .towardZero: return quotient
    case .awayFromZero: return quotient + away
    case .down: return dividend < 0 ? quotient - 1 : quotient
    case .up: return dividend < 0 ? quotient : quotient + 1
    case .toNearestOrAwayFromZero: return remainder.magnitude * 2 >= divisor.magnitude ? quotient + away : quotient
    case .toNearestOrEven:
        let twice = remainder.magnitude * 2
        if twice == divisor.magnitude { return quotient.isMultiple(of: 2) ? quotient : quotient + away }
        return twice > divisor.magnitude ? quotient + away : quotient
    @unknown default: return quotient
    }
}

package func greatestCommonDivisor<I: BinaryInteger>(_ a: I, _ b: I) -> I {
    var (a, b) = (a, b)
    while b != 0 { (a, b) = (b, a % b) }
    return a < 0 ? 0 - a : a
}

extension MediaTime: Comparable, Hashable {
    public static func == (a: MediaTime, b: MediaTime) -> Bool {
        Int128(a.value) * Int128(b.timescale) == Int128(b.value) * Int128(a.timescale)
    }

    public static func < (a: MediaTime, b: MediaTime) -> Bool {
        Int128(a.value) * Int128(b.timescale) < Int128(b.value) * Int128(a.timescale)
    }

    public func hash(into hasher: inout Hasher) {
        let divisor = greatestCommonDivisor(value, Int64(timescale))
        hasher.combine(value / divisor)
        hasher.combine(Int64(timescale) / divisor)
    }
}

extension MediaTime {
    /// The exact sum at the least common timescale. Where that timescale or its count does not fit, the sum is
    /// rounded once to the finer of the two timescales; no pair of audio rates up to 192 kHz comes near.
    public static func + (a: MediaTime, b: MediaTime) -> MediaTime { sum(a, b, sign: 1) }

    /// The exact difference, by the rule of ``+(_:_:)``.
    public static func - (a: MediaTime, b: MediaTime) -> MediaTime { sum(a, b, sign: -1) }

    public static func += (a: inout MediaTime, b: MediaTime) { a = a + b }
    public static func -= (a: inout MediaTime, b: MediaTime) { a = a - b }

    private static func sum(_ a: MediaTime, _ b: MediaTime, sign: Int128) -> MediaTime {
        if a.timescale == b.timescale {
            return MediaTime(value: Int64(Int128(a.value) + sign * Int128(b.value)), timescale: a.timescale)
        }
        let divisor = Int128(greatestCommonDivisor(a.timescale, b.timescale))
        let common = Int128(a.timescale) / divisor * Int128(b.timescale)
        let total =
            Int128(a.value) * (common / Int128(a.timescale)) + sign * Int128(b.value) * (common / Int128(b.timescale))
        if let timescale = Int32(exactly: common), let value = Int64(exactly: total) {
            return MediaTime(value: value, timescale: timescale)
        }
        let finer = max(a.timescale, b.timescale)
        let value = divide(total * Int128(finer), by: common, rounding: .toNearestOrAwayFromZero)
        return MediaTime(value: Int64(value), timescale: finer)
    }
}

extension MediaTime: CustomStringConvertible {
    public var description: String { "\(value)/\(timescale)" }
}

/// A half-open stretch of time, `[start, end)`. Ranges that touch share nothing.
public struct MediaTimeRange: Sendable, Hashable {
    public let start: MediaTime
    /// The first time after the range.
    public let end: MediaTime

    /// - Precondition: `start <= end`.
    public init(start: MediaTime, end: MediaTime) {
        precondition(start <= end, "a range does not end before its start: \(start) to \(end)")
        self.start = start
        self.end = end
    }

    /// - Precondition: `duration` is not negative.
    public init(start: MediaTime, duration: MediaTime) {
        self.init(start: start, end: start + duration)
    }

    public var duration: MediaTime { end - start }
    public var isEmpty: Bool { start == end }

    public func contains(_ time: MediaTime) -> Bool { start <= time && time < end }

    public func contains(_ other: MediaTimeRange) -> Bool { start <= other.start && other.end <= end }

    /// Whether the two share any time. An empty range overlaps nothing.
    public func overlaps(_ other: MediaTimeRange) -> Bool {
        max(start, other.start) < min(end, other.end)
    }

    /// The part inside `bounds`; empty at the nearer edge where there is none.
    public func clamped(to bounds: MediaTimeRange) -> MediaTimeRange {
        let start = min(max(start, bounds.start), bounds.end)
        return MediaTimeRange(start: start, end: max(start, min(end, bounds.end)))
    }
}

extension MediaTimeRange: CustomStringConvertible {
    public var description: String { "\(start)..<\(end)" }
}
