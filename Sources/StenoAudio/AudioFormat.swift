/// How one sample is stored. All are in the byte order of the machine.
public enum SampleFormat: String, Sendable, Hashable, CaseIterable {
    /// 0 to 255 with silence at 128.
    case uint8
    case int16
    /// Three bytes for each sample.
    case int24
    /// 24 bits in the lower three bytes of an `Int32`; the upper byte is ignored when read.
    case int24in32
    case int32
    /// Full scale is ±1.
    case float32
    /// Full scale is ±1.
    case float64
    /// ITU-T G.711 µ-law.
    case muLaw
    /// ITU-T G.711 A-law.
    case aLaw

    public var byteCount: Int {
        switch self {
        case .uint8, .muLaw, .aLaw: 1
        case .int16: 2
        case .int24: 3
        case .int24in32, .int32, .float32: 4
        case .float64: 8
        }
    }

    /// The byte that fills silence.
    public var silence: UInt8 {
        switch self {
        case .uint8: 0x80
        case .muLaw: 0xFF
        case .aLaw: 0xD5
        default: 0
        }
    }
}

/// How many channels there are and, where it is known, which speaker each is for.
public struct ChannelLayout: Sendable, Hashable {
    /// Speaker positions, with the bits and the channel order of `WAVEFORMATEXTENSIBLE.dwChannelMask`.
    public struct Speakers: OptionSet, Sendable, Hashable {
        public let rawValue: UInt32
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        public static let frontLeft = Speakers(rawValue: 1 << 0)
        public static let frontRight = Speakers(rawValue: 1 << 1)
        public static let frontCenter = Speakers(rawValue: 1 << 2)
        public static let lowFrequency = Speakers(rawValue: 1 << 3)
        public static let backLeft = Speakers(rawValue: 1 << 4)
        public static let backRight = Speakers(rawValue: 1 << 5)
        public static let backCenter = Speakers(rawValue: 1 << 8)
        public static let sideLeft = Speakers(rawValue: 1 << 9)
        public static let sideRight = Speakers(rawValue: 1 << 10)
    }

    /// Channels in a frame; above zero.
    public let channelCount: Int
    /// One bit for each channel, in channel order from the lowest bit; empty when the channels have no known positions.
    public let speakers: Speakers

    /// Channels without positions.
    ///
    /// - Precondition: `channelCount > 0`.
    public static func discrete(_ channelCount: Int) -> ChannelLayout {
        precondition(channelCount > 0, "a frame has at least one channel, not \(channelCount)")
        return ChannelLayout(channelCount: channelCount, speakers: [])
    }

    /// The usual layout of that many channels: mono, stereo, else discrete.
    public init(channelCount: Int) {
        switch channelCount {
        case 1: self = .mono
        case 2: self = .stereo
        default: self = .discrete(channelCount)
        }
    }

    /// One channel for each speaker of a non-empty set.
    public init?(speakers: Speakers) {
        let count = speakers.rawValue.nonzeroBitCount
        guard count > 0 else { return nil }
        self.init(channelCount: count, speakers: speakers)
    }

    private init(channelCount: Int, speakers: Speakers) {
        self.channelCount = channelCount
        self.speakers = speakers
    }

    public static let mono = ChannelLayout(channelCount: 1, speakers: .frontCenter)
    public static let stereo = ChannelLayout(channelCount: 2, speakers: [.frontLeft, .frontRight])
    /// Left, right, centre, low frequency, then the two surround channels at the back.
    public static let surround51 = ChannelLayout(
        channelCount: 6,
        speakers: [.frontLeft, .frontRight, .frontCenter, .lowFrequency, .backLeft, .backRight])
    public static let surround71 = ChannelLayout(
        channelCount: 8,
        speakers: [
            .frontLeft, .frontRight, .frontCenter, .lowFrequency, .backLeft, .backRight, .sideLeft, .sideRight,
        ])

    /// The speaker of each channel in order, or nil when the channels have no positions.
    public func speaker(ofChannel channel: Int) -> Speakers? {
        guard !speakers.isEmpty, channel < channelCount else { return nil }
        var bits = speakers.rawValue
        for _ in 0..<channel { bits &= bits - 1 }
        return Speakers(rawValue: bits & (~bits &+ 1))
    }
}

extension ChannelLayout: CustomStringConvertible {
    public var description: String {
        switch self {
        case .mono: "mono"
        case .stereo: "stereo"
        case .surround51: "5.1"
        case .surround71: "7.1"
        default: "\(channelCount) channels"
        }
    }
}

/// The shape of linear audio: rate, channels, sample format, and whether the samples of a frame lie together.
public struct AudioFormat: Sendable, Hashable {
    /// Frames for each second; above zero.
    public let sampleRate: Int
    public let channelLayout: ChannelLayout
    public let sampleFormat: SampleFormat
    /// Frame after frame when true; channel after channel (planar) when false.
    public let isInterleaved: Bool

    /// - Precondition: `sampleRate` is in `1...Int32.max`.
    public init(
        sampleRate: Int, channelLayout: ChannelLayout, sampleFormat: SampleFormat, isInterleaved: Bool = true
    ) {
        precondition(sampleRate > 0 && sampleRate <= Int(Int32.max), "no audio has a sample rate of \(sampleRate) Hz")
        self.sampleRate = sampleRate
        self.channelLayout = channelLayout
        self.sampleFormat = sampleFormat
        // One channel lies the same either way; one spelling keeps equal formats equal.
        self.isInterleaved = isInterleaved || channelLayout.channelCount == 1
    }

    /// A mono, stereo or discrete layout of `channelCount` channels.
    public init(sampleRate: Int, channelCount: Int, sampleFormat: SampleFormat, isInterleaved: Bool = true) {
        self.init(
            sampleRate: sampleRate, channelLayout: ChannelLayout(channelCount: channelCount),
            sampleFormat: sampleFormat, isInterleaved: isInterleaved)
    }

    public var channelCount: Int { channelLayout.channelCount }
    /// Bytes of one frame over all its channels.
    public var bytesPerFrame: Int { channelCount * sampleFormat.byteCount }
}

extension AudioFormat: CustomStringConvertible {
    public var description: String {
        "\(sampleRate) Hz, \(channelLayout), \(sampleFormat.rawValue)\(isInterleaved ? "" : ", planar")"
    }
}
