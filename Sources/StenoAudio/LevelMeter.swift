import Synchronization

/// The newest level of each channel, for any number of readers at any time.
final class LevelMeter: Sendable {
    /// Channels beyond these are captured but not metered: the store has a fixed size, so that nobody has to lock.
    static let maximumChannelCount = 64

    private let channelCount = Atomic<Int>(0)
    /// Peak in the upper half, RMS in the lower, as bit patterns: a reader never sees halves of two windows.
    private let packed = InlineArray<64, Atomic<UInt64>> { _ in Atomic(0) }

    var levels: [ChannelLevel] {
        (0..<channelCount.load(ordering: .relaxed)).map { channel in
            let bits = packed[channel].load(ordering: .relaxed)
            return ChannelLevel(
                peak: Float(bitPattern: UInt32(bits >> 32)), rms: Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
        }
    }

    func publish(_ level: ChannelLevel, channel: Int) {
        let bits = UInt64(level.peak.bitPattern) << 32 | UInt64(level.rms.bitPattern)
        packed[channel].store(bits, ordering: .relaxed)
    }

    func setChannelCount(_ count: Int) {
        channelCount.store(min(count, Self.maximumChannelCount), ordering: .relaxed)
        clear()
    }

    /// Nothing is heard while nothing comes.
    func clear() {
        for channel in 0..<channelCount.load(ordering: .relaxed) { packed[channel].store(0, ordering: .relaxed) }
    }
}

/// Measures what the capture thread reads. After the first buffer of a format, nothing allocates.
struct LevelAccumulator {
    private var peaks: [Float] = []
    private var squares: [Float] = []
    private var frameCount = 0

    /// Adds a buffer and publishes each full window of 50 ms. Returns whether every sample is a digital zero.
    mutating func add(_ buffer: borrowing AudioBuffer, to meter: LevelMeter) -> Bool {
        let format = buffer.format
        let channels = min(format.channelCount, LevelMeter.maximumChannelCount)
        if peaks.count != channels {
            peaks = [Float](repeating: 0, count: channels)
            squares = peaks
            frameCount = 0
            meter.setChannelCount(channels)
        }
        let isSilent =
            switch format.sampleFormat {
            case .uint8: unsafe add(buffer, scale: 1 / 128) { unsafe Float(Int($0.load(as: UInt8.self)) - 128) }
            case .int16: unsafe add(buffer, scale: 1 / 32_768) { unsafe Float($0.loadUnaligned(as: Int16.self)) }
            case .int24: unsafe add(buffer, scale: 1 / 8_388_608) { unsafe Float(int24(at: $0)) }
            case .int24in32:
                unsafe add(buffer, scale: 1 / 8_388_608) { unsafe Float(($0.loadUnaligned(as: Int32.self) << 8) >> 8) }
            case .int32: unsafe add(buffer, scale: 1 / 2_147_483_648) { unsafe Float($0.loadUnaligned(as: Int32.self)) }
            case .float32: unsafe add(buffer, scale: 1) { unsafe $0.loadUnaligned(as: Float.self) }
            case .float64: unsafe add(buffer, scale: 1) { unsafe Float($0.loadUnaligned(as: Double.self)) }
            // No back end captures G.711; a stream that does is not metered.
            case .muLaw, .aLaw: false
            }
        frameCount += buffer.frameCount
        if frameCount >= format.sampleRate / 20 {
            for channel in 0..<channels {
                let rms = (squares[channel] / Float(frameCount)).squareRoot()
                meter.publish(ChannelLevel(peak: peaks[channel], rms: rms), channel: channel)
                peaks[channel] = 0
                squares[channel] = 0
            }
            frameCount = 0
        }
        return isSilent
    }

    @inline(__always)
    private mutating func add(
        _ buffer: borrowing AudioBuffer, scale: Float, sample: (UnsafeRawPointer) -> Float
    ) -> Bool {
        let format = buffer.format
        let sampleBytes = format.sampleFormat.byteCount
        let stride = format.isInterleaved ? format.bytesPerFrame : sampleBytes
        let planeBytes = format.isInterleaved ? sampleBytes : buffer.frameCapacity * sampleBytes
        let count = buffer.frameCount
        var isSilent = true
        unsafe buffer.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            for channel in peaks.indices {
                var (peak, sum): (Float, Float) = (0, 0)
                var address = unsafe base + channel * planeBytes
                for _ in 0..<count {
                    let value = unsafe sample(address) * scale
                    peak = max(peak, abs(value))
                    sum += value * value
                    unsafe address += stride
                }
                if peak != 0 { isSilent = false }
                peaks[channel] = max(peaks[channel], peak)
                squares[channel] += sum
            }
        }
        return isSilent
    }
}

private func int24(at address: UnsafeRawPointer) -> Int32 {
    let low = unsafe Int32(address.load(as: UInt8.self))
    let middle = unsafe Int32(address.load(fromByteOffset: 1, as: UInt8.self))
    let high = unsafe Int32(address.load(fromByteOffset: 2, as: Int8.self))
    // In the machine's byte order, which is little-endian on every machine that Swift supports on Linux.
    return high << 16 | middle << 8 | low
}
