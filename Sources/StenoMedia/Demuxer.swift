internal import CFFmpeg
internal import StenoAudio
internal import StenoFiles

/// A container, open, of which packets can be read. One thread at a time.
@safe final class Demuxer {
    let input: ByteInput
    private(set) var context: UnsafeMutablePointer<AVFormatContext>?
    private var io: UnsafeMutablePointer<AVIOContext>?
    /// Frames of each stream by its header, before FFmpeg estimates what the header does not say.
    private(set) var headerDurations: [Int64] = []

    /// Finds the container by its content alone. A file that names others, as a playlist does, gets none of them.
    init(input: ByteInput) throws(StenoError) {
        self.input = input
        _ = ffmpegIsSilent
        input.present(head: [], bodyStart: 0, bodyLength: input.available(from: 0))
        input.endOpening()
        let opaque = unsafe Unmanaged.passUnretained(input).toOpaque()
        unsafe io = steno_io(1 << 15, 0, opaque, readInput, nil, input.isSeekable ? seekInput : nil)
        unsafe context = avformat_alloc_context()
        guard let io = unsafe io, let context = unsafe context else {
            throw StenoError(.insufficientResources, "\(quoted(input.name)): no memory to open it")
        }
        unsafe context.pointee.pb = io
        unsafe context.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
        unsafe steno_refuse_other_files(context)
        var kind: UnsafePointer<AVInputFormat>?
        let score = unsafe av_probe_input_buffer2(io, &kind, "", nil, 0, 0)
        // A lower score is a guess from a few bytes.
        guard score > AVPROBE_SCORE_MAX / 4 else {
            throw input.failure.map { .system($0, "reading", input.name, otherwise: .fileReadFailed) }
                ?? StenoError(
                    .fileNotAudio, "\(quoted(input.name)) is data of an unknown kind; expected an audio file",
                    nativeCode: Int(score))
        }
        // Frees the context when it fails.
        var status = unsafe avformat_open_input(&self.context, nil, kind, nil)
        if status >= 0, let context = unsafe self.context {
            headerDurations = unsafe (0..<Int(context.pointee.nb_streams)).map { unsafe stream($0).pointee.duration }
            status = unsafe avformat_find_stream_info(context, nil)
        }
        guard status >= 0 else {
            if let number = input.failure { throw .system(number, "reading", input.name, otherwise: .fileReadFailed) }
            let what = unsafe kind.map { unsafe String(cString: $0.pointee.long_name) } ?? "audio"
            let hint = unsafe isFragile(kind) ? " (its index may be missing, as in a recording that was cut off)" : ""
            throw .ffmpeg(status, input.name, "\(what) that cannot be read\(hint)", otherwise: .fileDamaged)
        }
    }

    deinit {
        unsafe avformat_close_input(&context)
        unsafe steno_io_free(io)
    }

    func stream(_ index: Int) -> UnsafeMutablePointer<AVStream> {
        // Both exist once `init` has returned, for indices below `nb_streams`.
        unsafe context.unsafelyUnwrapped.pointee.streams[index].unsafelyUnwrapped
    }

    var isQuickTime: Bool { unsafe isFragile(UnsafePointer(context?.pointee.iformat)) }

    /// Bytes that lie ready for ``read(into:)``.
    var bufferedCount: Int { unsafe io.map { unsafe steno_io_buffered($0) } ?? 0 }

    /// The next packet of any stream: 0, or FFmpeg's error.
    func read(into packet: UnsafeMutablePointer<AVPacket>) -> Int32 { unsafe av_read_frame(context, packet) }
}

/// Whether nothing can be read without an index that may lie at the end: MP4, QuickTime and their like.
private func isFragile(_ format: UnsafePointer<AVInputFormat>?) -> Bool {
    unsafe format.map { unsafe String(cString: $0.pointee.name).contains("mp4") } ?? false
}

private let readInput: @convention(c) (UnsafeMutableRawPointer?, UnsafeMutablePointer<UInt8>?, Int32) -> Int32 = {
    let input = unsafe Unmanaged<ByteInput>.fromOpaque($0.unsafelyUnwrapped).takeUnretainedValue()
    // A pipe gives what it has; where it has nothing, the first byte is waited for.
    var count = Int($2)
    if !input.isSeekable { count = min(count, max(1, input.wait(for: 1, milliseconds: 100))) }
    let done = unsafe input.read(into: UnsafeMutableRawBufferPointer(start: $1, count: count))
    if done > 0 { return Int32(done) }
    return input.failure.map { steno_averror($0) } ?? steno_averror_eof()
}

private let seekInput: @convention(c) (UnsafeMutableRawPointer?, Int64, Int32) -> Int64 = {
    let input = unsafe Unmanaged<ByteInput>.fromOpaque($0.unsafelyUnwrapped).takeUnretainedValue()
    return $2 & AVSEEK_SIZE != 0 ? input.totalLength : input.seek($1, from: $2 & ~AVSEEK_FORCE)
}
