internal import CSndfile
internal import Glibc
public import StenoAudio

/// Reads an audio file, or a pipe, as a stream: whatever libsndfile decodes, and WAV whose header is wrong (law F2).
///
/// The samples come as they are in the file, with nothing lost and nothing converted:
///
/// | in the file | ``format`` |
/// | --- | --- |
/// | PCM up to 16 bits, µ-law, A-law, ADPCM, GSM and the like | `int16`, to which each of them decodes exactly |
/// | PCM of 24 and 32 bits, as FLAC or ALAC too | `int32`, 24 bits in its upper three bytes |
/// | `float` | `float32`, beyond ±1 where the file is |
/// | `double` | `float64` |
/// | MP3, Vorbis, Opus | `float32`, beyond ±1 where the decoder is |
///
/// Samples are interleaved. Channels whose speakers are known come in the order of ``ChannelLayout/Speakers``; those of
/// Ogg files with three to eight channels are put in that order.
///
/// A file is read anywhere and only to the size that it had when it was opened. A pipe is read forward in bounded
/// memory, without a temporary file: at most 16 MiB until its audio is found, then 64 KiB.
/// Opening blocks until the header has come.
///
/// Not `Sendable`: one thread at a time.
@safe public final class AudioFileSource: CaptureStream {
    /// The path, or what the descriptor was called.
    public let name: String
    public let format: AudioFormat
    /// The container, in libsndfile's words: `WAV (Microsoft)`.
    public let container: String
    /// The codec, in libsndfile's words: `Signed 16 bit PCM`.
    public let codec: String
    /// Frames as the file declares them; nil when it does not, or when it can only be guessed (MP3 without a Xing
    /// or VBRI header).
    public let frameCount: Int64?
    /// Frames that were read so far.
    public private(set) var framesRead: Int64 = 0
    /// What is odd about the file, so far: each a `fileWarning`. One that concerns the end comes with the end.
    public private(set) var warnings: [TimelineEvent] = []
    /// The ``warnings``.
    public var events: [TimelineEvent] { warnings }

    private let input: ByteInput
    private let file: OpaquePointer
    /// Bytes of a frame in the file; nil when that varies.
    private let bytesPerFrameInFile: Int?
    private let channels: FileChannels
    private var hasEnded = false

    /// ``frameCount`` as a time.
    public var duration: MediaTime? { frameCount.map { MediaTime(frames: $0, sampleRate: format.sampleRate) } }

    /// Opens a file. The path may hold any character; none has a meaning.
    ///
    /// - Throws: `fileNotFound`, `filePermissionDenied`, `fileIsDirectory`, `fileEmpty`, `fileNotAudio`,
    ///   `fileUnsupported`, `fileDamaged` or `fileReadFailed`. A native code is libsndfile's, or the errno of those
    ///   that concern the system.
    public convenience init(path: String) throws(StenoError) {
        try self.init(input: ByteInput(path: path))
    }

    /// Reads an open descriptor from where it stands, seekable or a pipe: standard input is descriptor 0.
    ///
    /// - Parameters:
    ///   - name: What to call it in messages.
    ///   - closesDescriptor: Whether the descriptor is closed in the end, also when this throws.
    /// - Throws: As ``init(path:)``.
    public convenience init(
        descriptor: Int32, name: String = "standard input", closesDescriptor: Bool = false
    ) throws(StenoError) {
        try self.init(input: ByteInput(descriptor: descriptor, name: name, closesDescriptor: closesDescriptor))
    }

    package init(input: ByteInput) throws(StenoError) {
        self.input = input
        name = input.name
        let start = input.bytes(at: 0, count: 512)
        guard !start.isEmpty || input.failure != nil else {
            throw StenoError(.fileEmpty, "\(quoted(name)) is empty, 0 bytes; expected an audio file")
        }
        let wave = try WaveFile(input: input)
        let declaresLength = Self.hasMPEGLength(input)
        if let wave { input.present(head: wave.head, bodyStart: wave.dataStart, bodyLength: wave.dataLength) }

        var info = SF_INFO()
        var callbacks = inputCallbacks()
        let context = unsafe Unmanaged.passUnretained(input).toOpaque()
        guard let file = unsafe sf_open_virtual(&callbacks, Int32(SFM_READ), &info, context) else {
            throw Self.openingFailed(input: input, wave: wave, start: start)
        }
        unsafe self.file = file
        input.endOpening()

        let type = Int(info.format) & SF_FORMAT_TYPEMASK
        let subtype = Int(info.format) & SF_FORMAT_SUBMASK
        channels = unsafe FileChannels(
            of: file, format: Int(info.format), channelCount: Int(info.channels),
            isVorbisOrdered: subtype != SF_FORMAT_OPUS || Self.hasOpusMappingFamily1(start))
        format = AudioFormat(
            sampleRate: Int(info.samplerate), channelLayout: channels.layout, sampleFormat: Self.sampleFormat(subtype))

        let major = wave.map { $0.hasLongSizes ? SF_FORMAT_RF64 : SF_FORMAT_WAV }
        container = Self.formatName(major ?? type)
        codec = Self.formatName(subtype)
        bytesPerFrameInFile = type == SF_FORMAT_FLAC ? nil : Self.sampleBytes(subtype).map { $0 * Int(info.channels) }
        let isMPEG = (SF_FORMAT_MPEG_LAYER_I...SF_FORMAT_MPEG_LAYER_III).contains(subtype)
        let isGuess = isMPEG && !declaresLength || wave != nil && wave?.dataLength == nil
        // In a pipe libsndfile takes an unknown length for the largest number, or for that many bytes.
        frameCount = info.frames >= 1 << 46 || isGuess ? nil : info.frames
        for warning in wave?.warnings ?? [] { warn(warning) }
    }

