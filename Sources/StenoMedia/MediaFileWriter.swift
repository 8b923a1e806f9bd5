internal import CFFmpeg
internal import Glibc
public import StenoAudio
internal import StenoFiles

/// Writes M4A: AAC, with loss, in an MP4 file that is playable at every moment (law F1).
///
/// While it is written the file is a fragmented MP4; what a killed process leaves lacks at most the last second, and
/// before the first 0.1 s it is no file that a reader opens. ``close()`` makes a plain MP4 of it, with the exact length and
/// without the encoder's delay, in a file beside it that then takes its place: it needs as much room again, and takes
/// as long as copying.
///
/// Takes linear samples (all formats but `muLaw` and `aLaw`), interleaved or planar, in up to 8 channels at the rates of
/// AAC: 7350, 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200 and 96000 Hz. Channels without
/// speakers are given some, none of them for low frequencies, so that each keeps its whole band.
///
/// Not `Sendable`: one thread at a time.
@safe public final class MediaFileWriter: AudioWriter {
    public let format: AudioFormat
    /// Frames that are in the file or in its encoder.
    public private(set) var framesWritten: Int64 = 0

    private let path: String
    private let muxer: Muxer
    private let encoder: Encoder
    private var framesInFile: Int64 = 0
    private var failure: StenoError?
    private var isClosed = false

    /// Makes the file at `path`, or empties the one that is there.
    ///
    /// - Parameter bitRate: Bits for each second; nil for 64,000 for each channel, less below 32 kHz.
    /// - Throws: `fileUnsupported` with what AAC takes, before the file is touched; `fileNotFound`,
    ///   `filePermissionDenied`, `fileIsDirectory`, `diskFull` or `fileWriteFailed`.
    public init(path: String, format: AudioFormat, bitRate: Int? = nil) throws(StenoError) {
        self.path = path
        self.format = format
        encoder = try Encoder(format: format, bitRate: bitRate, name: path)
        muxer = try unsafe encoder.withParameters { (parameters) throws(StenoError) in
            try unsafe Muxer(path: path, parameters: parameters, isFragmented: true)
        }
    }

    deinit { try? close() }

    /// Appends the frames of `buffer`. Blocks for the system; allocates nothing itself, but FFmpeg does.
    ///
    /// - Throws: `invalidArgument` for a buffer in another format than ``format`` and after ``close()``; `diskFull` or
    ///   `fileWriteFailed`, from then on at every call. What was written until then stays readable.
    public func write(_ buffer: AudioBuffer) throws(StenoError) {
        try checkOpen()
        guard buffer.format == format else {
            throw StenoError(
                .invalidArgument, "writing \(quoted(path)): a buffer of \(buffer.format) for a file of \(format)")
        }
        try keepingFailure { () throws(StenoError) in
            try encoder.encode(buffer, into: muxer)
            framesWritten += Int64(buffer.frameCount)
            // The first packet brings the header. Then twice a second, so that a killed recording lacks less than one.
            if encoder.packetCount > 0,
                framesInFile == 0 || framesWritten - framesInFile >= Int64(format.sampleRate / 2)
            {
                framesInFile = framesWritten
                try muxer.flush()
            }
        }
    }

    /// Waits until the disk holds all that has left the encoder. Blocks that long.
    ///
    /// - Throws: As ``write(_:)``.
    public func synchronize() throws(StenoError) {
        try checkOpen()
        try keepingFailure { () throws(StenoError) in
            if encoder.packetCount > 0 { try muxer.flush() }
            muxer.output.synchronize()
            if let number = muxer.output.failure {
                throw .system(number, "writing", path, otherwise: .fileWriteFailed)
            }
        }
    }

    /// Completes the file. A second call does nothing. `deinit` does the same and drops the error.
    ///
    /// - Throws: `diskFull` or `fileWriteFailed`, unless ``write(_:)`` has thrown before. Then the file is still whole
    ///   where all was written, but fragmented.
    public func close() throws(StenoError) {
        if isClosed { return }
        isClosed = true
        if failure != nil {
            muxer.output.close()
            return
        }
        try encoder.finish(into: muxer)
        try muxer.finish()
        try makePlain()
    }

