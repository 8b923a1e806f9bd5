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

    public init(
        to outputFormat: AudioFormat, channelPolicy: ChannelPolicy = .automatic, resampler: any ResamplerFactory
    ) {
        self.outputFormat = outputFormat
    }

    /// Frames of ``outputFormat`` that the input so far is worth and that did not come out yet.
    public var heldFrames: Int64 { 0 }

    /// Replaces the content of `output` with all frames that are ready after `input`. Allocates only while `output`
    /// grows to the largest yield.
    ///
    /// - Throws: ``StenoError`` with `unsupportedConversion` or `conversionFailed`; the message names both formats.
    /// - Precondition: `output` is in ``outputFormat``.
    public func convert(_ input: AudioBuffer, into output: inout AudioBuffer) throws(StenoError) {
        preconditionFailure()
    }

    /// Ends the stream: replaces the content of `output` with all that is still held, so that the frames out are
    /// `round(frames in * output rate / input rate)` over everything converted (law T4). A second call yields nothing.
    public func finish(into output: inout AudioBuffer) throws(StenoError) {
        preconditionFailure()
    }
}
