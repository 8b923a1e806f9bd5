import CSoxr
public import StenoAudio
public import StenoConversion

/// Resamples with libsoxr (LGPL 2.1) on the caller's thread.
public struct SoxrResamplerFactory: ResamplerFactory {
    /// libsoxr's own recipes.
    public enum Quality: Sendable, Hashable, CaseIterable {
        /// 16 bits: aliases below -96 dB.
        case medium
        /// 20 bits in single precision: aliases below -120 dB.
        case high
        /// 28 bits in double precision.
        case veryHigh
    }

    public let quality: Quality

    public init(quality: Quality = .high) {
        self.quality = quality
    }

    public func makeResampler(
        from inputRate: Int, to outputRate: Int, channelCount: Int
    ) throws(StenoError) -> any Resampler {
        try SoxrResampler(from: inputRate, to: outputRate, channelCount: channelCount, quality: quality)
    }
}

/// Safe: the handle is private, made in `init`, and freed once in `deinit`.
@safe private final class SoxrResampler: Resampler {
    private let handle: soxr_t
    private let channelCount: Int

    init(from inputRate: Int, to outputRate: Int, channelCount: Int, quality: SoxrResamplerFactory.Quality)
        throws(StenoError)
    {
        guard inputRate > 0, outputRate > 0, let channels = UInt32(exactly: channelCount), channels > 0 else {
            throw StenoError(
                .unsupportedConversion,
                "libsoxr cannot convert \(channelCount) channels from \(inputRate) Hz to \(outputRate) Hz")
        }
        let recipe =
            switch quality {
            case .medium: SOXR_16_BITQ
            case .high: SOXR_HQ
            case .veryHigh: SOXR_VHQ
            }
        var format = unsafe soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I)
        var settings = unsafe soxr_quality_spec(UInt(recipe), UInt(SOXR_HI_PREC_CLOCK))
        var runtime = unsafe soxr_runtime_spec(1)
        var error: soxr_error_t?
        let handle = unsafe soxr_create(
            Double(inputRate), Double(outputRate), channels, &error, &format, &settings, &runtime)
        guard unsafe error == nil, let handle = unsafe handle else {
            let reason = unsafe error.map { unsafe String(cString: $0) } ?? "no resampler"
            throw StenoError(
                .unsupportedConversion, "libsoxr refused \(inputRate) Hz to \(outputRate) Hz: \(reason)")
        }
        unsafe self.handle = unsafe handle
        self.channelCount = channelCount
    }

    deinit { unsafe soxr_delete(handle) }

    func resample(
        _ input: Span<Float>, into output: inout MutableSpan<Float>
    ) throws(StenoError) -> (consumed: Int, produced: Int) {
        // libsoxr takes a null input for the end, and an empty span may be null.
        var nothing: Float = 0
        return try unsafe withUnsafePointer(to: &nothing) { (nothing) throws(StenoError) in
            try unsafe input.withUnsafeBufferPointer { (input) throws(StenoError) in
                try unsafe process(input.baseAddress ?? nothing, input.count / channelCount, into: &output)
            }
        }
    }

    func drain(into output: inout MutableSpan<Float>) throws(StenoError) -> Int {
        try unsafe process(nil, 0, into: &output).produced
    }

    private func process(
        _ input: UnsafePointer<Float>?, _ frames: Int, into output: inout MutableSpan<Float>
    ) throws(StenoError) -> (consumed: Int, produced: Int) {
        var (consumed, produced) = (0, 0)
        let error = unsafe output.withUnsafeMutableBufferPointer { output in
            unsafe soxr_process(
                handle, input, frames, &consumed, output.baseAddress, output.count / channelCount, &produced)
        }
        if let error = unsafe error {
            throw StenoError(.conversionFailed, "libsoxr failed: \(unsafe String(cString: error))")
        }
        return (consumed, produced)
    }
}
