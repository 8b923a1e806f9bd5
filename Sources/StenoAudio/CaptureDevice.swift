/// A device that a capture back end lists.
public struct CaptureDevice: Sendable, Hashable {
    public enum Kind: String, Sendable, Hashable {
        /// A microphone or line.
        case input
        /// What is being played to an output.
        case monitor
    }

    /// What the back end opens it by. Stable over restarts where the system allows.
    public var name: String
    /// For people, one line.
    public var description: String
    public var kind: Kind
    /// Whether this is what opens when no name is given.
    public var isDefault: Bool
    /// The device's own format, where the back end knows it without opening the device.
    public var format: AudioFormat?

    public init(name: String, description: String, kind: Kind, isDefault: Bool, format: AudioFormat? = nil) {
        self.name = name
        self.description = description
        self.kind = kind
        self.isDefault = isDefault
        self.format = format
    }
}

/// A change in the list of devices.
public enum CaptureDeviceEvent: Sendable, Hashable {
    case added(CaptureDevice)
    case removed(CaptureDevice)
    /// Another device is the default now; nil when there is none.
    case defaultChanged(CaptureDevice?)

    /// What turns one list into the other; what is gone comes first.
    package static func changes(from old: [CaptureDevice], to new: [CaptureDevice]) -> [CaptureDeviceEvent] {
        let removed = old.filter { device in !new.contains { $0.name == device.name } }
        let added = new.filter { device in !old.contains { $0.name == device.name } }
        let (before, after) = (old.first(where: \.isDefault), new.first(where: \.isDefault))
        return removed.map { .removed($0) } + added.map { .added($0) }
            + (before?.name == after?.name ? [] : [.defaultChanged(after)])
    }
}

/// What is asked of a device; nil leaves the choice to the device. What is granted is the stream's
/// ``CaptureStream/format``.
public struct CaptureFormatRequest: Sendable, Hashable {
    /// In hertz; the nearest that the device has is granted.
    public var sampleRate: Int?
    public var channelCount: Int?
    public var sampleFormat: SampleFormat?

    public init(sampleRate: Int? = nil, channelCount: Int? = nil, sampleFormat: SampleFormat? = nil) {
        self.sampleRate = sampleRate
        self.channelCount = channelCount
        self.sampleFormat = sampleFormat
    }
}
