import StenoAudio
import Testing

@Suite("Law T1: time is an exact rational")
struct MediaTimeTests {
    @Test func equalityAndOrderIgnoreTheTimescale() {
        let a = MediaTime(value: 1, timescale: 3)
        #expect(a == MediaTime(value: 16000, timescale: 48000))
        #expect(a.hashValue == MediaTime(value: 16000, timescale: 48000).hashValue)
        #expect(a < MediaTime(value: 16001, timescale: 48000))
        #expect(MediaTime(value: -1, timescale: 2) < .zero)
        // One frame apart at the end of a century, where Double seconds are equal.
        let century: Int64 = 48000 * 86400 * 36525
        let late = MediaTime(value: century, timescale: 48000)
        #expect(late < MediaTime(value: century + 1, timescale: 48000))
        #expect(MediaTime(value: .max, timescale: .max) < MediaTime(value: .max, timescale: 1))
    }

    @Test func sumsAreExactAtTheCommonTimescale() {
        let sum = MediaTime(value: 1, timescale: 44100) + MediaTime(value: 1, timescale: 48000)
        #expect(sum == MediaTime(value: 307, timescale: 7_056_000))
        #expect(sum - MediaTime(value: 1, timescale: 48000) == MediaTime(value: 1, timescale: 44100))
    }

    @Test func aSumThatFitsNoCommonTimescaleIsRoundedOnceToTheFiner() {
        let a = MediaTime(value: 1, timescale: 2_147_483_647)
        let b = MediaTime(value: 1, timescale: 2_147_483_629)
        #expect(a + b == MediaTime(value: 2, timescale: 2_147_483_647))
    }

    @Test(arguments: [
        (FloatingPointRoundingRule.toNearestOrAwayFromZero, [-2, -1, 0, 1, 2]),
        (.toNearestOrEven, [-2, 0, 0, 0, 2]),
        (.up, [-1, 0, 0, 1, 2]),
        (.down, [-2, -1, 0, 0, 1]),
        (.towardZero, [-1, 0, 0, 0, 1]),
        (.awayFromZero, [-2, -1, 0, 1, 2]),
    ])
    func convertingRoundsOnceByTheRule(rule: FloatingPointRoundingRule, expected: [Int64]) {
        let halves: [Int64] = [-3, -1, 0, 1, 3]
        #expect(halves.map { MediaTime(value: $0, timescale: 2).converted(to: 1, rounding: rule).value } == expected)
    }

    /// Case 013: time from the count of frames, by one division, never by adding up rounded durations.
    @Test func aHundredThousandBlocksOfOddLengthDoNotDrift() {
        var time = MediaTime.zero
        for _ in 0..<100_000 { time += MediaTime(frames: 1102, sampleRate: 44100) }
        #expect(time == MediaTime(value: 110_200_000, timescale: 44100))
    }

    @Test func rangesAreHalfOpen() {
        func range(_ a: Int64, _ b: Int64) -> MediaTimeRange {
            MediaTimeRange(start: MediaTime(value: a, timescale: 10), end: MediaTime(value: b, timescale: 10))
        }
        #expect(!range(0, 5).overlaps(range(5, 9)))
        #expect(range(0, 5).overlaps(range(4, 9)))
        #expect(!range(3, 3).overlaps(range(0, 9)))
        #expect(!range(0, 5).contains(MediaTime(value: 5, timescale: 10)))
        #expect(range(0, 30).clamped(to: range(0, 20)) == range(0, 20))
        #expect(range(25, 30).clamped(to: range(0, 20)) == range(20, 20))
    }
}
