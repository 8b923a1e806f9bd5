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
    /// When the flow began again, and how many frames came since.
    private var resumed: Int64 = .min
    private var flowed: Int64 = 0
    /// Frames that were reported as missing and came late, in a burst. They are taken off the next report, so that the
    /// timeline stays by the clock.
    private var late: Int64 = 0

    init(openedAt now: Int64) { arrival = now }

    mutating func interrupt(_ kind: TimelineEvent.Kind) {
        if cause == nil { (reported, late) = (reported + late, 0) }
        cause = kind
    }

    /// Counts a gap that the source reported itself.
    mutating func noteGap(_ frameCount: Int64) { reported += frameCount }

    /// Takes note of frames and returns how many are missing before them: none while the flow is not interrupted.
    mutating func arrived(_ frameCount: Int, at now: Int64, sampleRate: Int) -> Int64 {
        defer { (cause, arrival, reported) = (nil, now, 0) }
        guard cause != nil else {
            flowed += Int64(frameCount)
            let ahead = flowed - frames(from: resumed, until: now, sampleRate: sampleRate)
            // Less than 0.1 s is a matter of buffers.
            if resumed != .min, now - resumed < 5_000_000_000, ahead > sampleRate / 10 { late = max(late, ahead) }
            return 0
        }
        (resumed, flowed) = (now, 0)
        return max(0, frames(from: arrival, until: now, sampleRate: sampleRate) - Int64(frameCount) - reported)
    }

    /// How far the reports stay behind, in nanoseconds.
    static let margin: Int64 = 500_000_000

    /// Missing frames to report while nothing comes, in portions of a quarter of a second. Stays behind, because the frames that end the silence were captured before they arrive.
    mutating func missing(at now: Int64, sampleRate: Int) -> Int64 {
        guard cause != nil else { return 0 }
        let count = frames(from: arrival, until: now - Self.margin, sampleRate: sampleRate) - reported
        guard count >= sampleRate / 4 else { return 0 }
        reported += count
        return count
    }

    private func frames(from start: Int64, until now: Int64, sampleRate: Int) -> Int64 {
        Int64(divide(Int128(now - start) * Int128(sampleRate), by: 1_000_000_000, rounding: .toNearestOrAwayFromZero))
    }
}
