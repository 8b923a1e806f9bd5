import CPulse
import Glibc
import StenoAudio

/// A connection to a server with a main loop of its own, run by the thread that uses it: no second thread, no lock.
@safe final class PulseConnection {
    let context: OpaquePointer
    private let loop: OpaquePointer
    private let server: String?

    /// Connects, or fails within `timeout`.
    init(server: String?, clientName: String, timeout: Duration) throws(StenoError) {
        self.server = server
        guard let loop = unsafe pa_mainloop_new(), let api = unsafe pa_mainloop_get_api(loop),
            let context = unsafe pa_context_new(api, clientName)
        else { throw StenoError(.insufficientResources, "No memory for a connection to PulseAudio.") }
        unsafe (self.loop, self.context) = (loop, context)
        // No server is an answer; starting one is for the desktop to decide.
        guard unsafe pa_context_connect(context, server, PA_CONTEXT_NOAUTOSPAWN, nil) >= 0 else { throw connectError() }
        try wait(atMost: timeout) { unsafe pa_context_get_state(context) == PA_CONTEXT_READY }
    }

    deinit {
        unsafe pa_context_disconnect(context)
        unsafe pa_context_unref(context)
        unsafe pa_mainloop_free(loop)
    }

    /// Waits for the server at most so long, and works on what came.
    func turn(atMost microseconds: Int32) {
        guard unsafe pa_mainloop_prepare(loop, microseconds) >= 0 else { return }
        unsafe pa_mainloop_poll(loop)
        unsafe pa_mainloop_dispatch(loop)
    }

    /// Turns until `isDone`. Throws when the connection fails, or after `timeout`.
    func wait(atMost timeout: Duration = .seconds(5), isDone: () throws(StenoError) -> Bool) throws(StenoError) {
        let end = SuspendingClock.now + timeout
        while try !isDone() {
            try check()
            guard SuspendingClock.now < end else {
                throw StenoError(.deviceTimeout, "The PulseAudio server\(place) does not answer.")
            }
            turn(atMost: 50_000)
        }
    }

    /// Throws when the connection is gone.
    func check() throws(StenoError) {
        switch unsafe pa_context_get_state(context) {
        case PA_CONTEXT_FAILED, PA_CONTEXT_TERMINATED: throw connectError()
        default: break
        }
    }

    private var place: String { server.map { " at \($0)" } ?? "" }

    /// What the connection failed of.
    private func connectError() -> StenoError {
        let status = unsafe pa_context_errno(context)
        func error(_ code: StenoError.Code, _ hint: String) -> StenoError {
            StenoError(
                code, "PulseAudio\(place): \(unsafe String(cString: pa_strerror(status))). \(hint)",
                nativeCode: Int(status))
        }
        switch pa_error_code(rawValue: UInt32(status)) {
        case PA_ERR_CONNECTIONTERMINATED: return error(.serverLost, "The server ended or was restarted.")
        case PA_ERR_ACCESS, PA_ERR_AUTHKEY:
            return error(.devicePermissionDenied, "The server refuses this user.")
        case PA_ERR_TIMEOUT: return error(.deviceTimeout, "The server does not answer.")
        default:
            // libpulse says "refused" of a socket, too, that this user may not use.
            if let path = forbiddenSocket() {
                return error(.devicePermissionDenied, "This user may not use \(path).")
            }
            return error(.noServer, "Start one (pulseaudio or pipewire-pulse), or name its address.")
        }
    }

    /// The server's socket or the first folder above it that this user may not use.
    private func forbiddenSocket() -> String? {
        func variable(_ name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }
        let runtime = variable("PULSE_RUNTIME_PATH") ?? variable("XDG_RUNTIME_DIR").map { $0 + "/pulse" }
        guard var path = server ?? variable("PULSE_SERVER") ?? runtime.map({ $0 + "/native" }) else { return nil }
        if path.hasPrefix("unix:") { path.removeFirst(5) }
        guard path.hasPrefix("/"), unsafe access(path, W_OK) != 0, errno == EACCES else { return nil }
        return path
    }
}

extension AudioFormat {
    /// What a sample specification of PulseAudio says; nil where Steno has no such format.
    static func from(_ spec: pa_sample_spec, _ map: pa_channel_map) -> (format: AudioFormat, swapsBytes: Bool)? {
        guard let known = sampleFormats.first(where: { spec.format == $0.native || spec.format == $0.swapped }),
            spec.channels > 0, spec.rate > 0
        else { return nil }
        return (
            AudioFormat(
                sampleRate: Int(spec.rate), channelLayout: .from(map, channelCount: Int(spec.channels)),
                sampleFormat: known.sample),
            spec.format != known.native
        )
    }

    static let sampleFormats: [(sample: SampleFormat, native: pa_sample_format_t, swapped: pa_sample_format_t)] = [
        (.int16, PA_SAMPLE_S16LE, PA_SAMPLE_S16BE),
        (.int24, PA_SAMPLE_S24LE, PA_SAMPLE_S24BE),
        (.int24in32, PA_SAMPLE_S24_32LE, PA_SAMPLE_S24_32BE),
        (.int32, PA_SAMPLE_S32LE, PA_SAMPLE_S32BE),
        (.float32, PA_SAMPLE_FLOAT32LE, PA_SAMPLE_FLOAT32BE),
        (.uint8, PA_SAMPLE_U8, PA_SAMPLE_U8),
        (.muLaw, PA_SAMPLE_ULAW, PA_SAMPLE_ULAW),
        (.aLaw, PA_SAMPLE_ALAW, PA_SAMPLE_ALAW),
    ]
}

extension ChannelLayout {
    /// Positions where each channel has one and they come in the order of ``ChannelLayout/Speakers``; else without.
    fileprivate static func from(_ map: pa_channel_map, channelCount: Int) -> ChannelLayout {
        let positions = unsafe withUnsafeBytes(of: map.map) { bytes in
            unsafe Array(bytes.bindMemory(to: pa_channel_position_t.self).prefix(channelCount))
        }
        if positions == [PA_CHANNEL_POSITION_MONO] { return .mono }
        let bits = positions.compactMap { position in speakers.first { $0.0 == position }?.1.rawValue }
        guard bits.count == channelCount, zip(bits, bits.dropFirst()).allSatisfy({ $0 < $1 }) else {
            return .discrete(channelCount)
        }
        return ChannelLayout(speakers: Speakers(rawValue: bits.reduce(0, |))) ?? .discrete(channelCount)
    }

    private static let speakers: [(pa_channel_position_t, Speakers)] = [
        (PA_CHANNEL_POSITION_FRONT_LEFT, .frontLeft), (PA_CHANNEL_POSITION_FRONT_RIGHT, .frontRight),
        (PA_CHANNEL_POSITION_FRONT_CENTER, .frontCenter), (PA_CHANNEL_POSITION_LFE, .lowFrequency),
        (PA_CHANNEL_POSITION_REAR_LEFT, .backLeft), (PA_CHANNEL_POSITION_REAR_RIGHT, .backRight),
        (PA_CHANNEL_POSITION_REAR_CENTER, .backCenter), (PA_CHANNEL_POSITION_SIDE_LEFT, .sideLeft),
        (PA_CHANNEL_POSITION_SIDE_RIGHT, .sideRight),
    ]
}
