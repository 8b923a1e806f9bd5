import CPulse
public import StenoAudio

/// Capture from a source of a PulseAudio server, or of PipeWire's: a microphone, or the monitor of an output.
///
/// ```swift
/// let source = CaptureSource { () throws(StenoError) in try PulseAudioCaptureStream() }
/// ```
///
/// Without a name, the stream follows the server's default source when another one becomes that. A named source is never
/// replaced by another: when it goes, the stream ends with `capture.deviceLost`.
@safe public final class PulseAudioCaptureStream: CaptureStream {
    public let format: AudioFormat
    /// A monitor's output may play nothing, and the server may have suspended the source.
    public var silence: CaptureSilence { isSuspended ? .suspended : device.isMonitor ? .idle : .fault }

    private let connection: PulseConnection
    private let stream: OpaquePointer
    private let swapsBytes: Bool
    private var isSuspended = false
    private var device: Device
    /// What is left of the fragment that the server sent.
    private var fragment = unsafe UnsafeRawBufferPointer(start: nil, count: 0)

    /// What the server's answer about the source tells; the callback writes it on the thread that reads.
    private final class Device {
        let index: UInt32
        var isMonitor = false
        init(index: UInt32) { self.index = index }
    }

    /// Connects and starts recording. Blocks until the server has answered, 5 s at most for each answer.
    ///
    /// - Parameters:
    ///   - device: A name from ``PulseAudio/devices(server:)``; nil follows the default.
    ///   - request: What the server shall convert to; what is nil stays as the source has it.
    ///   - server: The server's address, such as `unix:/run/user/1000/pulse/native`; nil takes the user's own.
    ///   - clientName: The program's name in the server's list of clients.
    /// - Throws: ``StenoError`` with `capture.noServer`, `.permissionDenied`, `.noSuchDevice`, `.busy`,
    ///   `.unsupportedFormat`, `.timeout` or `.failed`.
    public init(
        device: String? = nil, request: CaptureFormatRequest = .init(), server: String? = nil,
        clientName: String = "Steno"
    ) throws(StenoError) {
        let connection = try PulseConnection(server: server, clientName: clientName, timeout: .seconds(5))
        self.connection = connection
        var flags: UInt32 = PA_STREAM_ADJUST_LATENCY.rawValue
        if request.sampleRate == nil { flags |= PA_STREAM_FIX_RATE.rawValue }
        if request.channelCount == nil { flags |= PA_STREAM_FIX_CHANNELS.rawValue }
        if request.sampleFormat == nil { flags |= PA_STREAM_FIX_FORMAT.rawValue }
        if device != nil { flags |= PA_STREAM_DONT_MOVE.rawValue }
        var spec = try Self.spec(request)
        var map = pa_channel_map()
        unsafe pa_channel_map_init_extend(&map, UInt32(spec.channels), PA_CHANNEL_MAP_DEFAULT)
        let context = unsafe connection.context
        guard let stream = unsafe pa_stream_new(context, "Speech", &spec, &map) else {
            throw Self.error(unsafe pa_context_errno(context), device)
        }
        unsafe self.stream = stream
        // Fragments of 20 ms; what nobody fetches in time the server keeps, up to its limit.
        var attributes = unsafe pa_buffer_attr(
            maxlength: .max, tlength: .max, prebuf: .max, minreq: .max,
            fragsize: UInt32(clamping: pa_usec_to_bytes(20_000, &spec)))
        do throws(StenoError) {
            let status = unsafe pa_stream_connect_record(
                stream, device, &attributes, pa_stream_flags_t(rawValue: flags))
            guard status >= 0 else { throw Self.error(unsafe pa_context_errno(context), device) }
            try connection.wait { () throws(StenoError) in
                switch unsafe pa_stream_get_state(stream) {
                case PA_STREAM_READY: return true
                case PA_STREAM_CREATING: return false
                default:
                    // The connection's own end explains more than the stream's.
                    try connection.check()
                    throw Self.error(unsafe pa_context_errno(context), device)
                }
            }
            guard let granted = unsafe pa_stream_get_sample_spec(stream),
                let grantedMap = unsafe pa_stream_get_channel_map(stream),
                let known = unsafe AudioFormat.from(granted.pointee, grantedMap.pointee)
            else {
                throw StenoError(.unsupportedDeviceFormat, "The source's own format is unknown; ask for one.")
            }
            (format, swapsBytes) = known
        } catch {
            unsafe pa_stream_disconnect(stream)
            unsafe pa_stream_unref(stream)
            throw error
        }
        self.device = Device(index: unsafe pa_stream_get_device_index(stream))
        isSuspended = unsafe pa_stream_is_suspended(stream) > 0
        askAboutDevice()
    }

    deinit {
        unsafe pa_stream_disconnect(stream)
        unsafe pa_stream_unref(stream)
    }

    public func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead {
        if buffer.format != format { buffer = AudioBuffer(format: format, frameCapacity: buffer.frameCapacity) }
        let end = SuspendingClock.now + .milliseconds(80)
        while true {
            if unsafe !fragment.isEmpty {
                copyFragment(into: &buffer)
                return .frames
            }
            try check()
            if let notice = changes() { return notice }
            if let gap = nextFragment() { return gap }
            if unsafe fragment.isEmpty {
                let left = end - SuspendingClock.now
                if left <= .zero { return .nothing }
                connection.turn(atMost: Int32(clamping: left.nanoseconds / 1000))
            }
        }
    }

