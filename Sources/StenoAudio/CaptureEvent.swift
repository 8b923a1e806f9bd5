/// What a ``CaptureSource`` delivers, in the order of the timeline.
///
/// Times count from the first moment of the capture, exactly: every frame and every missing frame before them is in.
public enum CaptureEvent: Sendable {
    /// Audio, and where its first frame lies.
    case frames(AudioBuffer, start: MediaTime)
    /// Missing audio (law T6): where, how long, why; and its length in frames at the rate of the current format.
    case gap(TimelineEvent, frameCount: Int64)
    /// The frames that follow have another format. The first format is what ``CaptureSource/start()`` returned.
    case formatChanged(AudioFormat, at: MediaTime)
    /// The device or its server is gone and the source tries to get it back; the gap is reported as it grows.
    case interrupted(StenoError, at: MediaTime)
    /// Something to know about; no audio is missing.
    case notice(TimelineEvent)
}

extension TimelineEvent.Kind {
    /// Nothing but digital zeros for a long time: a muted or dead microphone, or a monitor with nothing playing.
    public static let digitalSilence = Self(rawValue: "digitalSilence")
    /// The stream goes on from another device.
    public static let deviceChanged = Self(rawValue: "deviceChanged")
    /// The device was suspended by its server, or woke up.
    public static let deviceSuspended = Self(rawValue: "deviceSuspended")
}

extension StenoError.Code {
    /// No device has this name. Take a name from the list of devices.
    public static let noSuchDevice = Self(rawValue: "capture.noSuchDevice")
    /// Another program holds the device. Close it, or use a device that is shared.
    public static let deviceBusy = Self(rawValue: "capture.busy")
    /// The device or the server is there, but this user may not use it.
    public static let devicePermissionDenied = Self(rawValue: "capture.permissionDenied")
    /// No sound server answers.
    public static let noServer = Self(rawValue: "capture.noServer")
    /// The device went away during capture.
    public static let deviceLost = Self(rawValue: "capture.deviceLost")
    /// The sound server went away during capture.
    public static let serverLost = Self(rawValue: "capture.serverLost")
    /// The device offers no format that can be read.
    public static let unsupportedDeviceFormat = Self(rawValue: "capture.unsupportedFormat")
    /// The device or server did not answer, or delivered nothing, for longer than is normal.
    public static let deviceTimeout = Self(rawValue: "capture.timeout")
    /// The device reported a failure of another kind.
    public static let deviceFailed = Self(rawValue: "capture.failed")
}

/// How loud a channel was over the last 50 ms; linear, 1 is full scale.
public struct ChannelLevel: Sendable, Hashable {
    public var peak: Float
    public var rms: Float
}

/// Counts of a source, taken together: ``offered`` = ``accepted`` + ``dropped``, always.
public struct CaptureStatistics: Sendable, Hashable {
    /// Frames that the device delivered.
    public var offered: Int64 = 0
    /// Frames that went into the ring.
    public var accepted: Int64 = 0
    /// Frames that found the ring full. Each is in a gap of kind `overrun`.
    public var dropped: Int64 = 0
    /// Frames that never came from the device: overrun, device lost, idle. Each is in a gap.
    public var missing: Int64 = 0
    /// How often a lost device was opened again.
    public var reconnections: Int64 = 0
}

/// The source's frame count beside the monotonic clock.
public struct CaptureTiming: Sendable, Hashable {
    /// When the timeline's zero was, as well as the first buffer's arrival tells.
    public var zero: ContinuousClock.Instant
    /// From ``zero`` to the newest frames' arrival.
    public var elapsed: Duration
    /// The timeline's length then: frames delivered and frames missing.
    public var position: MediaTime

    /// How far the device's clock has run ahead of the monotonic clock; negative when behind. One reading is uncertain
    /// by the length of a read.
    public var drift: Duration {
        .nanoseconds(position.converted(to: 1_000_000_000).value) - elapsed
    }
}
