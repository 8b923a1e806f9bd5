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