    /// Copies the packets into a file without fragments, which takes the place of this one.
    private func makePlain() throws(StenoError) {
        var status = stat()
        // What goes into a pipe stays as it is.
        guard encoder.packetCount > 0, unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return
        }
        // A link stays a link.
        let resolved = unsafe realpath(path, nil)
        defer { unsafe free(resolved) }
        let target = unsafe resolved.map { unsafe String(cString: $0) } ?? path
        let plain = target + ".closing"
        do throws(StenoError) {
            let demuxer = try Demuxer(input: ByteInput(path: path))
            var allocated = unsafe av_packet_alloc()
            defer { unsafe av_packet_free(&allocated) }
            guard let packet = unsafe allocated else {
                throw StenoError(.insufficientResources, "\(quoted(path)): no memory to complete it")
            }
            let stream = unsafe demuxer.stream(0)
            let muxer = try unsafe Muxer(path: plain, parameters: stream.pointee.codecpar, isFragmented: false)
            let frames = unsafe AVRational(num: 1, den: stream.pointee.codecpar.pointee.sample_rate)
            while unsafe demuxer.read(into: packet) == 0 {
                unsafe av_packet_rescale_ts(packet, stream.pointee.time_base, frames)
                // The last one is padded.
                let left = unsafe framesWritten - packet.pointee.pts
                guard left > 0 else { break }
                unsafe packet.pointee.duration = min(encoder.frameSize, left)
                try unsafe muxer.write(packet)
                unsafe av_packet_unref(packet)
            }
            try muxer.finish()
            guard unsafe rename(plain, target) == 0 else {
                throw .system(errno, "completing", path, otherwise: .fileWriteFailed)
            }
        } catch {
            unsafe _ = unlink(plain)
            throw error
        }
    }

    private func keepingFailure(_ body: () throws(StenoError) -> Void) throws(StenoError) {
        do throws(StenoError) {
            try body()
        } catch {
            failure = error
            throw error
        }
    }

    private func checkOpen() throws(StenoError) {
        if let failure { throw failure }
        if isClosed { throw StenoError(.invalidArgument, "writing \(quoted(path)): the file is closed") }
    }
}

/// AAC, from buffers of any length.
@safe private final class Encoder {
    private(set) var packetCount = 0
    var frameSize: Int64 { unsafe Int64(codec?.pointee.frame_size ?? 0) }
    private let format: AudioFormat
    private let name: String
    private var codec: UnsafeMutablePointer<AVCodecContext>?
    private var converter: OpaquePointer?
    private var frame = unsafe av_frame_alloc()
    private var packet = unsafe av_packet_alloc()
    /// Frames that wait in `frame`.
    private var held = 0
    private var position: Int64 = 0
    /// Samples of 24 bits as FFmpeg takes them, in the upper bits of 32, in the buffer's shape; as many as `frame` holds.
    private var widened: [Int32] = []

    static let sampleRates = [
        7350, 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000,
    ]
    /// Speakers for channels that have none: by count, none of them for low frequencies.
    private static let speakers: [UInt64] = [0x4, 0x3, 0x7, 0x33, 0x37, 0x137, 0x637, 0x737]

    init(format: AudioFormat, bitRate: Int?, name: String) throws(StenoError) {
        _ = ffmpegIsSilent
        self.format = format
        self.name = name
        let channels = format.channelCount
        guard Self.sampleRates.contains(format.sampleRate), channels <= 8,
            let packed = is24Bit ? AV_SAMPLE_FMT_S32 : format.sampleFormat.ffmpegFormat
        else { throw unsupported }
        guard let encoder = unsafe avcodec_find_encoder(AV_CODEC_ID_AAC) else { throw unsupported }
        unsafe codec = avcodec_alloc_context3(encoder)
        guard let codec = unsafe codec, let frame = unsafe frame, unsafe packet != nil else {
            throw StenoError(.insufficientResources, "\(quoted(name)): no memory to encode it")
        }
        let known = UInt64(format.channelLayout.speakers.rawValue)
        unsafe av_channel_layout_from_mask(&codec.pointee.ch_layout, known != 0 ? known : Self.speakers[channels - 1])
        unsafe codec.pointee.sample_rate = Int32(format.sampleRate)
        unsafe codec.pointee.sample_fmt = AV_SAMPLE_FMT_FLTP
        unsafe codec.pointee.time_base = AVRational(num: 1, den: Int32(format.sampleRate))
        unsafe codec.pointee.bit_rate = Int64(bitRate ?? channels * min(64_000, 2 * format.sampleRate))
        unsafe codec.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        unsafe codec.pointee.thread_count = 1
        guard unsafe avcodec_open2(codec, encoder, nil) >= 0 else { throw unsupported }

        if is24Bit { unsafe widened = Array(repeating: 0, count: Int(codec.pointee.frame_size) * channels) }
        unsafe frame.pointee.format = AV_SAMPLE_FMT_FLTP.rawValue
        unsafe frame.pointee.sample_rate = codec.pointee.sample_rate
        unsafe frame.pointee.nb_samples = codec.pointee.frame_size
        var status = unsafe av_channel_layout_copy(&frame.pointee.ch_layout, &codec.pointee.ch_layout)
        if status >= 0 { status = unsafe av_frame_get_buffer(frame, 0) }
        let input = format.isInterleaved ? packed : av_get_planar_sample_fmt(packed)
        if status >= 0 {
            status = unsafe swr_alloc_set_opts2(
                &converter, &codec.pointee.ch_layout, AV_SAMPLE_FMT_FLTP, codec.pointee.sample_rate,
                &codec.pointee.ch_layout, input, codec.pointee.sample_rate, 0, nil)
        }
        if status >= 0 { status = unsafe swr_init(converter) }
        guard status >= 0 else {
            throw .ffmpeg(status, name, "no conversion from \(format)", otherwise: .fileUnsupported)
        }
    }

