/// One gain for each channel, in vectors of four with zeros behind the last channel.
struct Gains {
    let channelCount: Int
    private(set) var vectors: [SIMD4<Float>]

    init(_ gains: [Float]) {
        channelCount = gains.count
        vectors = [SIMD4<Float>](repeating: .zero, count: (gains.count + 3) / 4)
        for channel in gains.indices { self[channel] = gains[channel] }
    }

    subscript(channel: Int) -> Float {
        get { vectors[channel / 4][channel % 4] }
        set { vectors[channel / 4][channel % 4] = newValue }
    }

    /// Frames rounded up to the whole groups that ``mix(_:frameCount:gains:into:)`` works in.
    static func rounded(_ frameCount: Int) -> Int { (frameCount + 7) & ~7 }

    /// Samples that it may read: whole groups, and a vector that starts with the last channel of the last frame.
    static func room(frameCount: Int, channelCount: Int) -> Int { rounded(frameCount) * channelCount + 3 }
}

/// Mixes interleaved frames to one channel.
///
/// Every frame is summed in the same order, so that the result does not depend on how the stream is cut.
/// - Parameter frames: ``Gains/room(frameCount:channelCount:)`` samples.
/// - Parameter output: room for ``Gains/rounded(_:)`` samples.
func mix(_ frames: Span<Float>, frameCount: Int, gains: Gains, into output: inout MutableSpan<Float>) {
    let channels = gains.channelCount
    let count = Gains.rounded(frameCount)
    precondition(frames.count >= Gains.room(frameCount: frameCount, channelCount: channels) && output.count >= count)
    unsafe frames.withUnsafeBufferPointer { frames in
        unsafe output.withUnsafeMutableBufferPointer { output in
            guard let input = frames.baseAddress, let output = output.baseAddress else { return }
            if channels == 2 {
                unsafe mixPairs(input, count, gains[0], gains[1], into: output)
            } else {
                unsafe gains.vectors.withUnsafeBufferPointer { gains in
                    unsafe mixMany(input, count, channels, gains, into: output)
                }
            }
        }
    }
}

/// A plain loop, which the compiler vectorizes better than it keeps shuffles.
private func mixPairs(
    _ input: UnsafePointer<Float>, _ count: Int, _ left: Float, _ right: Float, into output: UnsafeMutablePointer<Float>
) {
    for frame in 0..<count {
        unsafe output[frame] = input[2 &* frame] * left + input[2 &* frame &+ 1] * right
    }
}

private func mixMany(
    _ input: UnsafePointer<Float>, _ count: Int, _ channels: Int, _ gains: UnsafeBufferPointer<SIMD4<Float>>,
    into output: UnsafeMutablePointer<Float>
) {
    let size = channels &* 4
    var frame = 0
    while frame < count {
        // Four sums of four lanes; lanes behind the last channel hold the next frame, at gain 0.
        var (a, b, c, d) = (SIMD4<Float>.zero, SIMD4<Float>.zero, SIMD4<Float>.zero, SIMD4<Float>.zero)
        var at = unsafe UnsafeRawPointer(input + frame &* channels)
        for index in 0..<gains.count {
            let gain = unsafe gains[index]
            unsafe a += at.loadUnaligned(as: SIMD4<Float>.self) * gain
            unsafe b += at.loadUnaligned(fromByteOffset: size, as: SIMD4<Float>.self) * gain
            unsafe c += at.loadUnaligned(fromByteOffset: 2 &* size, as: SIMD4<Float>.self) * gain
            unsafe d += at.loadUnaligned(fromByteOffset: 3 &* size, as: SIMD4<Float>.self) * gain
            unsafe at += 16
        }
        // The sum of the lanes of each, as the lanes of one.
        let ab = SIMD4(a[0], b[0], a[1], b[1]) + SIMD4(a[2], b[2], a[3], b[3])
        let cd = SIMD4(c[0], d[0], c[1], d[1]) + SIMD4(c[2], d[2], c[3], d[3])
        let sums = SIMD4(lowHalf: ab.lowHalf, highHalf: cd.lowHalf) + SIMD4(lowHalf: ab.highHalf, highHalf: cd.highHalf)
        unsafe UnsafeMutableRawPointer(output + frame).storeBytes(of: sums, as: SIMD4<Float>.self)
        frame &+= 4
    }
}

/// Mixes while the gains go in a straight line from one set to another, over the frames of one block.
func mixRamp(
    _ frames: Span<Float>, frameCount: Int, from old: Gains, to new: Gains, into output: inout MutableSpan<Float>
) {
    let channels = new.channelCount
    let step = 1 / Float(frameCount)
    for frame in 0..<frameCount {
        let progress = Float(frame + 1) * step
        var sum: Float = 0
        for channel in 0..<channels {
            sum += frames[frame * channels + channel] * (old[channel] + (new[channel] - old[channel]) * progress)
        }
        output[frame] = sum
    }
}

/// Makes what is not a number 0 and what is infinite full scale, so that neither stays in a filter.
func makeFinite(_ samples: inout MutableSpan<Float>, count: Int) {
    for i in 0..<count where !samples[i].isFinite {
        samples[i] = samples[i].isNaN ? 0 : (samples[i] > 0 ? 1 : -1)
    }
}

/// Whether all samples are finite: then their sum is, unless they are beyond all reason.
func isFinite(_ samples: Span<Float>) -> Bool {
    unsafe samples.withUnsafeBytes { bytes in
        guard let start = bytes.baseAddress else { return true }
        // Enough sums to hide the latency of an addition.
        var (a, b, c, d) = (SIMD8<Float>.zero, SIMD8<Float>.zero, SIMD8<Float>.zero, SIMD8<Float>.zero)
        var at = 0
        while at &+ 128 <= bytes.count {
            unsafe a += start.loadUnaligned(fromByteOffset: at, as: SIMD8<Float>.self)
            unsafe b += start.loadUnaligned(fromByteOffset: at &+ 32, as: SIMD8<Float>.self)
            unsafe c += start.loadUnaligned(fromByteOffset: at &+ 64, as: SIMD8<Float>.self)
            unsafe d += start.loadUnaligned(fromByteOffset: at &+ 96, as: SIMD8<Float>.self)
            at &+= 128
        }
        let eight = (a + b) + (c + d)
        var sum = (eight.lowHalf + eight.highHalf).sum()
        while at < bytes.count {
            unsafe sum += start.loadUnaligned(fromByteOffset: at, as: Float.self)
            at &+= 4
        }
        return sum.isFinite
    }
}
