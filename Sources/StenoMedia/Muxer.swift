internal import CFFmpeg
internal import StenoAudio
internal import StenoFiles

/// An MP4 file with one audio track that is being written.
@safe final class Muxer {
    let output: ByteOutput
    private var context: UnsafeMutablePointer<AVFormatContext>?
    private var io: UnsafeMutablePointer<AVIOContext>?

    /// - Parameter isFragmented: Whether each ``flush()`` leaves a playable file. Else it is one once it is finished.
    init(path: String, parameters: UnsafePointer<AVCodecParameters>, isFragmented: Bool) throws(StenoError) {
        _ = ffmpegIsSilent
        output = try ByteOutput(path: path)
        let opaque = unsafe Unmanaged.passUnretained(output).toOpaque()
        unsafe io = steno_io(1 << 16, 1, opaque, nil, writeOutput, isFragmented ? nil : seekOutput)
        var status = unsafe avformat_alloc_output_context2(&context, nil, "ipod", nil)
        if status >= 0, let context = unsafe context, let io = unsafe io {
            unsafe context.pointee.pb = io
            unsafe context.pointee.flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_BITEXACT
            if let stream = unsafe avformat_new_stream(context, nil) {
                status = unsafe avcodec_parameters_copy(stream.pointee.codecpar, parameters)
                unsafe stream.pointee.codecpar.pointee.codec_tag = 0
                unsafe stream.pointee.time_base = AVRational(num: 1, den: parameters.pointee.sample_rate)
            } else {
                status = steno_averror(ENOMEM)
            }
            var options: OpaquePointer?
            if isFragmented {
                // The header comes with the first packet, which says where the audio begins.
                unsafe av_dict_set(&options, "movflags", "frag_custom+delay_moov+default_base_moof", 0)
            }
            // Lengths are stored in units of this.
            unsafe av_dict_set_int(&options, "movie_timescale", Int64(parameters.pointee.sample_rate), 0)
            if status >= 0 { status = unsafe avformat_write_header(context, &options) }
            unsafe av_dict_free(&options)
        } else if status >= 0 {
            status = steno_averror(ENOMEM)
        }
        try check(status)
    }

    deinit {
        unsafe avformat_free_context(context)
        unsafe steno_io_free(io)
    }

    /// Takes the packet over, with times in frames.
    func write(_ packet: UnsafeMutablePointer<AVPacket>) throws(StenoError) {
        guard let stream = unsafe context?.pointee.streams[0] else { return }
        unsafe packet.pointee.stream_index = 0
        let frames = unsafe AVRational(num: 1, den: stream.pointee.codecpar.pointee.sample_rate)
        unsafe av_packet_rescale_ts(packet, frames, stream.pointee.time_base)
        try check(unsafe av_write_frame(context, packet))
    }

    /// Ends the fragment, and hands everything to the system.
    func flush() throws(StenoError) {
        try check(unsafe av_write_frame(context, nil))
        unsafe avio_flush(io)
        try check(0)
    }

    func finish() throws(StenoError) {
        let status = unsafe av_write_trailer(context)
        unsafe avio_flush(io)
        output.close()
        try check(status)
    }

    private func check(_ status: Int32) throws(StenoError) {
        if let number = output.failure {
            throw .system(number, "writing", output.name, otherwise: .fileWriteFailed)
        }
        guard status >= 0 else { throw .ffmpeg(status, output.name, "writing it fails", otherwise: .fileWriteFailed) }
    }
}

private let writeOutput: @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<UInt8>?, Int32) -> Int32 = {
    let output = unsafe Unmanaged<ByteOutput>.fromOpaque($0.unsafelyUnwrapped).takeUnretainedValue()
    let written = unsafe output.writePacket(UnsafeRawBufferPointer(start: $1, count: Int($2)))
    return written == Int($2) ? $2 : steno_averror(output.failure ?? EIO)
}

private let seekOutput: @convention(c) (UnsafeMutableRawPointer?, Int64, Int32) -> Int64 = {
    let output = unsafe Unmanaged<ByteOutput>.fromOpaque($0.unsafelyUnwrapped).takeUnretainedValue()
    return $2 & AVSEEK_SIZE != 0 ? output.size : output.seek($1, from: $2 & ~AVSEEK_FORCE)
}
