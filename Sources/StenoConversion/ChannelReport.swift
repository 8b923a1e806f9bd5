/// What the converter does with the channels of its input (law C3).
public struct ChannelReport: Sendable, Hashable {
    /// Why a channel is part of the output or not.
    public enum Use: Sendable, Hashable {
        case used
        /// Left out: it carries no signal, or one far below the loudest channel's.
        case silent
        /// Left out: it would cancel the loudest channel.
        case oppositePhase
        /// Left out by the policy, or by the layout's gains (low frequency).
        case notChosen
    }

    public struct Channel: Sendable, Hashable {
        public let use: Use
        /// The factor of the channel in the output; in a stereo output that of the side where it is stronger.
        public let gain: Float
        /// The running root mean square where the policy measures it, with full scale 1; a sine at full scale has 0.71.
        public let level: Float?
    }

    /// In the order of the input.
    public let channels: [Channel]
}

/// From a frame of the output on, other channels are used than before.
public struct ChannelChange: Sendable, Hashable {
    /// Counted from the start of the output stream.
    public let frame: Int64
    public let report: ChannelReport
}

extension ChannelReport: CustomStringConvertible {
    public var description: String {
        func part(_ use: Use, _ text: String) -> String? {
            let numbers = channels.indices.filter { channels[$0].use == use }.map(String.init)
            return numbers.isEmpty ? nil : "\(text) \(numbers.joined(separator: ", "))"
        }
        return [
            part(.used, "channels used:"), part(.silent, "without signal:"),
            part(.oppositePhase, "in opposite phase:"), part(.notChosen, "not chosen:"),
        ].compactMap { $0 }.joined(separator: "; ")
    }
}