    deinit {
        unsafe avcodec_free_context(&codec)
        unsafe swr_free(&converter)
        unsafe av_frame_free(&frame)
        unsafe av_packet_free(&packet)
    }

    func withParameters<R>(
        _ body: (UnsafePointer<AVCodecParameters>) throws(StenoError) -> R
    ) throws(StenoError) -> R {
        var parameters = unsafe avcodec_parameters_alloc()
        defer { unsafe avcodec_parameters_free(&parameters) }
        guard let allocated = unsafe parameters,
            unsafe avcodec_parameters_from_context(allocated, codec) >= 0
        else { throw StenoError(.insufficientResources, "\(quoted(name)): no memory to encode it") }
        return try unsafe body(allocated)
    }

    func encode(_ buffer: AudioBuffer, into muxer: Muxer) throws(StenoError) {
        guard let codec = unsafe codec, let frame = unsafe frame else { return }
        let size = unsafe Int(codec.pointee.frame_size)
        let bytes = format.isInterleaved ? format.bytesPerFrame : format.sampleFormat.byteCount
        let plane = format.isInterleaved ? 0 : buffer.frameCapacity * bytes
        var start = 0
        while start < buffer.frameCount {
            // The encoder may still hold what was written last.
            if held == 0 { try check(unsafe av_frame_make_writable(frame)) }
            let count = min(size - held, buffer.frameCount - start)
            let filled = unsafe buffer.withUnsafeBytes { samples in
                if is24Bit {
                    unsafe widen(samples, frames: start..<start + count, capacity: buffer.frameCapacity, stride: size)
                    return unsafe widened.withUnsafeBytes {
                        unsafe fill($0, plane: format.isInterleaved ? 0 : 4 * size, start: 0, count)
                    }
                }
                return unsafe fill(samples, plane: plane, start: start * bytes, count)
            }
            try check(filled)
            start += count
            held += count
            if held == size { try send(into: muxer) }
        }
    }

    private func fill(_ samples: UnsafeRawBufferPointer, plane: Int, start: Int, _ count: Int) -> Int32 {
        unsafe steno_fill(
            converter, frame, Int32(held), samples.assumingMemoryBound(to: UInt8.self).baseAddress, plane, start,
            Int32(count))
    }

    private var is24Bit: Bool { format.sampleFormat == .int24 || format.sampleFormat == .int24in32 }

    /// - Parameters:
    ///   - capacity: frames from one plane of `samples` to the next.
    ///   - stride: the same of ``widened``.
    private func widen(_ samples: UnsafeRawBufferPointer, frames: Range<Int>, capacity: Int, stride: Int) {
        let size = format.sampleFormat.byteCount
        let (planes, width) = format.isInterleaved ? (1, format.channelCount) : (format.channelCount, 1)
        for plane in 0..<planes {
            let first = (plane * capacity + frames.lowerBound) * width
            for index in 0..<frames.count * width {
                let at = (first + index) * size
                unsafe widened[plane * stride + index] =
                    Int32(samples[at]) << 8 | Int32(samples[at + 1]) << 16 | Int32(samples[at + 2]) << 24
            }
        }
    }

    func finish(into muxer: Muxer) throws(StenoError) {
        if held > 0 { try send(into: muxer) }
        try check(unsafe avcodec_send_frame(codec, nil))
        try drain(into: muxer)
    }

    private func send(into muxer: Muxer) throws(StenoError) {
        guard let frame = unsafe frame else { return }
        unsafe frame.pointee.nb_samples = Int32(held)
        unsafe frame.pointee.pts = position
        position += Int64(held)
        held = 0
        try check(unsafe avcodec_send_frame(codec, frame))
        try drain(into: muxer)
    }

    private func drain(into muxer: Muxer) throws(StenoError) {
        guard let packet = unsafe packet else { return }
        while true {
            let status = unsafe avcodec_receive_packet(codec, packet)
            if status == steno_averror(EAGAIN) || status == steno_averror_eof() { return }
            try check(status)
            packetCount += 1
            try unsafe muxer.write(packet)
            unsafe av_packet_unref(packet)
        }
    }

    private func check(_ status: Int32) throws(StenoError) {
        guard status >= 0 else { throw .ffmpeg(status, name, "the encoder fails", otherwise: .fileWriteFailed) }
    }

    private var unsupported: StenoError {
        let rates = Self.sampleRates.map(String.init).joined(separator: ", ")
        return StenoError(
            .fileUnsupported,
            "\(quoted(name)): \(format) for a file that takes linear samples in up to 8 channels at \(rates) Hz")
    }
}
