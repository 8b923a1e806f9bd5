import CAllocationCounter
import StenoAudio
import StenoConversion
import StenoTesting

/// Counts the allocations of this thread so far; nil where a sanitizer does not let us.
var allocationCounter: (() -> Int)? {
    allocation_count_supported() ? { Int(allocation_count_thread()) } : nil
}

extension AudioConverter {
    /// Everything that comes out for these buffers, with the tail.
    func convertAll(_ inputs: [AudioBuffer]) throws -> AudioBuffer {
        var all = AudioBuffer(format: outputFormat, frameCapacity: 0)
        var part = AudioBuffer(format: outputFormat, frameCapacity: 0)
        for input in inputs {
            try convert(input, into: &part)
            all.append(part)
        }
        try finish(into: &part)
        all.append(part)
        return all
    }
}

extension AudioBuffer {
    /// The buffer cut into pieces of random length up to `longest` frames.
    func cut<G: RandomNumberGenerator>(longest: Int, using random: inout G) -> [AudioBuffer] {
        var pieces: [AudioBuffer] = []
        var start = 0
        while start < frameCount {
            let count = min(Int.random(in: 1...longest, using: &random), frameCount - start)
            pieces.append(copy(frames: start..<start + count))
            start += count
        }
        return pieces
    }

    /// One interleaved buffer of channels of the same length.
    init(channels: [[Float]], sampleRate: Int, layout: ChannelLayout? = nil) {
        let samples = channels[0].indices.flatMap { frame in channels.map { $0[frame] } }
        self.init(
            interleaved: samples, sampleRate: sampleRate,
            channelLayout: layout ?? ChannelLayout(channelCount: channels.count))
    }

    /// Random samples of any format: random bytes, but floats within full scale.
    static func noise<G: RandomNumberGenerator>(_ format: AudioFormat, frames: Int, using random: inout G)
        -> AudioBuffer
    {
        var buffer = AudioBuffer(format: format, frameCapacity: frames)
        unsafe buffer.withUnsafeMutableBytes { bytes in
            switch format.sampleFormat {
            case .float32:
                for offset in stride(from: 0, to: bytes.count, by: 4) {
                    let sample = Float.random(in: -1...1, using: &random)
                    unsafe bytes.storeBytes(of: sample, toByteOffset: offset, as: Float.self)
                }
            case .float64:
                for offset in stride(from: 0, to: bytes.count, by: 8) {
                    let sample = Double.random(in: -1...1, using: &random)
                    unsafe bytes.storeBytes(of: sample, toByteOffset: offset, as: Double.self)
                }
            default:
                for i in 0..<bytes.count { unsafe bytes[i] = UInt8(truncatingIfNeeded: random.next()) }
            }
            return frames
        }
        return buffer
    }

    /// The bytes of all frames, plane after plane.
    var content: [UInt8] {
        let planes = format.isInterleaved ? 1 : format.channelCount
        let length = frameCount * format.bytesPerFrame / planes
        let stride = frameCapacity * format.bytesPerFrame / planes
        return unsafe withUnsafeBytes { bytes in
            (0..<planes).flatMap { unsafe Array(bytes[$0 * stride..<$0 * stride + length]) }
        }
    }
}

/// A resampler without delay, cheap enough for thousands of cases: a straight line from frame to frame. It runs ahead
/// of the exact length as far as it can.
struct LinearFactory: ResamplerFactory {
    final class Linear: Resampler {
        private let (inputRate, outputRate, channels): (Int, Int, Int)
        private var before: [Float]
        /// Frames consumed and produced.
        private var (consumed, produced) = (0, 0)

        init(_ inputRate: Int, _ outputRate: Int, _ channels: Int) {
            (self.inputRate, self.outputRate, self.channels) = (inputRate, outputRate, channels)
            before = [Float](repeating: 0, count: channels)
        }

        func resample(
            _ input: Span<Float>, into output: inout MutableSpan<Float>
        ) throws(StenoError) -> (consumed: Int, produced: Int) {
            var (used, made) = (0, 0)
            while true {
                // The next output frame lies in the step that ends with frame `consumed`, or behind it.
                let position = produced * inputRate
                if position <= (consumed - 1) * outputRate {
                    if (made + 1) * channels > output.count { break }
                    write(position, nil, at: made * channels, &output)
                    made += 1
                } else if (used + 1) * channels > input.count {
                    break
                } else if position < consumed * outputRate {
                    if (made + 1) * channels > output.count { break }
                    write(position, input.extracting(droppingFirst: used * channels), at: made * channels, &output)
                    made += 1
                } else {
                    for channel in 0..<channels { before[channel] = input[used * channels + channel] }
                    used += 1
                    consumed += 1
                }
            }
            return (used, made)
        }

        func drain(into output: inout MutableSpan<Float>) throws(StenoError) -> Int {
            var made = 0
            while produced * inputRate < consumed * outputRate && (made + 1) * channels <= output.count {
                write(produced * inputRate, nil, at: made * channels, &output)
                made += 1
            }
            return made
        }

        private func write(_ position: Int, _ next: Span<Float>?, at start: Int, _ output: inout MutableSpan<Float>) {
            let part = next == nil ? 0 : Float(position - (consumed - 1) * outputRate) / Float(outputRate)
            for channel in 0..<channels {
                output[start + channel] = before[channel] + ((next?[channel] ?? 0) - before[channel]) * part
            }
            produced += 1
        }
    }

    func makeResampler(from inputRate: Int, to outputRate: Int, channelCount: Int) throws(StenoError) -> any Resampler {
        Linear(inputRate, outputRate, channelCount)
    }
}
