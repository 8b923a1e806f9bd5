import Glibc
package import Steno

/// Plays a file as if it were a device: no frame comes before its time by the monotonic clock.
package final class ReplayStream: CaptureStream {
    package let format: AudioFormat
    private let file: any CaptureStream
    private var framesRead: Int64 = 0
    private let framesPerSecond: Double
    private let start = ContinuousClock.now

    /// - Parameter speed: 1 is real time.
    package init(_ file: sending any CaptureStream, speed: Double = 1) {
        format = file.format
        framesPerSecond = Double(file.format.sampleRate) * speed
        self.file = file
    }

    package func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead {
        // In whole seconds and a rest, a Double keeps microseconds over years.
        let due = start + .seconds(Double(framesRead + Int64(buffer.frameCapacity)) / framesPerSecond)
        let wait = due - ContinuousClock.now
        if wait > .zero { usleep(UInt32(min(wait, .milliseconds(100)) / .microseconds(1)) + 1) }
        guard ContinuousClock.now >= due else { return .nothing }
        let read = try file.read(into: &buffer)
        switch read {
        case .frames: framesRead += Int64(buffer.frameCount)
        case .gap(let count, _): framesRead += count
        default: break
        }
        return read
    }

    package var duration: MediaTime? { file.duration }
    package var events: [TimelineEvent] { file.events }
}
