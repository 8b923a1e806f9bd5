import Glibc
public import StenoAudio
public import StenoConversion

/// What `checkResampler` asks for. The defaults are what speech recognition at 16 bits needs.
public struct ResamplerLimits: Sendable {
    /// The part of the lower of the two Nyquist frequencies that must pass.
    public var passBand = 0.9
    /// The largest deviation of a passing sine's level, in dB.
    public var ripple = 0.1
    /// The part of the lower Nyquist frequency from which on sines must be gone.
    public var stopBand = 1.05
    /// How far below the sine its aliases and images must be, in dB.
    public var rejection = 100.0
    /// How far a constant may be off, relative to it.
    public var constantError = 1e-4

    public init() {}
}

/// A law that a resampler broke.
public struct ResamplerViolation: Sendable, CustomStringConvertible {
    /// In a word: `chunking`, `length`, `impulse`, `passBand`, `stopBand`, `constant`, `allocation`.
    public let law: String
    /// What was expected and what was found.
    public let text: String

    public var description: String { "\(law): \(text)" }
}

/// Tests that a resampler keeps what ``Resampler`` promises, from one rate to another. Takes about a second.
///
/// - Parameter countAllocations: the allocations of this thread so far; nil leaves that law out.
/// - Returns: every broken law; empty for a good resampler.
/// - Throws: what the factory and the resampler throw.
public func checkResampler(
    _ factory: any ResamplerFactory, from inputRate: Int, to outputRate: Int, channelCount: Int = 1,
    limits: ResamplerLimits = ResamplerLimits(), countAllocations: (() -> Int)? = nil
) throws(StenoError) -> [ResamplerViolation] {
    var check = ResamplerCheck(
        factory: factory, inputRate: inputRate, outputRate: outputRate, channelCount: channelCount, limits: limits)
    try check.chunking()
    try check.length()
    try check.impulses()
    try check.passBand()
    try check.stopBand()
    try check.constant()
    if let countAllocations { try check.allocation(countAllocations) }
    return check.violations
}

private struct ResamplerCheck {
    let factory: any ResamplerFactory
    let inputRate: Int
    let outputRate: Int
    let channelCount: Int
    let limits: ResamplerLimits
    var violations: [ResamplerViolation] = []

    var ratio: Double { Double(outputRate) / Double(inputRate) }
    var nyquist: Double { Double(min(inputRate, outputRate)) / 2 }

    init(
        factory: any ResamplerFactory, inputRate: Int, outputRate: Int, channelCount: Int, limits: ResamplerLimits
    ) {
        self.factory = factory
        self.inputRate = inputRate
        self.outputRate = outputRate
        self.channelCount = channelCount
        self.limits = limits
    }

    mutating func expect(_ condition: Bool, _ law: String, _ text: @autoclosure () -> String) {
        if !condition { violations.append(ResamplerViolation(law: law, text: text())) }
    }

    /// The signal through a new resampler, the same in every channel but for its sign; the first channel comes back,
    /// all of them when `interleaved`.
    func convert(
        _ signal: [Float], interleaved: Bool = false, inputCut: () -> Int = { 4096 }, outputCut: () -> Int = { 4096 }
    ) throws(StenoError) -> [Float] {
        let resampler = try factory.makeResampler(from: inputRate, to: outputRate, channelCount: channelCount)
        let input = signal.flatMap { sample in (0..<channelCount).map { $0.isMultiple(of: 2) ? sample : -sample } }
        var output: [Float] = []
        var room = [Float](repeating: 0, count: 4096 * channelCount)
        var start = 0
        var idle = 0
        while start < signal.count && idle < 2 {
            let end = min(start + inputCut(), signal.count)
            let frames = input.span.extracting(start * channelCount..<end * channelCount)
            var all = room.mutableSpan
            var span = all._mutatingExtracting(first: outputCut() * channelCount)
            let (consumed, produced) = try resampler.resample(frames, into: &span)
            output += room[..<(produced * channelCount)]
            start += consumed
            idle = consumed == 0 && produced == 0 ? idle + 1 : 0
        }
        while true {
            var all = room.mutableSpan
            var span = all._mutatingExtracting(first: outputCut() * channelCount)
            let produced = try resampler.drain(into: &span)
            if produced == 0 { break }
            output += room[..<(produced * channelCount)]
        }
        return interleaved ? output : stride(from: 0, to: output.count, by: channelCount).map { output[$0] }
    }

    /// The middle of what a sine becomes, where the filter is full.
    func middle(_ frequency: Double) throws(StenoError) -> ArraySlice<Float> {
        let frames = max(4000, inputRate / 5)
        let output = try convert(
            TestSignals.sine(frequency: frequency, amplitude: 0.5, sampleRate: inputRate, frameCount: frames))
        return output[(output.count / 4)..<(output.count * 3 / 4)]
    }

