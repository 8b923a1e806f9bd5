public import StenoAudio
import StenoConversion

/// What becomes of audio that is missing from the source (law T6).
public enum GapPolicy: Sendable, Hashable {
    /// Silence takes its place, so that file time and transcript time stay equal.
    case fill
    /// Nothing takes its place; the next buffer starts later.
    case keep
}

/// Gives converted audio its start times, and keeps the ledger of where every source frame went.
///
/// Start times come only from a running count of frames at the analyzer's rate (law T2). The source's own times, where
/// it has any, only show where audio is missing or doubled. What counts is the step from one buffer to the next, so that
/// a source clock that runs fast or slow against its own samples is measured and never taken for a gap.
///
/// Pure arithmetic on integers, without audio or allocation. Its 64-bit counts hold for a million years at 192 kHz.
public struct AnalyzerInputRetimer: Sendable {
    /// What is to be done about a buffer of the source before it is converted.
    public struct Placement: Sendable, Hashable {
        /// Frames at the source's rate that are missing before the buffer.
        public var missingFrames: Int64 = 0
        /// Frames to cut off the front of the buffer, because they were there already.
        public var overlappingFrames = 0
        /// Whether the buffer overlaps and is placed behind what came before all the same.
        public var ignoredStamp = false
    }

    /// Where the frames of the source went. Each is counted at the source's rate of its time.
    public struct Ledger: Sendable, Hashable {
        /// Frames that came, without those that were trimmed.
        public fileprivate(set) var admittedFrames: Int64 = 0
        /// Frames that were cut off because they were there already.
        public fileprivate(set) var trimmedFrames: Int64 = 0
        /// Frames that were missing, announced or found.
        public fileprivate(set) var missingFrames: Int64 = 0
        /// Stamps that were off by less than the tolerance.
        public fileprivate(set) var jitteredStamps: Int64 = 0
        /// Stamps that lay in earlier audio and were ignored.
        public fileprivate(set) var ignoredStamps: Int64 = 0
    }

    /// The analyzer's rate.
    public let sampleRate: Int
    public let overlapPolicy: OverlapPolicy
    /// A step of the source's clock that is off by less is jitter, which is counted and otherwise ignored.
    public let tolerance: MediaTime

    public private(set) var ledger = Ledger()
    /// The start of the next output buffer, in frames at ``sampleRate``.
    public private(set) var nextFrame: Int64 = 0
    /// How far the source's clock has run ahead of its own frames (law T5); negative when it fell behind.
    public private(set) var clockDrift = MediaTime.zero

    /// The source's timeline, gaps included: all stretches at earlier rates, then the current one.
    private var settled = StreamLength()
    private var stretchFrames: Int64 = 0
    private var stretchRate: Int
    /// Where the source's clock should stand when the next buffer comes.
    private var expectedStamp = MediaTime.zero

    public init(
        sampleRate: Int, overlapPolicy: OverlapPolicy = .trim,
        tolerance: MediaTime = MediaTime(value: 50, timescale: 1000)
    ) {
        self.sampleRate = sampleRate
        self.stretchRate = sampleRate
        self.overlapPolicy = overlapPolicy
        self.tolerance = tolerance
    }

    /// The length of the source so far, gaps included, in frames at ``sampleRate``, rounded once (law T4).
    public var sourceFrames: Int64 {
        settled.rounded(adding: stretchFrames, from: stretchRate, to: sampleRate)
    }

    /// Decides about a buffer of the source by its stamp. What the decision asks for comes next: ``skip(_:sampleRate:isAnnounced:)``
    /// for missing frames, then ``advance(_:sampleRate:)`` for those that are converted.
    ///
    /// - Parameter stamp: the time of the first frame by the source's clock, which stands at zero when the source starts;
    ///   nil where it has none to be trusted: then the buffer follows the one before.
    /// - Throws: `audioDisordered` where the buffer overlaps and the policy is to reject it.
    public mutating func place(
        frameCount: Int, sampleRate sourceRate: Int, at stamp: MediaTime?
    ) throws(StenoError) -> Placement {
        var placement = Placement()
        let start = stamp ?? expectedStamp
        let step = start - expectedStamp
        if step.value == 0 {
            // Nearly every stamp, and spared the arithmetic of the comparisons below.
        } else if step >= tolerance {
            placement.missingFrames = step.frames(at: sourceRate)
        } else if step <= .zero - tolerance {
            switch overlapPolicy {
            case .reject:
                throw StenoError(
                    .audioDisordered,
                    "audio at \(start.seconds) s of the source where \(expectedStamp.seconds) s comes next")
            case .trim:
                placement.overlappingFrames = Int(min(Int64(frameCount), -step.frames(at: sourceRate)))
            case .ignoreStamp:
                placement.ignoredStamp = true
                ledger.ignoredStamps += 1
            }
        } else {
            ledger.jitteredStamps += 1
            clockDrift += step
        }
        let end = start + MediaTime(frames: Int64(frameCount), sampleRate: sourceRate)
        // A buffer that was there already as a whole does not turn the clock back.
        expectedStamp = placement.overlappingFrames > 0 ? max(expectedStamp, end) : end
        ledger.trimmedFrames += Int64(placement.overlappingFrames)
        return placement
    }

    /// Counts frames of the source that go to the converter.
    public mutating func advance(_ frameCount: Int, sampleRate sourceRate: Int) {
        ledger.admittedFrames += Int64(frameCount)
        count(Int64(frameCount), at: sourceRate)
    }

    /// Counts frames that are missing from the source before the next buffer.
    ///
    /// - Parameter isAnnounced: whether the source said so itself, rather than its stamps; its clock then goes on by as
    ///   much.
    public mutating func skip(_ frameCount: Int64, sampleRate sourceRate: Int, isAnnounced: Bool) {
        ledger.missingFrames += frameCount
        count(frameCount, at: sourceRate)
        if isAnnounced { expectedStamp += MediaTime(frames: frameCount, sampleRate: sourceRate) }
    }

    /// Moves the output past a gap that nothing fills, to where the source is now. What came before must be out.
    public mutating func jump() { nextFrame = max(nextFrame, sourceFrames) }

    /// The start time of the next output buffer, which holds `frameCount` frames.
    public mutating func stamp(frameCount: Int) -> MediaTime {
        defer { nextFrame += Int64(frameCount) }
        return MediaTime(frames: nextFrame, sampleRate: sampleRate)
    }

    private mutating func count(_ frames: Int64, at sourceRate: Int) {
        if sourceRate != stretchRate {
            settled.add(stretchFrames, from: stretchRate, to: sampleRate)
            stretchFrames = 0
            stretchRate = sourceRate
        }
        stretchFrames += frames
    }
}
