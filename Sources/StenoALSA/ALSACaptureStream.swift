import CALSA
import Glibc
public import StenoAudio

/// Capture from an ALSA device: a sound card (`hw:…`), or any plug-in of the ALSA configuration.
///
/// ```swift
/// let source = CaptureSource { () throws(StenoError) in try ALSACaptureStream(device: "default") }
/// ```
///
/// Reads what the device has in its own format; nothing is resampled or mixed on the way where ALSA leaves the choice.
/// Big-endian samples come in the machine's order. An overrun of the device is a gap, measured by the clock.
@safe public final class ALSACaptureStream: CaptureStream {
    public let format: AudioFormat
    private let pcm: OpaquePointer
    private let swapsBytes: Bool
    /// The device has to be started, at first and after each interruption.
    private var isStarted = false
    /// Since when frames are missing, in nanoseconds on the monotonic clock; nil while none are.
    private var missingSince: Int64?
    private var missingKind = TimelineEvent.Kind.overrun
    /// When the newest frame that was read had been captured.
    private var newest: Int64?

    /// Opens a device. Blocks while ALSA does.
    ///
    /// - Parameters:
    ///   - device: A name from ``ALSA/devices()``, or any other that ALSA knows.
    ///   - request: What is asked for; without a wish, 48 kHz, two channels and 16 bits, or what is nearest.
    /// - Throws: ``StenoError`` with `capture.noSuchDevice`, `.busy`, `.permissionDenied`, `.noServer` (a plug-in to a
    ///   sound server), `.unsupportedFormat` or `.failed`.
    public convenience init(
        device: String = "default", request: CaptureFormatRequest = .init()
    ) throws(StenoError) {
        try self.init(device: device, request: request, swapsBytes: nil)
    }

    /// - Parameter swapsBytes: Takes only formats in the machine's byte order, or only in the other one; nil takes both.
    package init(device: String, request: CaptureFormatRequest, swapsBytes swapped: Bool?) throws(StenoError) {
        var opened: OpaquePointer?
        // Not blocking: else a device in use makes the call wait for its release instead of saying so.
        let status = quietly { unsafe snd_pcm_open(&opened, device, SND_PCM_STREAM_CAPTURE, SND_PCM_NONBLOCK) }
        guard status >= 0, let pcm = unsafe opened else { throw ALSA.openError(status, device: device) }
        unsafe self.pcm = pcm
        do throws(StenoError) {
            (format, swapsBytes) = try quietly { () throws(StenoError) in
                try unsafe ALSA.negotiate(pcm, device: device, request, swapsBytes: swapped)
            }
        } catch {
            unsafe snd_pcm_close(pcm)
            throw error
        }
    }

    deinit { unsafe snd_pcm_close(pcm) }

    public func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead {
        if buffer.format != format { buffer = AudioBuffer(format: format, frameCapacity: buffer.frameCapacity) }
        if !isStarted { try start() }
        let ready = unsafe snd_pcm_wait(pcm, 100)
        guard ready > 0 else { return ready == 0 ? .nothing : try interrupted(ready) }
        if let gap = missingFrames() { return gap }
        let capacity = buffer.frameCapacity
        var count = 0
        unsafe buffer.withUnsafeMutableBytes { bytes in
            count = unsafe snd_pcm_readi(pcm, bytes.baseAddress, snd_pcm_uframes_t(capacity))
            if swapsBytes, count > 0 { unsafe swapSamples(bytes, count * format.channelCount) }
            return max(0, count)
        }
        if count > 0 {
            let waiting = unsafe max(0, snd_pcm_avail_update(pcm))
            newest = now() - Int64(waiting) * 1_000_000_000 / Int64(format.sampleRate)
            return .frames
        }
        guard count == 0 || count == -Int(EAGAIN) else { return try interrupted(Int32(count)) }
        // Ready, and yet nothing: a plug-in that cannot wait must not make this thread spin.
        usleep(2000)
        return .nothing
    }

    private func start() throws(StenoError) {
        var status = unsafe snd_pcm_prepare(pcm)
        if status >= 0 { status = unsafe snd_pcm_start(pcm) }
        guard status >= 0 else { throw ALSA.readError(status) }
        isStarted = true
    }

    /// The gap that an interruption made, once there are frames again: they were captured up to now.
    private func missingFrames() -> CaptureRead? {
        guard let since = missingSince else { return nil }
        let waiting = unsafe Int64(snd_pcm_avail_update(pcm))
        guard waiting > 0 else { return nil }
        missingSince = nil
        let missing = (now() - since) * Int64(format.sampleRate) / 1_000_000_000 - waiting
        return missing > 0 ? .gap(frameCount: missing, kind: missingKind) : nil
    }

    private func interrupted(_ status: Int32) throws(StenoError) -> CaptureRead {
        switch -status {
        case EPIPE:
            missingKind = .overrun
        case ESTRPIPE:
            missingKind = .deviceSuspended
            // Until the machine is awake. What cannot resume is started anew.
            if unsafe snd_pcm_resume(pcm) == -EAGAIN {
                usleep(50_000)
                return .nothing
            }
        case EINTR: return .nothing
        default: throw ALSA.readError(status)
        }
        // What the device had in its buffer is lost with the rest, so the gap begins behind the newest frame read.
        if missingSince == nil { missingSince = newest }
        isStarted = false
        return .nothing
    }

    private func now() -> Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    private func swapSamples(_ bytes: UnsafeMutableRawBufferPointer, _ count: Int) {
        let width = format.sampleFormat.byteCount
        for start in stride(from: 0, to: count * width, by: width) {
            for offset in 0..<width / 2 { unsafe bytes.swapAt(start + offset, start + width - 1 - offset) }
        }
    }
}
