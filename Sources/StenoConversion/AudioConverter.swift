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
    /// The first failure; what follows it would not be a continuation, so it is thrown again.
    private var failure: StenoError?

    public init(
        to outputFormat: AudioFormat, channelPolicy: ChannelPolicy = .automatic, resampler: any ResamplerFactory
    ) {
        self.outputFormat = outputFormat
        self.channelPolicy = channelPolicy
        self.factory = resampler
    }

    /// Frames of ``outputFormat`` that the input so far is worth and that did not come out yet.
    public var heldFrames: Int64 {
        guard let end = stretch?.length(adding: 0), let produced = stretch?.produced else { return 0 }
        return end - produced
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
        if stretch?.input != input.format {
            // Made before the old one ends: a format that cannot be converted changes nothing.
            var next = try Stretch(
                from: input.format, to: outputFormat, policy: channelPolicy, factory: factory)
            try finishStretch(into: &output)
            if let position = stretch?.position { next.start(at: position) }
            stretch = consume next
        }
        guard let end = stretch?.length(adding: input.frameCount), let produced = stretch?.produced else { return }
        output.reserveCapacity(output.frameCount + Int(end - produced))
        try write(into: &output) { (bytes, count) throws(StenoError) in
            try unsafe input.withUnsafeBytes { (source) throws(StenoError) in
                try stretch?.convert(
                    unsafe RawSpan(_unsafeBytes: source), frameCount: input.frameCount, capacity: input.frameCapacity,
                    into: &bytes, &count)
            }
        }
    }

    /// Ends the stream: replaces the content of `output` with all that is still held, so that the frames out are
    /// `round(frames in * output rate / input rate)` over everything converted (law T4). A second call yields nothing.
    /// What is converted afterwards is a new stream.
    public func finish(into output: inout AudioBuffer) throws(StenoError) {
        try begin(&output)
        try finishStretch(into: &output)
        stretch = nil
    }

    private func begin(_ output: inout AudioBuffer) throws(StenoError) {
        precondition(
            output.format == outputFormat, "output in \(output.format) given to a converter to \(outputFormat)")
        output.removeAll()
        if let failure { throw failure }
    }

    private func finishStretch(into output: inout AudioBuffer) throws(StenoError) {
        guard let end = stretch?.length(adding: 0), let produced = stretch?.produced else { return }
        output.reserveCapacity(output.frameCount + Int(end - produced))
        try write(into: &output) { (bytes, count) throws(StenoError) in
            try stretch?.finish(into: &bytes, &count)
        }
    }

    /// Lends the storage of `output` for frames behind those that it holds.
    private func write(
        into output: inout AudioBuffer, _ body: (inout MutableRawSpan, inout Int) throws(StenoError) -> Void
    ) throws(StenoError) {
        var count = output.frameCount
        do {
            try unsafe output.withUnsafeMutableBytes { (bytes) throws(StenoError) in
                var span = unsafe MutableRawSpan(_unsafeBytes: bytes)
                try body(&span, &count)
                return count
            }
        } catch {
            let input = stretch?.input.description ?? "nothing"
            let failed = StenoError(
                error.code, "converting \(input) to \(outputFormat): \(error.message)", nativeCode: error.nativeCode)
            failure = failed
            throw failed
        }
    }
}
