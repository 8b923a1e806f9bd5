import CALSA
import Glibc
public import StenoAudio

/// What ALSA offers for capture.
public enum ALSA {
    /// The capture devices that ALSA lists, each with the name that stays the same when cards are renumbered.
    ///
    /// ALSA does not tell when a device comes or goes; ask again. Blocks for some milliseconds.
    ///
    /// - Throws: ``StenoError`` with `capture.failed`.
    public static func devices() throws(StenoError) -> [CaptureDevice] {
        var hints: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
        let status = quietly { unsafe snd_device_name_hint(-1, "pcm", &hints) }
        guard status >= 0, let list = unsafe hints else {
            throw StenoError(.deviceFailed, "ALSA gives no list of devices: \(text(status)).", nativeCode: Int(status))
        }
        defer { unsafe snd_device_name_free_hint(list) }
        var devices: [CaptureDevice] = []
        var next = unsafe list
        while let hint = unsafe next.pointee {
            unsafe next += 1
            // Nil stands for both directions.
            if unsafe string(hint, "IOID") == "Output" { continue }
            guard let name = unsafe string(hint, "NAME"), name != "null" else { continue }
            let lines = unsafe string(hint, "DESC")?.split(separator: "\n") ?? []
            devices.append(
                CaptureDevice(
                    name: name, description: lines.joined(separator: ", "), kind: .input, isDefault: name == "default"))
        }
        return devices
    }

    /// What a device can deliver, found by opening it for a moment.
    public struct Capabilities: Sendable, Hashable {
        /// In hertz; not every rate between has to work.
        public var sampleRates: ClosedRange<Int>
        public var channelCounts: ClosedRange<Int>
        public var sampleFormats: [SampleFormat]
    }

    /// - Throws: ``StenoError`` as opening the device does.
    public static func capabilities(of device: String) throws(StenoError) -> Capabilities {
        var opened: OpaquePointer?
        let status = quietly { unsafe snd_pcm_open(&opened, device, SND_PCM_STREAM_CAPTURE, SND_PCM_NONBLOCK) }
        guard status >= 0, let pcm = unsafe opened else { throw openError(status, device: device) }
        defer { unsafe snd_pcm_close(pcm) }
        return try unsafe withParameters { parameters throws(StenoError) in
            try unsafe check(snd_pcm_hw_params_any(pcm, parameters), "asking \(device) what it can do")
            var (low, high): (UInt32, UInt32) = (0, 0)
            var direction: Int32 = 0
            unsafe snd_pcm_hw_params_get_rate_min(parameters, &low, &direction)
            unsafe snd_pcm_hw_params_get_rate_max(parameters, &high, &direction)
            // Zero and above what an `Int32` holds stand for "any".
            let rates = max(1, Int(low))...min(Int(Int32.max), max(1, Int(high)))
            unsafe snd_pcm_hw_params_get_channels_min(parameters, &low)
            unsafe snd_pcm_hw_params_get_channels_max(parameters, &high)
            let formats = formats.filter { unsafe snd_pcm_hw_params_test_format(pcm, parameters, $0.native) == 0 }
            return Capabilities(
                sampleRates: rates, channelCounts: Int(low)...max(Int(low), Int(high)),
                sampleFormats: SampleFormat.allCases.filter { sample in formats.contains { $0.sample == sample } })
        }
    }

    // MARK: Negotiation

    private struct Format {
        var sample: SampleFormat
        var native: snd_pcm_format_t
        var isSwapped = false
    }

    /// Each sample format in the machine's byte order before the other one, and without a wish in this order.
    private static let formats = [
        Format(sample: .int16, native: SND_PCM_FORMAT_S16_LE),
        Format(sample: .int16, native: SND_PCM_FORMAT_S16_BE, isSwapped: true),
        Format(sample: .int32, native: SND_PCM_FORMAT_S32_LE),
        Format(sample: .int32, native: SND_PCM_FORMAT_S32_BE, isSwapped: true),
        Format(sample: .int24, native: SND_PCM_FORMAT_S24_3LE),
        Format(sample: .int24, native: SND_PCM_FORMAT_S24_3BE, isSwapped: true),
        Format(sample: .int24in32, native: SND_PCM_FORMAT_S24_LE),
        Format(sample: .int24in32, native: SND_PCM_FORMAT_S24_BE, isSwapped: true),
        Format(sample: .float32, native: SND_PCM_FORMAT_FLOAT_LE),
        Format(sample: .float32, native: SND_PCM_FORMAT_FLOAT_BE, isSwapped: true),
        Format(sample: .float64, native: SND_PCM_FORMAT_FLOAT64_LE),
        Format(sample: .float64, native: SND_PCM_FORMAT_FLOAT64_BE, isSwapped: true),
        Format(sample: .uint8, native: SND_PCM_FORMAT_U8),
    ]

