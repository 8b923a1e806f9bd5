/// Decides for each block of 20 ms which channels a mean is taken over (law C3). The numbers are in
/// Documentation/Channels.md.
struct ChannelWatch {
    private enum Limit {
        /// Mean squares: -80 dB below full scale, where a channel is silent, and -60 dB.
        static let silence: Float = 1e-8
        static let speech: Float = 1e-6
        /// 40 dB below the loudest channel one is left out, 34 dB below it comes back.
        static let leave: Float = 1e-4
        static let comeBack: Float = 4e-4
        /// A channel that was left out but is 10 dB above all that are used comes back at once, as if 30 dB below.
        static let dominance: Float = 10
        static let dominant: Float = 1e-3
        /// A level rises by this part of the difference in a block, and falls by 2 dB in a second.
        static let rise: Float = 0.1
        static let fall: Float = 0.990_832
        /// The reference changes to a channel that is 6 dB louder.
        static let louder: Float = 4
        /// A block's part in the running correlation, which is some 100 ms long.
        static let memory: Float = 0.2
        /// Correlations with the reference at which a channel is taken for opposite, and no longer.
        static let opposite: Float = -0.7
        static let agreeing: Float = -0.4
    }

    /// What is known of a channel; energies are mean squares.
    private struct Channel {
        let weight: Float
        /// Of this block, as far as it was looked at: mean square and product with the reference.
        var energy: Float = 0
        var product: Float = 0
        /// The same two as running means.
        var runningEnergy: Float = 0
        var runningProduct: Float = 0
        var level: Float = 0
        var isLive = true
        var isOpposite = false
        /// Whether it is part of the mean.
        var isUsed: Bool
    }

    private var channels: [Channel]
    private(set) var gains: Gains
    /// The gains of the block before, from which this one goes to ``gains`` in a line where `isRamping`.
    private(set) var earlierGains: Gains
    private(set) var isRamping = false
    /// The loudest channel, which the phase of the others is compared with.
    private var reference = 0
    private var wasSilent = true

    init(weights: [Float]) {
        channels = weights.map { Channel(weight: $0, isUsed: $0 > 0) }
        gains = Gains(normalized(weights))
        earlierGains = gains
    }

    /// Looks at a block and sets the gains for it.
    ///
    /// - Parameter block: ``Gains/room(frameCount:channelCount:)`` samples.
    /// - Returns: whether other channels are used than before; nil when the block holds what is infinite or not a number.
    mutating func observe(_ block: Span<Float>, frameCount: Int) -> Bool? {
        isRamping = false
        if channels.count == 2 {
            measurePair(block, frameCount: frameCount)
        } else {
            measure(block, frameCount: frameCount)
        }
        var (loudest, loudestUsed): (Float, Float) = (0, 0)
        for index in channels.indices {
            let energy = channels[index].energy
            guard energy.isFinite else { return nil }
            loudest = max(loudest, energy)
            if channels[index].isUsed { loudestUsed = max(loudestUsed, energy) }
        }
        if loudest < Limit.silence {
            wasSilent = true
            return false
        }
        // A level that has just begun to rise may be silent yet.
        guard followLevels(loudestUsed: loudestUsed) else { return false }
        correlate(block, frameCount: frameCount)
        let changed = decide()
        wasSilent = false
        return changed
    }

    /// Decides which channels carry a signal; false when none does.
    private mutating func followLevels(loudestUsed: Float) -> Bool {
        var channels = channels.mutableSpan
        var (top, topOfAll): (Float, Float) = (0, 0)
        for index in channels.indices {
            let (energy, level) = (channels[index].energy, channels[index].level)
            let risen = energy > level && level > 0 ? level + (energy - level) * Limit.rise : energy
            channels[index].level = max(risen, level * Limit.fall)
            topOfAll = max(topOfAll, channels[index].level)
            if channels[index].weight > 0 { top = max(top, channels[index].level) }
        }
        // Where no channel with a weight carries anything, those without one (low frequency) count too.
        let needsAll = top < Limit.silence
        if needsAll { top = topOfAll }
        if top <= Limit.silence { return false }
        for index in channels.indices {
            let channel = channels[index]
            let isCandidate = channel.weight > 0 || needsAll
            if isCandidate && !channel.isUsed && channel.energy > max(loudestUsed * Limit.dominance, Limit.speech) {
                channels[index].level = max(channel.level, top * Limit.dominant)
            }
            let limit = max(top * (channel.isLive ? Limit.leave : Limit.comeBack), Limit.silence)
            channels[index].isLive = isCandidate && channels[index].level > limit
        }
        return true
    }

