public import StenoAudio

/// Changes the sample rate of a stream of interleaved `Float` frames.
///
/// What it must keep, and `checkResampler` of StenoTesting tests: the output does not depend on how the input is cut
/// (law T3); its own delay is taken off, so that input frame `n` comes out at `n * outputRate / inputRate`; after
/// ``drain(into:)`` at least `floor(n * outputRate / inputRate)` frames came out for `n` frames in; nothing allocates
/// after the first calls. One stream, one thread at a time.
public protocol Resampler: AnyObject {
    /// Consumes frames from the front of `input` and writes the frames that are ready to the front of `output`.
    ///
    /// Both spans hold whole interleaved frames; the counts are frames. Either may be zero; when both are, the caller
    /// gives more of one. Counts come from what was produced, never from an estimate (law C2).
    func resample(
        _ input: Span<Float>, into output: inout MutableSpan<Float>
    ) throws(StenoError) -> (consumed: Int, produced: Int)

    /// Ends the input and writes what is still held. Called until it returns 0; nothing may be resampled afterwards.
    func drain(into output: inout MutableSpan<Float>) throws(StenoError) -> Int
}

/// Makes a resampler for a pair of rates: the value that an app passes to choose an implementation.
public protocol ResamplerFactory: Sendable {
    /// - Throws: ``StenoError`` with `unsupportedConversion` naming both rates.
    func makeResampler(from inputRate: Int, to outputRate: Int, channelCount: Int) throws(StenoError) -> any Resampler
}

extension StenoError.Code {
    /// No conversion between these formats; the message names both.
    public static let unsupportedConversion = StenoError.Code(rawValue: "conversion.unsupported")
    /// The resampler reported a failure.
    public static let conversionFailed = StenoError.Code(rawValue: "conversion.failed")
}
