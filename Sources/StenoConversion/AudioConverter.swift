public import StenoAudio

/// How the channels of a source become the channels of the output.
public enum ChannelPolicy: Sendable, Hashable {
    /// The weighted mean over the channels that carry a signal; a channel in opposite phase to the loudest is left out.
    case automatic
    /// The weighted mean over all channels, whatever they carry.
    case mean
    /// One channel of the source, counted from 0.
    case channel(Int)
}

/// Converts a stream of audio to one format: mixes channels, changes the rate, changes the sample format.
///
/// The converter owns its state (law C1): nothing is lost between calls, however the stream is cut, and a change of the
/// input's format in mid-stream drains what the old format left and goes on. One thread at a time.
public final class AudioConverter {
    public let outputFormat: AudioFormat
    private let channelPolicy: ChannelPolicy
    private let factory: any ResamplerFactory
    private var stretch: Stretch?
    /// Of earlier stretches.
    private var changes: [ChannelChange] = []
    /// The first failure; what follows it would not be a continuation, so it is thrown again.
    private var failure: StenoError?

    public init(
        to outputFormat: AudioFormat, channelPolicy: ChannelPolicy = .automatic, resampler: any ResamplerFactory
    ) {
        self.outputFormat = outputFormat
        self.channelPolicy = channelPolicy
        self.factory = resampler
    }

    /// Replaces the content of `output` with all frames that are ready after `input`. Allocates only while `output`
    /// grows to the largest yield, and when the input's format changes.
    ///
    /// - Throws: ``StenoError`` with `unsupportedConversion`, `invalidArgument` (a channel that is not there) or
    ///   `conversionFailed`; the message names both formats. After the first two the converter is as it was before;
    ///   after the last one every call throws it again.
    /// - Precondition: `output` is in ``outputFormat``.
    public func convert(_ input: AudioBuffer, into output: inout AudioBuffer) throws(StenoError) {
        try begin(&output)
        if input.frameCount == 0 { return }
        let stretch = try stretch(for: input.format, &output)
        reserve(stretch.length(adding: input.frameCount) - stretch.produced, in: &output)
        try write(stretch, into: &output) { (bytes, count) throws(StenoError) in
            try unsafe input.withUnsafeBytes { (source) throws(StenoError) in
                try stretch.convert(
                    unsafe RawSpan(_unsafeBytes: source), frameCount: input.frameCount, capacity: input.frameCapacity,
                    into: &bytes, &count)
            }
        }
    }

    /// The stretch that the format belongs to; a new one ends the one before.
    private func stretch(for input: AudioFormat, _ output: inout AudioBuffer) throws(StenoError) -> Stretch {
        if let stretch, stretch.input == input { return stretch }
        // Made before the old one ends: a format that cannot be converted changes nothing.
        let next = try Stretch(from: input, to: outputFormat, policy: channelPolicy, factory: factory)
        if let stretch {
            try finish(stretch, into: &output)
            next.start(at: stretch.position)
        }
        stretch = next
        return next
    }

    /// Ends the stream: replaces the content of `output` with all that is still held, so that the frames out are
    /// `round(frames in * output rate / input rate)` over everything converted (law T4). A second call yields nothing.
    /// What is converted afterwards is a new stream.
    public func finish(into output: inout AudioBuffer) throws(StenoError) {
        try begin(&output)
        guard let stretch else { return }
        try finish(stretch, into: &output)
        self.stretch = nil
    }

    /// Frames of ``outputFormat`` that the input so far is worth and that did not come out yet: what ``finish(into:)``
    /// would bring. The filter's delay, and less than 20 ms while channels are chosen automatically.
    public var heldFrames: Int64 {
        guard let stretch else { return 0 }
        return stretch.length(adding: 0) - stretch.produced
    }

    /// What is done with the channels now; nil before the first frames. Allocates.
    public var channelReport: ChannelReport? { stretch?.report }

    /// The changes in the use of channels since the last call, in the order of their frames (law C3). A stream starts
    /// with all channels that the layout gives a weight; of changes that nobody takes the latest 256 are kept.
    public func takeChannelChanges() -> [ChannelChange] {
        let all = changes + (stretch?.takeChanges() ?? [])
        changes = []
        return all
    }

    private func begin(_ output: inout AudioBuffer) throws(StenoError) {
        precondition(
            output.format == outputFormat, "output in \(output.format) given to a converter to \(outputFormat)")
        output.removeAll()
        if let failure { throw failure }
    }

    private func finish(_ stretch: Stretch, into output: inout AudioBuffer) throws(StenoError) {
        reserve(stretch.length(adding: 0) - stretch.produced, in: &output)
        try write(stretch, into: &output) { (bytes, count) throws(StenoError) in
            try stretch.finish(into: &bytes, &count)
        }
        changes = Array((changes + stretch.takeChanges()).suffix(Stretch.keptChanges))
    }

    /// Makes room for the most that can come; in steps, so that a yield that wanders does not grow it again and again.
    private func reserve(_ frames: Int64, in output: inout AudioBuffer) {
        let needed = output.frameCount + Int(frames)
        if needed > output.frameCapacity { output.reserveCapacity((needed | 1023) + 1) }
    }

    /// Lends the storage of `output` for frames behind those that it holds.
    private func write(
        _ stretch: Stretch, into output: inout AudioBuffer,
        _ body: (inout MutableRawSpan, inout Int) throws(StenoError) -> Void
    ) throws(StenoError) {
        var count = output.frameCount
        do {
            try unsafe output.withUnsafeMutableBytes { (bytes) throws(StenoError) in
                var span = unsafe MutableRawSpan(_unsafeBytes: bytes)
                try body(&span, &count)
                return count
            }
        } catch {
            let failed = StenoError(
                error.code, "converting \(stretch.input) to \(outputFormat): \(error.message)",
                nativeCode: error.nativeCode)
            failure = failed
            throw failed
        }
    }
}
