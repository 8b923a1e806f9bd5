import CPulse
import Glibc
public import StenoAudio
import Synchronization

/// What a PulseAudio server, or PipeWire's, offers for capture.
public enum PulseAudio {
    /// The server's sources: microphones, and a monitor for each output. Blocks until the server has answered.
    ///
    /// - Parameter server: The server's address; nil takes the user's own.
    /// - Throws: ``StenoError`` with `capture.noServer`, `.permissionDenied`, `.timeout` or `.serverLost`.
    public static func devices(server: String? = nil) throws(StenoError) -> [CaptureDevice] {
        try devices(PulseConnection(server: server, clientName: "Steno", timeout: .seconds(5)))
    }

    /// What comes and goes, and which source is the default, from now on. Also over restarts of the server: without it
    /// there is no device.
    ///
    /// One thread serves the sequence until it is dropped or its reader is cancelled.
    public static func deviceEvents(server: String? = nil) -> AsyncStream<CaptureDeviceEvent> {
        AsyncStream { continuation in
            let stopping = Flag()
            continuation.onTermination = { _ in stopping.set() }
            do throws(StenoError) {
                try startThread { watch(server: server, continuation, stopping) }
            } catch {
                continuation.finish()
            }
        }
    }

    private final class Flag: Sendable {
        private let value = Atomic<Bool>(false)
        func set() { value.store(true, ordering: .releasing) }
        var isSet: Bool { value.load(ordering: .acquiring) }
    }

    private static func watch(
        server: String?, _ continuation: AsyncStream<CaptureDeviceEvent>.Continuation, _ stopping: Flag
    ) {
        var known: [CaptureDevice]?
        func update(_ list: [CaptureDevice]) {
            for event in CaptureDeviceEvent.changes(from: known ?? list, to: list) { continuation.yield(event) }
            known = list
        }
        while !stopping.isSet {
            do throws(StenoError) {
                let connection = try PulseConnection(server: server, clientName: "Steno", timeout: .seconds(5))
                let changed = Box(true)
                unsafe pa_context_set_subscribe_callback(
                    connection.context, { _, _, _, box in unsafe Box<Bool>.at(box)?.value = true }, changed.pointer)
                let mask = PA_SUBSCRIPTION_MASK_SOURCE.rawValue | PA_SUBSCRIPTION_MASK_SERVER.rawValue
                unsafe start(
                    pa_context_subscribe(connection.context, pa_subscription_mask_t(rawValue: mask), nil, nil))
                while !stopping.isSet {
                    if changed.value {
                        changed.value = false
                        update(try devices(connection))
                    }
                    connection.turn(atMost: 100_000)
                    try connection.check()
                }
                unsafe pa_context_set_subscribe_callback(connection.context, nil, nil)
            } catch {
                update([])
                // Half a second until the next try, in short steps for a prompt end.
                var left = 10
                while left > 0, !stopping.isSet {
                    usleep(50_000)
                    left -= 1
                }
            }
        }
        continuation.finish()
    }

    /// What a callback of libpulse writes into, on the thread that turns the loop.
    @safe private final class Box<Value> {
        var value: Value
        init(_ value: Value) { self.value = value }
        var pointer: UnsafeMutableRawPointer { unsafe Unmanaged.passUnretained(self).toOpaque() }
        static func at(_ pointer: UnsafeMutableRawPointer?) -> Box? {
            guard let pointer = unsafe pointer else { return nil }
            return unsafe Unmanaged<Box>.fromOpaque(pointer).takeUnretainedValue()
        }
    }

    private typealias AnswerBox = Box<Answer>
    private struct Answer {
        var devices: [CaptureDevice] = []
        var defaultName: String?
        var answers = 0
    }

    private static func devices(_ connection: PulseConnection) throws(StenoError) -> [CaptureDevice] {
        let answer = AnswerBox(Answer())
        let context = unsafe connection.context
        unsafe start(
            pa_context_get_server_info(
                context,
                { _, info, box in
                    guard let answer = unsafe AnswerBox.at(box) else { return }
                    answer.value.defaultName = unsafe info.flatMap { unsafe $0.pointee.default_source_name }.map {
                        unsafe String(cString: $0)
                    }
                    answer.value.answers += 1
                }, answer.pointer))
        unsafe start(
            pa_context_get_source_info_list(
                context,
                { _, info, end, box in
                    guard let answer = unsafe AnswerBox.at(box) else { return }
                    if end != 0 { answer.value.answers += 1 }
                    if let info = unsafe info { unsafe answer.value.devices.append(PulseAudio.device(info.pointee)) }
                }, answer.pointer))
        try connection.wait { answer.value.answers == 2 }
        return answer.value.devices.map { device in
            var device = device
            device.isDefault = device.name == answer.value.defaultName
            return device
        }
    }

    private static func device(_ info: pa_source_info) -> CaptureDevice {
        let name = unsafe info.name.map { unsafe String(cString: $0) } ?? ""
        return unsafe CaptureDevice(
            name: name, description: info.description.map { unsafe String(cString: $0) } ?? name,
            kind: info.monitor_of_sink == UInt32.max ? .input : .monitor, isDefault: false,
            format: AudioFormat.from(info.sample_spec, info.channel_map)?.format)
    }

    private static func start(_ operation: OpaquePointer?) {
        if let operation = unsafe operation { unsafe pa_operation_unref(operation) }
    }
}
