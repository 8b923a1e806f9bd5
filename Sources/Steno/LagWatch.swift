import StenoAudio

/// Finds the stretches of a recording that are transcribed late: a pure state machine.
///
/// A stretch begins when more audio than the limit waits for the recognizer, and ends when it is less than half of it,
/// so that a recognizer that is just fast enough does not make an event of each buffer.
struct LagWatch {
    /// Nil watches nothing.
    private var limit: MediaTime?
    private var recorded = MediaTime.zero
    private var accepted = MediaTime.zero
    /// Gaps that are kept out of the recording: nobody has to hear them.
    private var gaps: [MediaTimeRange] = []
    private var stretch: (start: MediaTime, longest: MediaTime)?

    init(limit: MediaTime? = nil) { self.limit = limit }

    /// The stretch that goes on, as far as it was transcribed; nil while the recognizer keeps up.
    var behind: TimelineEvent? {
        stretch.map { start, longest in
            TimelineEvent(
                .behind, range: MediaTimeRange(start: start, end: max(start, accepted)),
                detail: "up to \((longest.seconds * 10).rounded() / 10) s behind the recording")
        }
    }

    mutating func record(through time: MediaTime, isGap: Bool = false) {
        guard let limit else { return }
        if isGap { gaps.append(MediaTimeRange(start: recorded, end: time)) }
        recorded = time
        let lag = lag
        if let (start, longest) = stretch {
            stretch = (start, max(longest, lag))
        } else if lag > limit {
            stretch = (accepted, lag)
        }
    }

    /// Returns the stretch that ends here.
    mutating func accept(through time: MediaTime) -> TimelineEvent? {
        guard let limit else { return nil }
        accepted = time
        gaps.removeAll { $0.end <= time }
        return lag + lag < limit ? end() : nil
    }

    /// Watches no longer: what comes now is not transcribed. Returns the stretch that ends with it.
    mutating func stop() -> TimelineEvent? {
        limit = nil
        return end()
    }

    private mutating func end() -> TimelineEvent? {
        defer { stretch = nil }
        return behind
    }

    private var lag: MediaTime { recorded - accepted - gaps.map(\.duration).reduce(.zero, +) }
}
