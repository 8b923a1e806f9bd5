import CSampleRate
public import StenoAudio
public import StenoConversion

/// Resamples with libsamplerate (BSD licence), for those who cannot link libsoxr's LGPL. Slower at the same quality.
public struct SampleRateResamplerFactory: ResamplerFactory {
    /// libsamplerate's band-limited converters. Its linear and zero-order-hold ones are no use for speech.
    public enum Quality: Sendable, Hashable, CaseIterable {
        case fast
        case medium
        case best
    }

    public let quality: Quality

    public init(quality: Quality = .medium) {
        self.quality = quality
    }

    /// - Throws: `unsupportedConversion`; libsamplerate takes ratios from 1/256 to 256.
    public func makeResampler(
        from inputRate: Int, to outputRate: Int, channelCount: Int
    ) throws(StenoError) -> any Resampler {
        try SampleRateResampler(from: inputRate, to: outputRate, channelCount: channelCount, quality: quality)
    }
}

/// Safe: the handle is private, made in `init`, and freed once in `deinit`.
@safe private final class SampleRateResampler: Resampler {
    private let handle: OpaquePointer
    private let channelCount: Int
    private let ratio: Double
    /// Zeros behind the last frame: the last output frames need a full step of input behind them.
    private let padding: [Float]
    private var paddingUsed = 0

    init(
        from inputRate: Int, to outputRate: Int, channelCount: Int, quality: SampleRateResamplerFactory.Quality
    ) throws(StenoError) {
        let ratio = Double(outputRate) / Double(inputRate)
        guard let channels = Int32(exactly: channelCount), channels > 0, src_is_valid_ratio(ratio) != 0 else {
            throw StenoError(
                .unsupportedConversion,
                "libsamplerate cannot convert \(channelCount) channels from \(inputRate) Hz to \(outputRate) Hz; "
                    + "it takes ratios from 1/256 to 256")
        }
        let kind =
            switch quality {
            case .fast: SRC_SINC_FASTEST
            case .medium: SRC_SINC_MEDIUM_QUALITY
            case .best: SRC_SINC_BEST_QUALITY
            }
        var error: Int32 = 0
        guard let handle = unsafe src_new(Int32(kind), channels, &error) else {
            throw Self.failure(.unsupportedConversion, "refused \(inputRate) Hz to \(outputRate) Hz", error)
        }
        unsafe self.handle = handle
        self.channelCount = channelCount
        self.ratio = ratio
        padding = [Float](repeating: 0, count: (inputRate / outputRate + 2) * channelCount)
    }

    deinit { _ = unsafe src_delete(handle) }

    func resample(
        _ input: Span<Float>, into output: inout MutableSpan<Float>
    ) throws(StenoError) -> (consumed: Int, produced: Int) {
        try process(input, isLast: false, into: &output)
    }

    func drain(into output: inout MutableSpan<Float>) throws(StenoError) -> Int {
        let padding = padding
        let rest = padding.span.extracting(droppingFirst: paddingUsed * channelCount)
        let (consumed, produced) = try process(rest, isLast: true, into: &output)
        paddingUsed += consumed
        return produced
    }

    private func process(
        _ input: Span<Float>, isLast: Bool, into output: inout MutableSpan<Float>
    ) throws(StenoError) -> (consumed: Int, produced: Int) {
        if output.isEmpty { return (0, 0) }
        // libsamplerate takes no null pointer, and an empty span may have one.
        var nothing: Float = 0
        var data = unsafe SRC_DATA()
        unsafe data.input_frames = input.count / channelCount
        unsafe data.output_frames = output.count / channelCount
        unsafe data.end_of_input = isLast ? 1 : 0
        unsafe data.src_ratio = ratio
        let error = unsafe withUnsafePointer(to: &nothing) { nothing in
            unsafe input.withUnsafeBufferPointer { input in
                unsafe output.withUnsafeMutableBufferPointer { output in
                    unsafe data.data_in = input.baseAddress ?? nothing
                    unsafe data.data_out = output.baseAddress
                    return unsafe src_process(handle, &data)
                }
            }
        }
        guard error == 0 else { throw Self.failure(.conversionFailed, "failed", error) }
        return unsafe (data.input_frames_used, data.output_frames_gen)
    }

    private static func failure(_ code: StenoError.Code, _ what: String, _ error: Int32) -> StenoError {
        let reason = unsafe src_strerror(error).map { unsafe String(cString: $0) } ?? "no reason"
        return StenoError(code, "libsamplerate \(what): \(reason)", nativeCode: Int(error))
    }
}