    /// Sets the device up as near to the request as it goes; returns what it is, and whether bytes must be swapped.
    static func negotiate(
        _ pcm: OpaquePointer, device: String, _ request: CaptureFormatRequest, swapsBytes: Bool? = nil
    ) throws(StenoError) -> (AudioFormat, swapsBytes: Bool) {
        for (value, name) in [(request.sampleRate, "sample rate"), (request.channelCount, "channel count")] {
            guard let value, !(1...1_000_000).contains(value) else { continue }
            throw StenoError(.invalidArgument, "No device has a \(name) of \(value).")
        }
        return try unsafe withParameters { parameters throws(StenoError) in
            let asked = "\(device), asked for \(request.sampleRate ?? 48_000) Hz, \(request.channelCount ?? 2) channels"
            try unsafe check(snd_pcm_hw_params_any(pcm, parameters), asked)
            // The converter resamples better, and knows how much it delays.
            unsafe snd_pcm_hw_params_set_rate_resample(pcm, parameters, 0)
            try unsafe check(
                snd_pcm_hw_params_set_access(pcm, parameters, SND_PCM_ACCESS_RW_INTERLEAVED),
                "\(device) gives no interleaved audio; its name with plughw: instead of hw: does")
            let wished = formats.filter { $0.sample == request.sampleFormat } + formats
            let format = wished.first {
                unsafe (swapsBytes ?? $0.isSwapped) == $0.isSwapped
                    && snd_pcm_hw_params_test_format(pcm, parameters, $0.native) == 0
            }
            guard let format else {
                throw StenoError(
                    .unsupportedDeviceFormat,
                    "\(device) has no sample format that can be read; its name with plughw: instead of hw: may.")
            }
            try unsafe check(snd_pcm_hw_params_set_format(pcm, parameters, format.native), asked)
            var channels = UInt32(request.channelCount ?? 2)
            try unsafe check(snd_pcm_hw_params_set_channels_near(pcm, parameters, &channels), asked)
            var rate = UInt32(request.sampleRate ?? 48_000)
            var direction: Int32 = 0
            try unsafe check(snd_pcm_hw_params_set_rate_near(pcm, parameters, &rate, &direction), asked)
            // Wake-ups every 20 ms; room for half a second in which nobody gets to read.
            var (period, buffer): (UInt32, UInt32) = (20_000, 500_000)
            unsafe snd_pcm_hw_params_set_buffer_time_near(pcm, parameters, &buffer, &direction)
            unsafe snd_pcm_hw_params_set_period_time_near(pcm, parameters, &period, &direction)
            try unsafe check(snd_pcm_hw_params(pcm, parameters), asked)
            return (
                AudioFormat(sampleRate: Int(rate), channelCount: Int(channels), sampleFormat: format.sample),
                format.isSwapped
            )
        }
    }

    private static func withParameters<R>(
        _ body: (OpaquePointer) throws(StenoError) -> R
    ) throws(StenoError) -> R {
        var allocated: OpaquePointer?
        guard unsafe snd_pcm_hw_params_malloc(&allocated) >= 0, let parameters = unsafe allocated else {
            throw StenoError(.insufficientResources, "No memory for the parameters of a device.")
        }
        defer { unsafe snd_pcm_hw_params_free(parameters) }
        return try unsafe body(parameters)
    }

    private static func check(_ status: Int32, _ what: @autoclosure () -> String) throws(StenoError) {
        guard status < 0 else { return }
        let lost = status == -ENODEV
        throw StenoError(
            lost ? .deviceLost : .unsupportedDeviceFormat, "\(what()): \(text(status)).", nativeCode: Int(status))
    }

    // MARK: Errors

    static func text(_ status: Int32) -> String { unsafe String(cString: snd_strerror(status)) }

    package static func openError(_ status: Int32, device: String) -> StenoError {
        func error(_ code: StenoError.Code, _ hint: String) -> StenoError {
            StenoError(code, "ALSA cannot open \(device): \(text(status)). \(hint)", nativeCode: Int(status))
        }
        switch -status {
        case EBUSY, EAGAIN:
            return error(.deviceBusy, "Another program uses it; close that one, or take a shared device.")
        case EACCES, EPERM:
            return error(.devicePermissionDenied, "This user may not use it; it may have to join the group audio.")
        case ECONNREFUSED, ENOTCONN, ECONNRESET, ETIMEDOUT:
            return error(.noServer, "The device is a way to a sound server, and none answers.")
        case ENOENT, ENODEV, ENXIO:
            // ALSA says "no such card" too when it may not look at the cards.
            if let node = forbiddenNode(in: "/dev/snd") {
                return error(
                    .devicePermissionDenied, "This user may not use \(node), so it may have to join the group audio.")
            }
            return error(.noSuchDevice, "Take a name from the list of devices.")
        default:
            return error(.deviceFailed, "The ALSA configuration for it may be at fault.")
        }
    }

    /// A sound node that is there but may not be opened; nil where there is none.
    package static func forbiddenNode(in directory: String) -> String? {
        guard let listing = unsafe opendir(directory) else { return errno == EACCES ? directory : nil }
        defer { unsafe closedir(listing) }
        while let entry = unsafe readdir(listing) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            let node = directory + "/" + name
            if name.hasPrefix("controlC") || name.hasPrefix("pcmC"), unsafe access(node, R_OK | W_OK) != 0,
                errno == EACCES
            {
                return node
            }
        }
        return nil
    }

    static func readError(_ status: Int32) -> StenoError {
        switch -status {
        case ENODEV, ENXIO, EIO, EBADFD, ECONNREFUSED, ECONNRESET, EPIPE, ENOTCONN:
            StenoError(.deviceLost, "The ALSA device is gone: \(text(status)).", nativeCode: Int(status))
        default:
            StenoError(.deviceFailed, "Reading the ALSA device failed: \(text(status)).", nativeCode: Int(status))
        }
    }

    private static func string(_ hint: UnsafeMutableRawPointer, _ key: String) -> String? {
        guard let value = unsafe snd_device_name_get_hint(hint, key) else { return nil }
        defer { unsafe free(value) }
        return unsafe String(cString: value)
    }
}

/// Keeps libasound from writing to the program's standard error: what it has to say is in the thrown error.
func quietly<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    let previous = unsafe snd_lib_error_set_local { _, _, _, _, _, _ in }
    defer { unsafe _ = snd_lib_error_set_local(previous) }
    return try body()
}
