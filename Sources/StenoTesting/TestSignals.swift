import Glibc

/// A seeded generator (SplitMix64): the same numbers in every run, so that a failing case can be run again.
public struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Signals of one channel with full scale 1. All allocate.
public enum TestSignals {
    /// `amplitude * sin(2π frequency t)`.
    public static func sine(
        frequency: Double, amplitude: Double = 0.5, sampleRate: Int, frameCount: Int
    ) -> [Float] {
        let step = 2 * Double.pi * frequency / Double(sampleRate)
        return (0..<frameCount).map { Float(amplitude * sin(step * Double($0))) }
    }

    /// White noise, evenly distributed in `-amplitude...amplitude`.
    public static func noise(amplitude: Float = 0.5, frameCount: Int, seed: UInt64) -> [Float] {
        var random = SeededRandom(seed: seed)
        return (0..<frameCount).map { _ in Float.random(in: -amplitude...amplitude, using: &random) }
    }

    /// Something with the range, the pauses and the changing pitch of a voice; no words.
    public static func babble(sampleRate: Int, frameCount: Int) -> [Float] {
        var phase = 0.0
        return (0..<frameCount).map { frame in
            let time = Double(frame) / Double(sampleRate)
            phase += 2 * .pi * (120 + 40 * sin(2 * .pi * 0.7 * time)) / Double(sampleRate)
            let loudness = max(0, sin(2 * .pi * 2.1 * time) + 0.3)
            let harmonics = sin(phase) + 0.6 * sin(5 * phase) + 0.4 * sin(11 * phase) + 0.2 * sin(21 * phase)
            return Float(0.25 * loudness * harmonics)
        }
    }

    /// Zeros, and a one at `position`.
    public static func impulse(at position: Int, frameCount: Int) -> [Float] {
        var signal = [Float](repeating: 0, count: frameCount)
        signal[position] = 1
        return signal
    }
}

/// The sine of a known frequency that fits a signal best by least squares, with a constant beside it.
public struct SineFit: Sendable {
    public let amplitude: Double
    /// The mean that is not part of the sine.
    public let offset: Double
    /// Root mean square of what neither explains: noise, images and distortion.
    public let residual: Double

    /// Signal to noise in dB.
    public var signalToNoise: Double { 20 * log10(amplitude / 2.0.squareRoot() / max(residual, 1e-30)) }

    /// - Parameter frequency: in cycles for each sample, between 0 and 0.5.
    public init(_ signal: some Sequence<Float>, frequency: Double) {
        let signal = signal.map(Double.init)
        let waves = signal.indices.map {
            (cos(2 * .pi * frequency * Double($0)), sin(2 * .pi * frequency * Double($0)))
        }
        // The normal equations of signal = a cos + b sin + c, as rows of [cos, sin, 1 | signal].
        var rows = [[Double]](repeating: [0, 0, 0, 0], count: 3)
        for (sample, wave) in zip(signal, waves) {
            let terms = [wave.0, wave.1, 1, sample]
            for row in 0..<3 { for column in 0..<4 { rows[row][column] += terms[row] * terms[column] } }
        }
        for pivot in 0..<3 {
            for row in 0..<3 where row != pivot {
                let factor = rows[row][pivot] / rows[pivot][pivot]
                for column in 0..<4 { rows[row][column] -= factor * rows[pivot][column] }
            }
        }
        let (a, b, c) = (rows[0][3] / rows[0][0], rows[1][3] / rows[1][1], rows[2][3] / rows[2][2])
        var squares = 0.0
        for (sample, wave) in zip(signal, waves) {
            let error = sample - a * wave.0 - b * wave.1 - c
            squares += error * error
        }
        amplitude = (a * a + b * b).squareRoot()
        offset = c
        residual = (squares / Double(max(signal.count, 1))).squareRoot()
    }
}