    /// Takes the next fragment, or returns the hole that is there instead.
    private func nextFragment() -> CaptureRead? {
        var data: UnsafeRawPointer?
        var count = 0
        guard unsafe pa_stream_peek(stream, &data, &count) >= 0, count > 0 else { return nil }
        if let data = unsafe data {
            unsafe fragment = UnsafeRawBufferPointer(start: data, count: count)
            return nil
        }
        // The server's buffer ran over before this client fetched it.
        unsafe pa_stream_drop(stream)
        return .gap(frameCount: Int64(count / format.bytesPerFrame), kind: .overrun)
    }

    private func copyFragment(into buffer: inout AudioBuffer) {
        let frameBytes = format.bytesPerFrame
        let frames = unsafe min(buffer.frameCapacity, fragment.count / frameBytes)
        let part = unsafe UnsafeRawBufferPointer(rebasing: fragment[..<(frames * frameBytes)])
        unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe bytes.copyMemory(from: part)
            if swapsBytes {
                let width = format.sampleFormat.byteCount
                for start in stride(from: 0, to: frames * frameBytes, by: width) {
                    for offset in 0..<width / 2 { unsafe bytes.swapAt(start + offset, start + width - 1 - offset) }
                }
            }
            return frames
        }
        unsafe fragment = UnsafeRawBufferPointer(rebasing: fragment[(frames * frameBytes)...])
        if unsafe fragment.count < frameBytes {
            unsafe fragment = UnsafeRawBufferPointer(start: nil, count: 0)
            unsafe pa_stream_drop(stream)
        }
    }

    /// Throws when the server or the source is gone.
    private func check() throws(StenoError) {
        try connection.check()
        switch unsafe pa_stream_get_state(stream) {
        case PA_STREAM_READY: break
        default: throw Self.error(unsafe pa_context_errno(connection.context), nil)
        }
    }

    /// Tells of a move to another source and of suspension.
    private func changes() -> CaptureRead? {
        let index = unsafe pa_stream_get_device_index(stream)
        if index != device.index {
            device = Device(index: index)
            askAboutDevice()
            let name = unsafe pa_stream_get_device_name(stream).map { unsafe String(cString: $0) } ?? "another source"
            return .notice(.deviceChanged, "Capture goes on from \(name).")
        }
        let isSuspended = unsafe pa_stream_is_suspended(stream) > 0
        if isSuspended != self.isSuspended {
            self.isSuspended = isSuspended
            return .notice(.deviceSuspended, isSuspended ? "The server suspended the source." : "It is awake again.")
        }
        return nil
    }

    /// Asks whether the source is a monitor; the answer comes in one of the next turns.
    private func askAboutDevice() {
        let box = unsafe Unmanaged.passRetained(device)
        let operation = unsafe pa_context_get_source_info_by_index(
            connection.context, device.index,
            { _, info, end, box in
                guard let box = unsafe box else { return }
                let device = unsafe Unmanaged<Device>.fromOpaque(box)
                if let info = unsafe info {
                    unsafe device.takeUnretainedValue().isMonitor = info.pointee.monitor_of_sink != UInt32.max
                }
                if end != 0 { unsafe device.release() }
            }, box.toOpaque())
        if let operation = unsafe operation { unsafe pa_operation_unref(operation) } else { unsafe box.release() }
    }

    private static func spec(_ request: CaptureFormatRequest) throws(StenoError) -> pa_sample_spec {
        // PulseAudio has no 64-bit float; its 32 bits are the nearest.
        let wish = request.sampleFormat == .float64 ? .float32 : request.sampleFormat ?? .int16
        guard let rate = UInt32(exactly: request.sampleRate ?? 48_000), rate > 0, rate <= 48_000 * 8,
            let channels = UInt8(exactly: request.channelCount ?? 2), channels > 0, channels <= 32,
            let format = AudioFormat.sampleFormats.first(where: { $0.sample == wish })
        else {
            throw StenoError(
                .unsupportedDeviceFormat,
                "PulseAudio takes rates up to 384 kHz and up to 32 channels, and was asked for \(request).")
        }
        return pa_sample_spec(format: format.native, rate: rate, channels: channels)
    }

    private static func error(_ status: Int32, _ device: String?) -> StenoError {
        let name = device ?? "the default source"
        func error(_ code: StenoError.Code, _ hint: String) -> StenoError {
            StenoError(
                code, "PulseAudio, \(name): \(unsafe String(cString: pa_strerror(status))). \(hint)",
                nativeCode: Int(status))
        }
        return switch pa_error_code(rawValue: UInt32(status)) {
        case PA_ERR_NOENTITY: error(.noSuchDevice, "Take a name from the list of devices.")
        case PA_ERR_BUSY: error(.deviceBusy, "Another program uses it.")
        case PA_ERR_ACCESS: error(.devicePermissionDenied, "The server refuses this user.")
        case PA_ERR_TIMEOUT: error(.deviceTimeout, "The server does not answer.")
        case PA_ERR_INVALID, PA_ERR_NOTSUPPORTED: error(.unsupportedDeviceFormat, "Ask for another format.")
        case PA_ERR_CONNECTIONTERMINATED: error(.serverLost, "The server ended or was restarted.")
        case PA_ERR_KILLED: error(.deviceLost, "The source was unplugged or unloaded.")
        default: error(.deviceFailed, "")
        }
    }
}
