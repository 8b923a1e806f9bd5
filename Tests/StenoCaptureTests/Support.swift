import StenoAudio
import StenoTesting

let mono16 = AudioFormat(sampleRate: 48_000, channelCount: 1, sampleFormat: .int16)

/// Everything that a source delivered, checked for order on the way.
struct Captured {
    var frames: Int64 = 0
    var gaps: [(kind: TimelineEvent.Kind, start: MediaTime, frameCount: Int64)] = []
    var formats: [AudioFormat] = []
    var notices: [TimelineEvent] = []
    var interruptions: [StenoError.Code] = []
    var error: StenoError?
    /// The end of the timeline.
    var end = MediaTime.zero
    /// Places where the timeline was broken, or a counting frame was in the wrong place.
    var misplaced: [String] = []

    func gapFrames(_ kind: TimelineEvent.Kind) -> Int64 {
        gaps.filter { $0.kind == kind }.reduce(0) { $0 + $1.frameCount }
    }

    /// - Parameter counting: Whether each mono `int16` sample is its place on the timeline.
    mutating func take(_ event: CaptureEvent, counting: Bool) {
        switch event {
        case .frames(let buffer, let start):
            if start != end { misplaced.append("frames at \(start), expected at \(end)") }
            if counting, buffer.format.channelCount == 1, buffer.format.sampleFormat == .int16 {
                let first = start.frames(at: buffer.format.sampleRate)
                buffer.withSamples(of: Int16.self) { samples in
                    for index in samples.indices where samples[index] != Int16(truncatingIfNeeded: first + Int64(index))
                    {
                        misplaced.append("sample \(samples[index]) at \(first + Int64(index))")
                        break
                    }
                }
            }
            frames += Int64(buffer.frameCount)
            end = start + buffer.duration
        case .gap(let gap, let frameCount):
            if gap.range.start != end { misplaced.append("gap at \(gap.range.start), expected at \(end)") }
            gaps.append((gap.kind, gap.range.start, frameCount))
            end = gap.range.end
        case .formatChanged(let format, let time):
            if time != end { misplaced.append("format at \(time), expected at \(end)") }
            formats.append(format)
        case .interrupted(let error, _): interruptions.append(error.code)
        case .notice(let notice): notices.append(notice)
        }
    }
}

/// Reads a source to its end.
func capture(
    _ source: CaptureSource, counting: Bool = true, each: (CaptureEvent) async -> Void = { _ in }
) async -> Captured {
    var captured = Captured()
    do {
        for try await event in source.events {
            captured.take(event, counting: counting)
            await each(event)
        }
    } catch {
        captured.error = error
    }
    return captured
}

/// A configuration on a manual clock that waits for its consumer and reconnects at once.
func simulated(_ clock: ManualClock) -> CaptureSource.Configuration {
    var configuration = CaptureSource.Configuration()
    configuration.now = { clock.now }
    configuration.dropsWhenFull = false
    configuration.reconnection?.firstDelay = .milliseconds(1)
    return configuration
}
