public import StenoAudio

/// Tests a capture back end against what ``CaptureSource`` promises, with a device that delivers audio now.
///
/// Opens the device several times, one after the other, and takes `duration` plus some seconds.
///
/// - Returns: One sentence for each promise that was broken; empty when all hold.
public func checkCaptureSource(
    duration: Duration = .seconds(1), open: @escaping @Sendable () throws(StenoError) -> any CaptureStream
) async -> [String] {
    var problems: [String] = []
    func check(_ holds: Bool, _ problem: @autoclosure () -> String) {
        if !holds { problems.append(problem()) }
    }
    func stop(_ source: CaptureSource, _ state: String) {
        let time = ContinuousClock().measure { source.stop() }
        check(time < .seconds(1), "stop() took \(time) \(state)")
    }

    // A source that was never started.
    stop(CaptureSource(open: open), "before the start")

    // Frames, times and counts.
    do {
        let source = CaptureSource(open: open)
        var format = try await source.start()
        do {
            _ = try await source.start()
            check(false, "a second start() succeeded")
        } catch {
            check(error.code == .invalidArgument, "a second start() threw \(error.code.rawValue)")
        }
        var end = MediaTime.zero
        var frames: Int64 = 0
        var isStopped = false
        let started = ContinuousClock.now
        for try await event in source.events {
            switch event {
            case .frames(let buffer, let start):
                check(buffer.frameCount > 0, "an empty buffer came")
                check(buffer.format == format, "\(buffer.format) came where \(format) was announced")
                check(start == end, "frames at \(start) where the audio before ended at \(end)")
                end = start + buffer.duration
                frames += Int64(buffer.frameCount)
            case .gap(let gap, let frameCount):
                check(gap.range.start == end, "a gap at \(gap.range) where the audio before ended at \(end)")
                check(frameCount > 0, "a gap of \(frameCount) frames came")
                end = gap.range.end
            case .formatChanged(let next, let time):
                check(time == end, "the format changed at \(time) where the audio before ended at \(end)")
                format = next
            case .interrupted(let error, _):
                check(false, "interrupted: \(error)")
            case .notice: break
            }
            let counts = source.statistics
            check(counts.offered == counts.accepted + counts.dropped, "the counts do not balance: \(counts)")
            if !isStopped, ContinuousClock.now - started > duration {
                isStopped = true
                stop(source, "while running")
            }
        }
        check(isStopped, "the source ended by itself")
        check(frames == source.statistics.accepted, "\(frames) frames read of \(source.statistics.accepted) accepted")
        let next = try await source.events.makeAsyncIterator().nextEvent()
        check(next == nil, "an event came after the end")
        stop(source, "after the end")
    } catch {
        check(false, "failed: \(error)")
    }

    // Stopped while nobody reads; released without a stop.
    do {
        let source = CaptureSource(open: open)
        _ = try await source.start()
        stop(source, "right after the start")
        var released: CaptureSource? = CaptureSource(open: open)
        _ = try await released?.start()
        let time = ContinuousClock().measure { released = nil }
        check(time < .seconds(1), "releasing the source took \(time)")
    } catch {
        check(false, "failed when opened again: \(error)")
    }
    return problems
}

extension CaptureSource.Events.AsyncIterator {
    fileprivate consuming func nextEvent() async throws(StenoError) -> CaptureEvent? {
        var iterator = self
        return try await iterator.next()
    }
}
