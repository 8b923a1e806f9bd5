internal import CFFmpeg
internal import StenoAudio
internal import StenoFiles

/// What FFmpeg's libraries say of a failure.
func ffmpegError(_ code: Int32) -> String {
    var text = [CChar](repeating: 0, count: 128)
    unsafe av_strerror(code, &text, text.count)
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

extension StenoError {
    static func ffmpeg(_ code: Int32, _ name: String, _ what: String, otherwise: Code) -> StenoError {
        StenoError(
            code == steno_averror(ENOMEM) ? .insufficientResources : otherwise,
            "\(quoted(name)): \(what): \(ffmpegError(code))", nativeCode: Int(code))
    }
}

/// FFmpeg prints to standard error unless it is told not to. Once, before anything else is called.
let ffmpegIsSilent: Bool = {
    av_log_set_level(AV_LOG_QUIET)
    return true
}()

extension SampleFormat {
    /// The packed format of the same samples; nil for those that FFmpeg hands out in no shape of ours.
    init?(_ format: AVSampleFormat) {
        switch av_get_packed_sample_fmt(format) {
        case AV_SAMPLE_FMT_U8: self = .uint8
        case AV_SAMPLE_FMT_S16: self = .int16
        case AV_SAMPLE_FMT_S32: self = .int32
        case AV_SAMPLE_FMT_FLT: self = .float32
        case AV_SAMPLE_FMT_DBL: self = .float64
        default: return nil
        }
    }

    var ffmpegFormat: AVSampleFormat? {
        switch self {
        case .uint8: AV_SAMPLE_FMT_U8
        case .int16: AV_SAMPLE_FMT_S16
        case .int32: AV_SAMPLE_FMT_S32
        case .float32: AV_SAMPLE_FMT_FLT
        case .float64: AV_SAMPLE_FMT_DBL
        case .int24, .int24in32, .muLaw, .aLaw: nil
        }
    }
}

extension ChannelLayout {
    /// FFmpeg's channels have the order and, up to the eighteenth, the bits of ``Speakers``.
    init?(_ layout: AVChannelLayout) {
        let count = unsafe Int(layout.nb_channels)
        guard (1...64).contains(count) else { return nil }
        let mask = unsafe layout.order == AV_CHANNEL_ORDER_NATIVE ? layout.u.mask : 0
        if mask != 0, mask < 1 << 18, let known = ChannelLayout(speakers: .init(rawValue: UInt32(mask))) {
            self = known
        } else {
            self = ChannelLayout(channelCount: count)
        }
    }
}
