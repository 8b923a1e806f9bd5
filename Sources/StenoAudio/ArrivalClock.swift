/// Tells by the monotonic clock how much audio is missing while a source cannot tell it itself: idle, or lost.
///
/// While audio flows it says nothing, since a clock that wanders by some parts in a million must not cut the audio.
struct ArrivalClock {
    /// Why the flow is interrupted; nil while it is not.
    private(set) var cause: TimelineEvent.Kind?
    /// When the newest frames came, in nanoseconds; up to here the timeline is complete.
    private var arrival: Int64
    /// Missing frames that were reported since, by the clock or by the source.
    private var reported: Int64 = 0

    init(openedAt now: Int64) { arrival = now }

    mutating func interrupt(_ kind: TimelineEvent.Kind) { cause = kind }

    /// Counts a gap that the source reported itself.
    mutating func noteGap(_ frameCount: Int64) { reported += frameCount }

    /// Takes note of frames and returns how many are missing before them: none while the flow is not interrupted.
    mutating func arrived(_ frameCount: Int, at now: Int64, sampleRate: Int) -> Int64 {
        defer { (cause, arrival, reported) = (nil, now, 0) }
        guard cause != nil else { return 0 }
        return max(0, frames(until: now, sampleRate: sampleRate) - Int64(frameCount) - reported)
    }

    /// How far the reports stay behind, in nanoseconds.
    static let margin: Int64 = 500_000_000

    /// Missing frames to report while nothing comes, in portions of a quarter of a second. Stays behind, because the frames that end the silence were captured before they arrive.
    mutating func missing(at now: Int64, sampleRate: Int) -> Int64 {
        guard cause != nil else { return 0 }
        let count = frames(until: now - Self.margin, sampleRate: sampleRate) - reported
        guard count >= sampleRate / 4 else { return 0 }
        reported += count
        return count
    }

    private func frames(until now: Int64, sampleRate: Int) -> Int64 {
        Int64(divide(Int128(now - arrival) * Int128(sampleRate), by: 1_000_000_000, rounding: .toNearestOrAwayFromZero))
    }
}
