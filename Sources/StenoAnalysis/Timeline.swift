import StenoAudio

/// What to do with audio whose start time lies before the end of the audio that came earlier (law A6).
public enum OverlapPolicy: Sendable, Hashable {
    /// Refuse the audio with an error.
    case reject
    /// Cut the overlapping frames off the front of the later audio.
    case trim
    /// Place the later audio behind the earlier, whatever its time says.
    case ignoreStamp
}

/// The analyzer's one timeline: a running count of frames at one rate, from which every start time comes (law T2).
struct Timeline {
    struct Placement {
        /// The frame at which the audio starts.
        var start: Int64
        /// Frames to cut off its front.
        var skippedFrames = 0
        var event: TimelineEvent?
    }

    let sampleRate: Int
    /// The frame after the last one placed.
    private(set) var end: Int64 = 0

    /// Places `frameCount` frames; `stamp` nil means right after what came before.
    ///
    /// A stamp in another timescale than the sample rate cannot always name a frame, so one that is off by less than a
    /// frame means contiguous.
    mutating func place(
        at stamp: MediaTime?, frameCount: Int, policy: OverlapPolicy
    ) throws(StenoError) -> Placement {
        var placement = Placement(start: end)
        defer { end = placement.start + Int64(frameCount - placement.skippedFrames) }
        guard let stamp else { return placement }
        // The whole frames between the stamp and the end, rounded towards contiguous.
        let offset = (stamp - MediaTime(frames: end, sampleRate: sampleRate))
            .frames(at: sampleRate, rounding: .towardZero)
        if offset > 0 {
            placement.start = end + offset
            placement.event = TimelineEvent(.gap, range: range(end, offset))
        } else if offset < 0 {
            switch policy {
            case .reject:
                let expected = MediaTime(frames: end, sampleRate: sampleRate)
                placement.skippedFrames = frameCount
                throw StenoError(
                    .audioDisordered,
                    "audio starts at \(stamp) (\(stamp.seconds) s) but the audio before it ends at \(expected) "
                        + "(\(expected.seconds) s)")
            case .trim:
                placement.skippedFrames = Int(min(Int64(frameCount), -offset))
                placement.event = TimelineEvent(
                    .overlapTrimmed, range: range(end + offset, Int64(placement.skippedFrames)))
            case .ignoreStamp:
                placement.event = TimelineEvent(.overlapIgnored, range: range(end + offset, -offset))
            }
        }
        return placement
    }

    private func range(_ start: Int64, _ count: Int64) -> MediaTimeRange {
        MediaTimeRange(
            start: MediaTime(frames: start, sampleRate: sampleRate),
            duration: MediaTime(frames: count, sampleRate: sampleRate))
    }
}
