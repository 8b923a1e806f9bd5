import StenoAudio

/// What happens to the channels of a stretch before the rate changes.
enum ChannelMix {
    /// All channels go on as they are.
    case all
    /// One channel goes on alone.
    case one(Int)
    /// The sum with these gains.
    case mean(Gains)
    /// The mean with these weights over the channels that a ``ChannelWatch`` uses.
    case automatic(weights: [Float])
    /// Two sums: one for the left, one for the right.
    case stereo(left: Gains, right: Gains)

    /// - Throws: `unsupportedConversion` naming both formats, `invalidArgument` for a channel that is not there.
    init(from input: AudioFormat, to output: AudioFormat, policy: ChannelPolicy) throws(StenoError) {
        let layout = input.channelLayout
        if case .channel(let channel) = policy, !(0..<layout.channelCount).contains(channel) {
            throw StenoError(
                .invalidArgument,
                "channel \(channel) was chosen, but the channels of \(input) are 0 to \(layout.channelCount - 1); "
                    + "the output is \(output)")
        }
        switch (layout.channelCount, output.channelCount, policy) {
        case (1, _, _): self = .one(0)
        case (_, _, .channel(let channel)): self = .one(channel)
        case (_, 1, .mean): self = .mean(Gains(normalized(layout.monoWeights)))
        case (_, 1, .automatic): self = .automatic(weights: layout.monoWeights)
        case (let from, let to, _) where from == to: self = .all
        default:
            guard output.channelLayout == .stereo, let (left, right) = layout.stereoWeights else {
                throw StenoError(.unsupportedConversion, "no rule mixes the channels of \(input) to those of \(output)")
            }
            self = .stereo(left: Gains(left), right: Gains(right))
        }
    }

    /// Channels that go on.
    func channelCount(of input: AudioFormat) -> Int {
        switch self {
        case .all: input.channelCount
        case .one, .mean, .automatic: 1
        case .stereo: 2
        }
    }
}

/// The gains of ITU-R BS.775 for a layout of known positions: front 0.7071 to mono, centre 1, surround 0.5, low frequency 0.
extension ChannelLayout {
    private static let known: Speakers = [
        .frontLeft, .frontRight, .frontCenter, .lowFrequency, .backLeft, .backRight, .backCenter, .sideLeft, .sideRight,
    ]

    /// The position of each channel, or nil unless BS.775 knows them all.
    private var positions: [Speakers]? {
        guard !speakers.isEmpty, speakers.isSubset(of: Self.known) else { return nil }
        return (0..<channelCount).compactMap { speaker(ofChannel: $0) }
    }

    /// Relative weights of the channels in a mono mix; all equal without known positions.
    var monoWeights: [Float] {
        let weights: [Float]? = positions?.map { speaker in
            switch speaker {
            case .frontCenter: 1
            case .frontLeft, .frontRight: 0.70710678
            case .lowFrequency: 0
            default: 0.5
            }
        }
        guard let weights, weights.contains(where: { $0 > 0 }) else {
            return [Float](repeating: 1, count: channelCount)
        }
        return weights
    }

    /// Gains of the channels for left and right; each side sums to 1, so that nothing clips.
    var stereoWeights: (left: [Float], right: [Float])? {
        guard let positions else { return nil }
        func side(_ front: Speakers, _ surround: Speakers) -> [Float] {
            normalized(
                positions.map { speaker in
                    if speaker == front { return 1 }
                    if surround.contains(speaker) || speaker == .frontCenter { return 0.70710678 }
                    return speaker == .backCenter ? 0.5 : 0
                })
        }
        return (side(.frontLeft, [.backLeft, .sideLeft]), side(.frontRight, [.backRight, .sideRight]))
    }
}

/// The weights as gains with the sum 1: correlated channels at full scale reach full scale and never more.
func normalized(_ weights: [Float]) -> [Float] {
    let sum = weights.reduce(0, +)
    return sum > 0 ? weights.map { $0 / sum } : weights
}