    deinit { unsafe sf_close(file) }

    /// Replaces the content of `buffer` with the next frames, at most `buffer.frameCapacity` of them.
    ///
    /// Blocks for the disk. On a pipe it returns what has come, and `nothing` when that is less than a frame for
    /// 100 ms; only in the middle of a compressed packet it waits for the rest. Allocates nothing for PCM once `buffer`
    /// is in ``format``; the decoders of compressed files may.
    ///
    /// - Throws: `fileDamaged` or `fileReadFailed` when not one frame could be read. After real audio the same is a
    ///   warning and the end.
    /// - Precondition: `buffer` has room for a frame.
    public func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead {
        precondition(buffer.frameCapacity > 0, "a buffer without room takes no frames")
        if buffer.format != format { buffer = AudioBuffer(format: format, frameCapacity: buffer.frameCapacity) }
        buffer.removeAll()
        if hasEnded { return .end }
        var wanted = buffer.frameCapacity
        if !input.isSeekable, framesRead < frameCount ?? .max {
            let frameBytes = bytesPerFrameInFile ?? 1
            let ready = input.wait(for: frameBytes, milliseconds: 100) / frameBytes
            if ready == 0, !input.hasEnded { return .nothing }
            if bytesPerFrameInFile != nil { wanted = min(wanted, max(1, ready)) }
        }
        unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe decode(into: bytes, frameCount: wanted)
        }
        framesRead += Int64(buffer.frameCount)
        let code = unsafe sf_error(file)
        if buffer.frameCount == wanted || (buffer.frameCount > 0 && code == 0 && input.failure == nil) {
            return .frames
        }
        hasEnded = true
        if code != 0 || input.failure != nil { try endEarly(code: code) } else { try checkFrames() }
        return buffer.frameCount > 0 ? .frames : .end
    }

    /// Decodes into memory with room for `frameCount` frames and returns how many came.
    private func decode(into bytes: UnsafeMutableRawBufferPointer, frameCount: Int) -> Int {
        switch format.sampleFormat {
        case .int16: unsafe decode(into: bytes.assumingMemoryBound(to: Int16.self), frameCount, sf_readf_short)
        case .int32: unsafe decode(into: bytes.assumingMemoryBound(to: Int32.self), frameCount, sf_readf_int)
        case .float64: unsafe decode(into: bytes.assumingMemoryBound(to: Double.self), frameCount, sf_readf_double)
        default: unsafe decode(into: bytes.assumingMemoryBound(to: Float.self), frameCount, sf_readf_float)
        }
    }

    private func decode<Sample: BitwiseCopyable>(
        into samples: UnsafeMutableBufferPointer<Sample>, _ frameCount: Int,
        _ read: (OpaquePointer?, UnsafeMutablePointer<Sample>?, sf_count_t) -> sf_count_t
    ) -> Int {
        let count = unsafe Int(max(0, read(file, samples.baseAddress, sf_count_t(frameCount))))
        unsafe channels.reorder(.init(rebasing: samples[..<(count * format.channelCount)]))
        return count
    }

    /// An error: the failure of the whole when nothing was read, else the end with a warning.
    private func endEarly(code: Int32) throws(StenoError) {
        let error: StenoError
        if let number = input.failure {
            error = .system(number, "reading", name, otherwise: .fileReadFailed)
        } else {
            let text = unsafe String(cString: sf_error_number(code))
            error = StenoError(.fileDamaged, "\(quoted(name)): \(container), \(codec): \(text)", nativeCode: Int(code))
        }
        guard framesRead > 0 else { throw error }
        warn("the audio ends at a fault: \(error)")
    }

    /// libsndfile takes a file that was cut off in its first frame, or before, for an empty one.
    private func checkFrames() throws(StenoError) {
        guard let frameCount, framesRead < frameCount else { return }
        guard framesRead > 0 else {
            throw StenoError(
                .fileDamaged,
                "\(quoted(name)): \(container) that says \(frameCount) frames and holds none: it was cut off")
        }
        warn("the file says \(frameCount) frames and holds \(framesRead)")
    }

    private func warn(_ detail: String) {
        let now = MediaTime(frames: framesRead, sampleRate: format.sampleRate)
        warnings.append(TimelineEvent(.fileWarning, range: MediaTimeRange(start: now, end: now), detail: detail))
    }
}