    mutating func chunking() throws(StenoError) {
        let signal = TestSignals.noise(frameCount: 5000, seed: 1)
        let whole = try convert(signal, interleaved: true)
        var random = SeededRandom(seed: 2)
        for longest in [1, 7, 480, 4000] {
            let cut = try convert(
                signal, interleaved: true, inputCut: { Int.random(in: 1...longest, using: &random) },
                outputCut: { [1, 160, 4096][min(longest / 7, 2)] })
            let same = cut.count == whole.count && zip(cut, whole).allSatisfy { $0.bitPattern == $1.bitPattern }
            expect(
                same, "chunking", "cut into up to \(longest) frames, \(cut.count) samples differ from \(whole.count)")
        }
    }

    mutating func length() throws(StenoError) {
        for frames in [0, 1, 2, 11, 1000, 4801] {
            let output = try convert(TestSignals.noise(frameCount: frames, seed: 3))
            let least = frames * outputRate / inputRate
            expect(output.count >= least, "length", "\(frames) frames gave \(output.count), at least \(least) expected")
        }
    }

    mutating func impulses() throws(StenoError) {
        // Wide enough to be seen at the lower rate.
        let width = max(1, inputRate / outputRate)
        let frames = 6000
        for position in [3000, frames - 10 - width / 2] {
            var signal = [Float](repeating: 0, count: frames)
            for offset in 0..<width { signal[position - width / 2 + offset] = 1 }
            let output = try convert(signal)
            let expected = (Double(position) - (width.isMultiple(of: 2) ? 0.5 : 0)) * ratio
            let peak = output.indices.max { abs(output[$0]) < abs(output[$1]) } ?? 0
            expect(
                abs(Double(peak) - expected) <= 1, "impulse",
                "an impulse at frame \(position) of \(frames) came out at \(peak), expected at \(expected)")
            let height = output.isEmpty ? 0 : output[peak]
            expect(
                height > 0.3, "impulse", "an impulse at frame \(position) of \(frames) came out with height \(height)")
        }
    }

    mutating func passBand() throws(StenoError) {
        for part in [0.01, 0.1, 0.3, 0.5, 0.7, 0.85, 1] {
            let frequency = part * limits.passBand * nyquist
            let fit = SineFit(try middle(frequency), frequency: frequency / Double(outputRate))
            let level = 20 * log10(fit.amplitude / 0.5)
            expect(abs(level) <= limits.ripple, "passBand", "\(frequency) Hz came out at \(level) dB")
            let images = 20 * log10(fit.residual / (0.5 / 2.0.squareRoot()))
            expect(images <= -limits.rejection, "stopBand", "\(frequency) Hz came out with images at \(images) dB")
        }
    }

    mutating func stopBand() throws(StenoError) {
        guard outputRate < inputRate else { return }
        let (low, high) = (limits.stopBand * nyquist, Double(inputRate) / 2)
        guard low < high else { return }
        for part in [0, 0.1, 0.25, 0.5, 0.75, 0.95] {
            let frequency = low + part * (high - low)
            let output = try middle(frequency)
            let power = output.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(max(output.count, 1))
            let level = 10 * log10(max(power, 1e-30) / 0.125)
            expect(level <= -limits.rejection, "stopBand", "\(frequency) Hz came out as an alias at \(level) dB")
        }
    }

    mutating func constant() throws(StenoError) {
        let output = try convert([Float](repeating: 0.5, count: max(4000, inputRate / 5)))
        let worst = output[(output.count / 4)..<(output.count * 3 / 4)].map { abs(Double($0) - 0.5) * 2 }.max() ?? 0
        expect(worst <= limits.constantError, "constant", "a constant came out with an error of \(worst)")
        let silence = try convert([Float](repeating: 0, count: 4000))
        expect(silence.allSatisfy { $0 == 0 }, "constant", "silence came out as something else")
    }

    mutating func allocation(_ count: () -> Int) throws(StenoError) {
        let resampler = try factory.makeResampler(from: inputRate, to: outputRate, channelCount: channelCount)
        let input = TestSignals.noise(frameCount: inputRate / 100 * channelCount, seed: 4)
        var room = [Float](repeating: 0, count: (outputRate / 50 + 8192) * channelCount)
        func second() throws(StenoError) {
            for _ in 0..<100 {
                var output = room.mutableSpan
                _ = try resampler.resample(input.span, into: &output)
            }
        }
        for _ in 0..<2 { try second() }
        let before = count()
        try second()
        let allocations = count() - before
        expect(allocations == 0, "allocation", "\(allocations) allocations in a second of buffers of 10 ms")
    }
}
