import Glibc
public import StenoAudio
import Synchronization

/// A capture device that does what a script says: one script for each time that it is opened.
///
/// Its audio counts: each sample of a frame is the frame's number on the device's timeline plus the channel, cut to the
/// sample format (integers) or divided by 2^20 after wrapping there (`float32`). Reported gaps count as well, so a
/// frame that comes at the wrong place shows.
public final class ScriptedCaptureDevice: Sendable {
    public enum Step: Sendable {
        /// So many frames, in reads of what the buffer takes.
        case frames(Int)
        /// So many frames at once, without time going on: they were captured while nothing came.
        case late(Int)
        /// So many frames of digital zeros.
        case zeros(Int)
        case gap(Int64, TimelineEvent.Kind)
        case notice(TimelineEvent.Kind, String)
        /// One read that brings nothing.
        case nothing
        /// One read that brings nothing, after the manual clock moved on.
        case pass(Duration)
        /// From now on this is what it means when nothing comes.
        case silence(CaptureSilence)
        case format(AudioFormat)
        /// A read that does not come back before ``ScriptedCaptureDevice/release()``.
        case block
        case fail(StenoError)
    }

    /// How the device's time goes on while it delivers frames.
    public enum Pace: Sendable {
        /// As fast as it is read.
        case unpaced
        /// In real time.
        case realTime
        /// So many times as fast as real time.
        case times(Double)
        /// Moves a manual clock: by a second for so many frames.
        case manual(ManualClock, framesPerSecond: Int)
    }

    fileprivate let format: AudioFormat
    fileprivate let pace: Pace
    private let scripts: [[Step]]
    private let opened = Atomic<Int>(0)
    fileprivate let released = Atomic<Bool>(false)
    fileprivate let alive = Atomic<Int>(0)
    /// The timeline goes on from one stream to the next.
    fileprivate let position = Atomic<Int64>(0)

    /// - Parameter scripts: What happens after each opening; after the last script, openings fail with
    ///   `capture.noSuchDevice`. The end of a script is the end of the source.
    public init(format: AudioFormat, pace: Pace = .unpaced, _ scripts: [Step]...) {
        self.format = format
        self.pace = pace
        self.scripts = scripts
    }

    /// Tries to open so far.
    public var openCount: Int { opened.load(ordering: .acquiring) }
    /// Streams that are open now.
    public var liveStreamCount: Int { alive.load(ordering: .acquiring) }

    /// Lets a blocked read come back.
    public func release() { released.store(true, ordering: .releasing) }

    public func open() throws(StenoError) -> any CaptureStream {
        let index = opened.add(1, ordering: .acquiringAndReleasing).oldValue
        guard index < scripts.count else { throw StenoError(.noSuchDevice, "The script has no device any more.") }
        return ScriptedCaptureStream(self, scripts[index])
    }
}

/// One opening of a ``ScriptedCaptureDevice``.
final class ScriptedCaptureStream: CaptureStream {
    private(set) var format: AudioFormat
    private(set) var silence = CaptureSilence.fault
    private let device: ScriptedCaptureDevice
    private let steps: [ScriptedCaptureDevice.Step]
    private var index = 0
    /// Frames of the current step that were delivered.
    private var done = 0
    private var pacedFrames = 0
    private let start = ContinuousClock.now
    private var manualTime: Int64 = 0

    init(_ device: ScriptedCaptureDevice, _ steps: [ScriptedCaptureDevice.Step]) {
        self.device = device
        self.steps = steps
        format = device.format
        device.alive.add(1, ordering: .acquiringAndReleasing)
    }

    deinit { device.alive.subtract(1, ordering: .acquiringAndReleasing) }

    func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead {
        while index < steps.count {
            switch steps[index] {
            case .frames(let count):
                if deliver(count, into: &buffer) { return .frames }
            case .late(let count):
                if deliver(count, isLate: true, into: &buffer) { return .frames }
            case .zeros(let count):
                if deliver(count, isSilent: true, into: &buffer) { return .frames }
            case .gap(let count, let kind):
                index += 1
                device.position.add(count, ordering: .relaxed)
                return .gap(frameCount: count, kind: kind)
            case .notice(let kind, let detail):
                index += 1
                return .notice(kind, detail)
            case .nothing:
                index += 1
                return .nothing
            case .pass(let time):
                index += 1
                if case .manual(let clock, _) = device.pace { clock.advance(by: time) }
                return .nothing
            case .silence(let meaning): silence = meaning
            case .format(let next): format = next
            case .block:
                while !device.released.load(ordering: .acquiring) { sleep(.milliseconds(5)) }
            case .fail(let error):
                throw error
            }
            index += 1
        }
        return .end
    }

    private func deliver(
        _ count: Int, isSilent: Bool = false, isLate: Bool = false, into buffer: inout AudioBuffer
    ) -> Bool {
        let frames = min(count - done, buffer.frameCapacity)
        guard frames > 0 else {
            done = 0
            return false
        }
        done += frames
        if buffer.format != format { buffer = AudioBuffer(format: format, frameCapacity: buffer.frameCapacity) }
        if !isLate { pass(frames) }
        let first = device.position.add(Int64(frames), ordering: .relaxed).oldValue
        fill(&buffer, frames, first: first, isSilent: isSilent)
        return true
    }

    private func pass(_ frames: Int) {
        pacedFrames += frames
        switch device.pace {
        case .unpaced: break
        case .realTime: wait(1)
        case .times(let speed): wait(speed)
        case .manual(let clock, let framesPerSecond):
            // From the total, so that nothing adds up.
            let time = Int64(pacedFrames) * 1_000_000_000 / Int64(framesPerSecond)
            clock.advance(by: .nanoseconds(time - manualTime))
            manualTime = time
        }
    }

    private func fill(_ buffer: inout AudioBuffer, _ frames: Int, first: Int64, isSilent: Bool) {
        let channels = format.channelCount
        let (planes, perFrame) = format.isInterleaved ? (1, channels) : (channels, 1)
        let (bytesPerSample, capacity) = (format.sampleFormat.byteCount, buffer.frameCapacity)
        let isFloat = format.sampleFormat == .float32
        unsafe buffer.withUnsafeMutableBytes { bytes in
            if isSilent {
                unsafe bytes.initializeMemory(as: UInt8.self, repeating: format.sampleFormat.silence)
                return frames
            }
            for plane in 0..<planes {
                for sample in 0..<frames * perFrame {
                    let channel = format.isInterleaved ? sample % channels : plane
                    let number = first + Int64(sample / perFrame + channel)
                    let offset = (plane * capacity * perFrame + sample) * bytesPerSample
                    let bits = isFloat ? Int64((Float(number & 0xF_FFFF) / 1_048_576).bitPattern) : number
                    for byte in 0..<bytesPerSample {
                        unsafe bytes[offset + byte] = UInt8(truncatingIfNeeded: bits >> (8 * Int64(byte)))
                    }
                }
            }
            return frames
        }
    }

    private func wait(_ speed: Double) {
        let due = start + .seconds(Double(pacedFrames) / (Double(format.sampleRate) * speed))
        let now = ContinuousClock.now
        if due > now { sleep(due - now) }
    }

    private func sleep(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        unsafe nanosleep(&time, nil)
    }
}
