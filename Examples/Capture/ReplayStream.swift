import Glibc
package import Steno

/// Plays a file as if it were a device: no frame comes before its time by the monotonic clock.
package final class ReplayStream: CaptureStream {
    package let format: AudioFormat
    private let file: AudioFileSource
    private let framesPerSecond: Double
    private let start = ContinuousClock.now

    /// - Parameter speed: 1 is real time.
    package init(_ file: sending AudioFileSource, speed: Double = 1) {
        format = file.format
        framesPerSecond = Double(file.format.sampleRate) * speed
        self.file = file
    }

    package func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead {
        // In whole seconds and a rest, a Double keeps microseconds over years.
        let due = start + .seconds(Double(file.framesRead + Int64(buffer.frameCapacity)) / framesPerSecond)
        let wait = due - ContinuousClock.now
        if wait > .zero { usleep(UInt32(min(wait, .milliseconds(100)) / .microseconds(1)) + 1) }
        return ContinuousClock.now < due ? .nothing : try file.read(into: &buffer)
    }

    package var duration: MediaTime? { file.duration }
    package var events: [TimelineEvent] { file.warnings }
}