// What a file is.
extension AudioFileSource {
    private static func openingFailed(input: ByteInput, wave: WaveFile?, start: [UInt8]) -> StenoError {
        if let number = input.failure { return .system(number, "reading", input.name, otherwise: .fileReadFailed) }
        let code = sf_error(nil)
        let text = unsafe String(cString: sf_strerror(nil))
        let name = quoted(input.name)
        if let wave {
            return StenoError(
                .fileUnsupported,
                "\(name): a WAV file with format tag 0x\(String(wave.tag, radix: 16)) and \(wave.bitsPerSample) bits; "
                    + "libsndfile says: \(text)", nativeCode: Int(code))
        }
        switch Content(head: start) {
        case .notAudio(let what):
            return StenoError(.fileNotAudio, "\(name) is \(what); expected an audio file", nativeCode: Int(code))
        case .unsupported(let what):
            return StenoError(
                .fileUnsupported, "\(name) is \(what); expected what libsndfile reads: WAV, FLAC, MP3, Ogg and more",
                nativeCode: Int(code))
        case .audio(let what):
            return StenoError(.fileDamaged, "\(name): \(what) that cannot be read: \(text)", nativeCode: Int(code))
        }
    }

    private static func sampleFormat(_ subtype: Int) -> SampleFormat {
        switch subtype {
        case SF_FORMAT_PCM_24, SF_FORMAT_PCM_32, SF_FORMAT_DWVW_24, SF_FORMAT_ALAC_20, SF_FORMAT_ALAC_24,
            SF_FORMAT_ALAC_32:
            .int32
        case SF_FORMAT_FLOAT, SF_FORMAT_VORBIS, SF_FORMAT_OPUS, SF_FORMAT_MPEG_LAYER_I, SF_FORMAT_MPEG_LAYER_II,
            SF_FORMAT_MPEG_LAYER_III:
            .float32
        case SF_FORMAT_DOUBLE: .float64
        default: .int16
        }
    }

    private static func sampleBytes(_ subtype: Int) -> Int? {
        switch subtype {
        case SF_FORMAT_PCM_U8, SF_FORMAT_PCM_S8, SF_FORMAT_ULAW, SF_FORMAT_ALAW: 1
        case SF_FORMAT_PCM_16: 2
        case SF_FORMAT_PCM_24: 3
        case SF_FORMAT_PCM_32, SF_FORMAT_FLOAT: 4
        case SF_FORMAT_DOUBLE: 8
        default: nil
        }
    }

    private static func formatName(_ format: Int) -> String {
        var info = unsafe SF_FORMAT_INFO()
        unsafe info.format = Int32(format)
        let size = unsafe Int32(MemoryLayout<SF_FORMAT_INFO>.size)
        let result = unsafe sf_command(nil, Int32(SFC_GET_FORMAT_INFO), &info, size)
        guard result == 0, let name = unsafe info.name else { return "unknown" }
        return unsafe String(cString: name)
    }

    /// Whether the first page of an Opus file says that its channels lie in Vorbis order.
    private static func hasOpusMappingFamily1(_ start: [UInt8]) -> Bool { start.count > 46 && start[46] == 1 }

    /// Whether an MP3 file says how long it is, in its first frame. Without that libsndfile guesses from the size.
    private static func hasMPEGLength(_ input: ByteInput) -> Bool {
        var offset: Int64 = 0
        while true {
            let tag = input.bytes(at: offset, count: 10)
            guard tag.count == 10, tag.starts(with: "ID3".utf8) else { break }
            offset += 10 + tag[6...].reduce(0) { $0 << 7 | Int64($1 & 0x7F) }
        }
        let frame = input.bytes(at: offset, count: 64)
        return ["Xing", "Info", "VBRI"].contains { name in
            frame.indices.contains { frame[$0...].starts(with: name.utf8) }
        }
    }
}