    /// Decides which channels are in opposite phase to the loudest.
    private mutating func correlate(_ block: Span<Float>, frameCount: Int) {
        var loudest = reference
        for index in channels.indices where channels[index].isLive {
            if !channels[loudest].isLive || channels[index].level > channels[loudest].level { loudest = index }
        }
        let isNew =
            !channels[reference].isLive || channels[loudest].level > channels[reference].level * Limit.louder
        if isNew { reference = loudest }
        if channels.count > 2 { measure(block, frameCount: frameCount, with: reference) }
        channels[reference].product = channels[reference].energy
        let reference = reference
        var channels = channels.mutableSpan
        for index in channels.indices {
            let part = isNew || channels[index].runningEnergy == 0 ? 1 : Limit.memory
            channels[index].runningProduct += (channels[index].product - channels[index].runningProduct) * part
            channels[index].runningEnergy += (channels[index].energy - channels[index].runningEnergy) * part
        }
        let own = channels[reference].runningEnergy
        for index in channels.indices {
            let scale = (own * channels[index].runningEnergy).squareRoot()
            let limit = channels[index].isOpposite ? Limit.agreeing : Limit.opposite
            channels[index].isOpposite = scale > 0 && channels[index].runningProduct < limit * scale
        }
    }

    /// Takes the mean over other channels where the decisions ask for it.
    private mutating func decide() -> Bool {
        var changed = false
        for index in channels.indices {
            let isUsed = channels[index].isLive && !channels[index].isOpposite
            changed = changed || isUsed != channels[index].isUsed
            channels[index].isUsed = isUsed
        }
        guard changed else { return false }
        // A channel without a weight is used only where none has one; then all have the same.
        let weights = channels.map { $0.isUsed ? max($0.weight, 1e-6) : 0 }
        earlierGains = gains
        gains = Gains(normalized(weights))
        // From silence the new gains hold at once: there is nothing that could jump.
        isRamping = !wasSilent
        return true
    }

    var report: [ChannelReport.Channel] {
        channels.indices.map { index in
            let channel = channels[index]
            let use: ChannelReport.Use =
                if channel.isUsed { .used } else if !channel.isLive { channel.weight > 0 ? .silent : .notChosen } else {
                    .oppositePhase
                }
            return ChannelReport.Channel(use: use, gain: gains[index], level: channel.level.squareRoot())
        }
    }

    /// Of a block some forty groups of four frames in a row are looked at; from each to the next it is this far.
    private func step(_ frameCount: Int) -> Int { max(4, frameCount / 40 & ~3) }

    private mutating func measurePair(_ block: Span<Float>, frameCount: Int) {
        precondition(block.count > 2 * frameCount)
        let step = step(frameCount)
        var groups: Float = 0
        // Each vector holds two frames; times itself one sample later it holds left times right in its even lanes.
        // Two sums each, so that no addition waits for the one before.
        var (squares, products) = (SIMD4<Float>.zero, SIMD4<Float>.zero)
        var (squares2, products2) = (SIMD4<Float>.zero, SIMD4<Float>.zero)
        unsafe block.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            var frame = 0
            while frame &+ 3 < frameCount {
                let at = unsafe start + frame &* 8
                let a = unsafe at.loadUnaligned(as: SIMD4<Float>.self)
                let b = unsafe at.loadUnaligned(fromByteOffset: 16, as: SIMD4<Float>.self)
                squares += a * a
                squares2 += b * b
                unsafe products += a * at.loadUnaligned(fromByteOffset: 4, as: SIMD4<Float>.self)
                unsafe products2 += b * at.loadUnaligned(fromByteOffset: 20, as: SIMD4<Float>.self)
                frame &+= step
                groups += 1
            }
        }
        squares += squares2
        products += products2
        let scale = 0.25 / max(groups, 1)
        channels[0].energy = (squares[0] + squares[2]) * scale
        channels[1].energy = (squares[1] + squares[3]) * scale
        channels[0].product = (products[0] + products[2]) * scale
        channels[1].product = channels[0].product
    }

    /// The mean squares of all channels, or their products with one of them.
    private mutating func measure(_ block: Span<Float>, frameCount: Int, with reference: Int? = nil) {
        let count = channels.count
        precondition(block.count >= Gains.room(frameCount: frameCount, channelCount: count))
        let (step, last) = (step(frameCount), frameCount - 4)
        let scale = 0.25 / Float(max((last + step) / step, 1))
        unsafe block.withUnsafeBufferPointer { block in
            guard let start = block.baseAddress else { return }
            for first in stride(from: 0, to: count, by: 4) {
                var (even, odd) = (SIMD4<Float>.zero, SIMD4<Float>.zero)
                @inline(__always)
                func four(_ frame: Int) -> SIMD4<Float> {
                    unsafe UnsafeRawPointer(start + (frame &* count &+ first)).loadUnaligned(as: SIMD4<Float>.self)
                }
                @inline(__always)
                func product(_ frame: Int, _ reference: Int) -> SIMD4<Float> {
                    unsafe four(frame) * start[frame &* count &+ reference]
                }
                var frame = 0
                if let reference {
                    while frame <= last {
                        even += product(frame, reference) + product(frame &+ 2, reference)
                        odd += product(frame &+ 1, reference) + product(frame &+ 3, reference)
                        frame &+= step
                    }
                } else {
                    while frame <= last {
                        let (a, b, c, d) = (four(frame), four(frame &+ 1), four(frame &+ 2), four(frame &+ 3))
                        even += a * a + c * c
                        odd += b * b + d * d
                        frame &+= step
                    }
                }
                let means = (even + odd) * scale
                for lane in 0..<min(4, count - first) {
                    if reference == nil {
                        channels[first + lane].energy = means[lane]
                    } else {
                        channels[first + lane].product = means[lane]
                    }
                }
            }
        }
    }
}
