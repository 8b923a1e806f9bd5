import StenoAudio
import StenoConversion

/// A small seeded generator (SplitMix64), so that a failing case can be run again.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
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

    /// Random bytes, which are random samples of any format; floats among them may be anything.
    static func noise<G: RandomNumberGenerator>(_ format: AudioFormat, frames: Int, using random: inout G)
        -> AudioBuffer
    {
        var buffer = AudioBuffer(format: format, frameCapacity: frames)
        unsafe buffer.withUnsafeMutableBytes { bytes in
            switch format.sampleFormat {
            case .float32:
                for i in 0..<bytes.count / 4 {
                    unsafe bytes.storeBytes(
                        of: Float.random(in: -1...1, using: &random), toByteOffset: i * 4, as: Float.self)
                }
            case .float64:
                for i in 0..<bytes.count / 8 {
                    unsafe bytes.storeBytes(
                        of: Double.random(in: -1...1, using: &random), toByteOffset: i * 8, as: Double.self)
                }
            default:
                for i in 0..<bytes.count { unsafe bytes[i] = UInt8.random(in: 0...255, using: &random) }
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
            unsafe (0..<planes).flatMap { unsafe Array(bytes[$0 * stride..<$0 * stride + length]) }
        }
    }
}
