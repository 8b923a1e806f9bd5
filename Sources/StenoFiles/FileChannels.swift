internal import CSndfile
internal import StenoAudio

/// The channels of a file: the layout they have in an ``AudioBuffer``, and the place in the file of each where that is
/// another.
struct FileChannels {
    let layout: ChannelLayout
    /// For each channel in order its index in the file's frame; nil when they are the same.
    let order: [Int]?

    init(of file: OpaquePointer, format: Int, channelCount: Int, isVorbisOrdered: Bool) {
        let bits: [UInt32]
        switch format & SF_FORMAT_TYPEMASK {
        // Neither has a channel map in libsndfile; both have fixed orders up to eight channels.
        case SF_FORMAT_FLAC: bits = Self.flacOrders[channelCount] ?? []
        case SF_FORMAT_OGG: bits = isVorbisOrdered ? Self.vorbisOrders[channelCount] ?? [] : []
        default:
            var map = [Int32](repeating: 0, count: channelCount)
            let size = Int32(channelCount * MemoryLayout<Int32>.size)
            let isKnown = unsafe sf_command(file, Int32(SFC_GET_CHANNEL_MAP_INFO), &map, size) == SF_TRUE
            bits = isKnown ? map.map { Self.mapBits.indices.contains(Int($0)) ? Self.mapBits[Int($0)] : 0 } : []
        }
        guard bits.count == channelCount, !bits.contains(0), Set(bits).count == bits.count,
            let layout = ChannelLayout(speakers: .init(rawValue: bits.reduce(0, |)))
        else {
            (layout, order) = (ChannelLayout(channelCount: channelCount), nil)
            return
        }
        self.layout = layout
        let order = bits.indices.sorted { bits[$0] < bits[$1] }
        self.order = order == Array(bits.indices) ? nil : order
    }

    /// Puts the channels of frames as the file has them in order. Allocates nothing.
    func reorder<Sample: BitwiseCopyable>(_ samples: UnsafeMutableBufferPointer<Sample>) {
        guard let order else { return }
        unsafe withUnsafeTemporaryAllocation(of: Sample.self, capacity: order.count) { frame in
            for start in stride(from: 0, to: samples.count, by: order.count) {
                for channel in order.indices { unsafe frame[channel] = samples[start + order[channel]] }
                for channel in order.indices { unsafe samples[start + channel] = frame[channel] }
            }
        }
    }

    private static let (left, right, center, low): (UInt32, UInt32, UInt32, UInt32) = (1, 1 << 1, 1 << 2, 1 << 3)
    private static let (backLeft, backRight, backCenter): (UInt32, UInt32, UInt32) = (1 << 4, 1 << 5, 1 << 8)
    private static let (sideLeft, sideRight): (UInt32, UInt32) = (1 << 9, 1 << 10)

    /// By the specification of FLAC's frame header.
    private static let flacOrders: [Int: [UInt32]] = [
        3: [left, right, center],
        4: [left, right, backLeft, backRight],
        5: [left, right, center, backLeft, backRight],
        6: [left, right, center, low, backLeft, backRight],
        7: [left, right, center, low, backCenter, sideLeft, sideRight],
        8: [left, right, center, low, backLeft, backRight, sideLeft, sideRight],
    ]

    /// By the Vorbis I specification, section 4.3.9; mapping family 1 of Opus has the same.
    private static let vorbisOrders: [Int: [UInt32]] = [
        3: [left, center, right],
        4: [left, right, backLeft, backRight],
        5: [left, center, right, backLeft, backRight],
        6: [left, center, right, backLeft, backRight, low],
        7: [left, center, right, sideLeft, sideRight, backCenter, low],
        8: [left, center, right, sideLeft, sideRight, backLeft, backRight, low],
    ]

    /// The speaker bit of each SF_CHANNEL_MAP value, in the order of sndfile.h from 0; 0 where there is none.
    private static let mapBits: [UInt32] = [
        0, center, left, right, center, left, right, center, backCenter, backLeft, backRight, low, 1 << 6, 1 << 7,
        sideLeft, sideRight, 1 << 11, 1 << 12, 1 << 14, 1 << 13, 1 << 15, 1 << 17, 1 << 16,
    ]
}
