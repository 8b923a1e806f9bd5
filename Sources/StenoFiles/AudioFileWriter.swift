internal import CSndfile
internal import Glibc
public import StenoAudio

#if !_endian(little)
#error("WAV is little-endian, and its samples are written as they lie in memory")
#endif

/// Writes audio to a file that is playable at every moment (law F1).
///
/// | type | sample formats | of a killed process stays |
/// | --- | --- | --- |
/// | `wav` | all, as they are; `int24in32` in three bytes | what was written; the header counts all but half a second |
/// | `flac` | `uint8`, `int16`, `int24`, `int24in32`; up to 8 channels | all but the last 4096 frames |
/// | `oggOpus` | all linear ones, with loss; mono, stereo at 8, 12, 16, 24, 48 kHz | all but the last half second |
///
/// No sample is changed on its way to `wav` and `flac`. A WAV file becomes RF64 in place once 32 bits no longer hold
/// its size. Everything goes to the system before ``write(_:)`` returns; only ``synchronize()`` waits for the disk,
/// because that can take longer than a recorder has. An `oggOpus` file without a page of audio is one that no reader
/// opens.
///
/// Not `Sendable`: one thread at a time.
@safe public final class AudioFileWriter: AudioWriter {
    public enum FileType: String, Sendable, CaseIterable {
        case wav
        case flac
        case oggOpus
    }

    public let type: FileType
    public let format: AudioFormat
    /// Frames that are in the file or in its encoder.
    public internal(set) var framesWritten: Int64 = 0

    /// Where the plain samples of a WAV file begin, and their format, for those who read back what was written; nil for
    /// the compressed types.
    package var plainAudio: (offset: Int64, format: AudioFormat)? {
        type == .wav ? (Int64(head.bytes.count), stored) : nil
    }

    private let output: ByteOutput
    /// Nil for WAV, which needs no encoder.
    private var encoder: OpaquePointer?
    /// The samples that the file or its encoder takes.
    private let stored: AudioFormat
    /// Frames on their way from ``format`` to ``stored``.
    private var scratch: AudioBuffer
    private var head: WaveHead
    private var framesInHead: Int64 = 0
    private var failure: StenoError?
    private var isClosed = false

    /// Makes the file at `path`, or empties the one that is there, and writes its header.
    ///
    /// - Throws: `fileUnsupported` with what the type takes, before the file is touched; `fileNotFound`,
    ///   `filePermissionDenied`, `fileIsDirectory`, `diskFull` or `fileWriteFailed`.
    public init(path: String, type: FileType, format: AudioFormat) throws(StenoError) {
        guard let stored = type.storedFormat(of: format) else {
            throw StenoError(.fileUnsupported, "\(quoted(path)): \(format) for a file that takes \(type.accepted)")
        }
        self.type = type
        self.format = format
        self.stored = stored
        scratch = AudioBuffer(format: stored, frameCapacity: stored == format ? 0 : 4096)
        head = WaveHead(format: stored.waveFormatChunk, hasFact: !stored.sampleFormat.isInteger)
        output = try ByteOutput(path: path)
        if type == .wav { updateHead() } else { try openEncoder() }
        if let number = output.failure { throw .system(number, "writing", path, otherwise: .fileWriteFailed) }
    }

    deinit { try? close() }

    /// Appends the frames of `buffer`. Blocks for the system; allocates nothing, though an encoder may.
    ///
    /// - Throws: `invalidArgument` for a buffer in another format than ``format`` and after ``close()``; `diskFull` or
    ///   `fileWriteFailed`, from then on at every call. What was written until then stays readable.
    public func write(_ buffer: AudioBuffer) throws(StenoError) {
        try checkOpen()
        guard buffer.format == format else {
            throw StenoError(
                .invalidArgument, "writing \(quoted(output.name)): a buffer of \(buffer.format) for a file of \(format)"
            )
        }
        if stored == format { return try store(buffer) }
        for start in stride(from: 0, to: buffer.frameCount, by: scratch.frameCapacity) {
            rearrange(buffer, frames: start..<min(start + scratch.frameCapacity, buffer.frameCount))
            try store(scratch)
        }
    }

    /// Brings the header up to date and waits until the disk holds all that has left the encoder. Blocks that long.
    ///
    /// - Throws: As ``write(_:)``.
    public func synchronize() throws(StenoError) {
        try checkOpen()
        if type == .wav { updateHead() }
        output.synchronize()
        try checkOutput(encoderCode: 0)
    }

    /// Completes the file. A second call does nothing. `deinit` does the same and drops the error.
    ///
    /// - Throws: `diskFull` or `fileWriteFailed`, unless ``write(_:)`` has thrown before.
    public func close() throws(StenoError) {
        if isClosed { return }
        isClosed = true
        var code: Int32 = 0
        if let encoder = unsafe encoder {
            code = unsafe sf_close(encoder)
        } else if type == .wav {
            if !dataLength.isMultiple(of: 2) { output.write([0], at: Int64(head.bytes.count) + dataLength) }
            updateHead()
        }
        output.close()
        if failure == nil { try checkOutput(encoderCode: code) }
    }

    /// Bytes of audio in a WAV file.
    private var dataLength: Int64 { framesWritten * Int64(stored.bytesPerFrame) }

    /// Appends frames of the format ``stored``.
    private func store(_ buffer: AudioBuffer) throws(StenoError) {
        if let encoder = unsafe encoder {
            let count = buffer.frameCount
            let written = unsafe buffer.withUnsafeBytes {
                unsafe Self.encode($0, frameCount: count, as: stored, with: encoder)
            }
            try checkOutput(encoderCode: written == count ? 0 : max(1, unsafe sf_error(encoder)))
            framesWritten += written
            return
        }
        let written = unsafe buffer.withUnsafeBytes { bytes in
            unsafe output.write(
                .init(rebasing: bytes[..<(buffer.frameCount * stored.bytesPerFrame)]),
                at: Int64(head.bytes.count) + dataLength)
        }
        framesWritten += Int64(written / stored.bytesPerFrame)
        // Half a frame at the end of a full disk is no audio.
        if output.failure != nil { output.truncate(to: Int64(head.bytes.count) + dataLength) }
        // Twice a second, so that what a killed recording lacks stays under a second.
        if output.failure != nil || framesWritten - framesInHead >= format.sampleRate / 2 { updateHead() }
        try checkOutput(encoderCode: 0)
    }

    private static func encode(
        _ bytes: UnsafeRawBufferPointer, frameCount: Int, as format: AudioFormat, with encoder: OpaquePointer
    ) -> Int64 {
        let count = Int64(frameCount)
        return switch format.sampleFormat {
        case .int16: unsafe sf_writef_short(encoder, bytes.assumingMemoryBound(to: Int16.self).baseAddress, count)
        case .int32: unsafe sf_writef_int(encoder, bytes.assumingMemoryBound(to: Int32.self).baseAddress, count)
        case .float64: unsafe sf_writef_double(encoder, bytes.assumingMemoryBound(to: Double.self).baseAddress, count)
        default: unsafe sf_writef_float(encoder, bytes.assumingMemoryBound(to: Float.self).baseAddress, count)
        }
    }

    private func updateHead() {
        head.setLength(bytes: dataLength, frames: framesWritten)
        framesInHead = framesWritten
        output.write(head.bytes, at: 0)
    }

    private func checkOpen() throws(StenoError) {
        if let failure { throw failure }
        if isClosed { throw StenoError(.invalidArgument, "writing \(quoted(output.name)): the file is closed") }
    }

    private func checkOutput(encoderCode: Int32) throws(StenoError) {
        if let number = output.failure {
            failure = .system(number, "writing", output.name, otherwise: .fileWriteFailed)
        } else if encoderCode != 0 {
            let text = unsafe String(cString: sf_error_number(encoderCode))
            failure = StenoError(
                .fileWriteFailed, "writing \(quoted(output.name)): \(text)", nativeCode: Int(encoderCode))
        }
        if let failure { throw failure }
    }

    private func openEncoder() throws(StenoError) {
        var info = SF_INFO()
        info.samplerate = Int32(format.sampleRate)
        info.channels = Int32(format.channelCount)
        info.format = Int32(type.encoderFormat(of: format))
        var callbacks = outputCallbacks()
        let context = unsafe Unmanaged.passUnretained(output).toOpaque()
        unsafe encoder = sf_open_virtual(&callbacks, Int32(SFM_WRITE), &info, context)
        guard let encoder = unsafe encoder else {
            let text = unsafe String(cString: sf_strerror(nil))
            throw StenoError(
                .fileUnsupported, "\(quoted(output.name)): \(format) for a file that takes \(type.accepted): \(text)",
                nativeCode: Int(sf_error(nil)))
        }
        var latency = 200.0
        if type == .oggOpus { unsafe sf_command(encoder, Int32(SFC_SET_OGG_PAGE_LATENCY_MS), &latency, 8) }
        unsafe sf_command(encoder, Int32(SFC_UPDATE_HEADER_NOW), nil, 0)
    }
}

// From the samples of a buffer to those of the file.
extension AudioFileWriter {
    /// Puts frames of `buffer` into ``scratch``: interleaved, in the sample format of ``stored``.
    private func rearrange(_ buffer: AudioBuffer, frames: Range<Int>) {
        let (channels, isInterleaved) = (format.channelCount, format.isInterleaved)
        let (size, storedSize) = (format.sampleFormat.byteCount, stored.sampleFormat.byteCount)
        // For an encoder uint8 becomes int16, and 24 bits the upper ones of int32; in WAV int24in32 loses a byte.
        let isFromUnsigned = format.sampleFormat == .uint8 && storedSize == 2
        let isToUpperBits = format.sampleFormat.is24Bit && storedSize == 4
        unsafe buffer.withUnsafeBytes { source in
            unsafe scratch.withUnsafeMutableBytes { target in
                for channel in 0..<channels {
                    let first =
                        isInterleaved
                        ? frames.lowerBound * channels + channel : channel * buffer.frameCapacity + frames.lowerBound
                    let step = isInterleaved ? channels * size : size
                    var (from, to) = (first * size, channel * storedSize)
                    for _ in frames {
                        if isToUpperBits {
                            unsafe target[to] = 0
                            for byte in 0..<3 { unsafe target[to + 1 + byte] = source[from + byte] }
                        } else if isFromUnsigned {
                            unsafe target.storeBytes(
                                of: (Int16(source[from]) - 128) << 8, toByteOffset: to, as: Int16.self)
                        } else {
                            for byte in 0..<storedSize { unsafe target[to + byte] = source[from + byte] }
                        }
                        from += step
                        to += channels * storedSize
                    }
                }
                return frames.count
            }
        }
    }
}

extension AudioFileWriter.FileType {
    /// What the file or its encoder takes of a format; nil when nothing.
    fileprivate func storedFormat(of format: AudioFormat) -> AudioFormat? {
        let sample: SampleFormat
        switch (self, format.sampleFormat) {
        case (.wav, .int24in32): sample = .int24
        case (.wav, let same): sample = same
        case (_, .uint8), (_, .int16): sample = .int16
        case (_, .int24), (_, .int24in32): sample = .int32
        case (.oggOpus, .int32), (.oggOpus, .float32), (.oggOpus, .float64): sample = format.sampleFormat
        default: return nil
        }
        let fits =
            switch self {
            case .wav: format.bytesPerFrame <= Int(UInt16.max)
            case .flac: format.channelCount <= 8 && format.sampleRate <= 655_350
            case .oggOpus: format.channelCount <= 2 && [8000, 12000, 16000, 24000, 48000].contains(format.sampleRate)
            }
        return fits
            ? AudioFormat(sampleRate: format.sampleRate, channelLayout: format.channelLayout, sampleFormat: sample)
            : nil
    }

    fileprivate var accepted: String {
        switch self {
        case .wav: "any sample format with frames of up to 65535 bytes"
        case .flac: "uint8, int16, int24 and int24in32 in up to 8 channels up to 655350 Hz"
        case .oggOpus: "linear samples in 1 or 2 channels at 8000, 12000, 16000, 24000 or 48000 Hz"
        }
    }

    fileprivate func encoderFormat(of format: AudioFormat) -> Int {
        if self == .oggOpus { return SF_FORMAT_OGG | SF_FORMAT_OPUS }
        return switch format.sampleFormat {
        case .uint8: SF_FORMAT_FLAC | SF_FORMAT_PCM_S8
        case .int16: SF_FORMAT_FLAC | SF_FORMAT_PCM_16
        default: SF_FORMAT_FLAC | SF_FORMAT_PCM_24
        }
    }
}

extension AudioFormat {
    /// The body of a WAV format chunk: extensible where the plain one cannot say it.
    fileprivate var waveFormatChunk: [UInt8] {
        let tag: UInt64 =
            switch sampleFormat {
            case .float32, .float64: 3
            case .aLaw: 6
            case .muLaw: 7
            default: 1
            }
        let bits = UInt64(sampleFormat.byteCount * 8)
        let isExtensible =
            channelLayout != ChannelLayout(channelCount: channelCount) || channelCount > 2 || (tag == 1 && bits > 16)
        var chunk = littleEndian(isExtensible ? 0xFFFE : tag, 2) + littleEndian(UInt64(channelCount), 2)
        chunk += littleEndian(UInt64(sampleRate), 4) + littleEndian(UInt64(sampleRate * bytesPerFrame), 4)
        chunk += littleEndian(UInt64(bytesPerFrame), 2) + littleEndian(bits, 2)
        if isExtensible {
            chunk +=
                littleEndian(22, 2) + littleEndian(bits, 2) + littleEndian(UInt64(channelLayout.speakers.rawValue), 4)
            chunk += littleEndian(tag, 2) + [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]
        } else if tag != 1 {
            chunk += littleEndian(0, 2)
        }
        return chunk
    }
}

extension SampleFormat {
    fileprivate var is24Bit: Bool { self == .int24 || self == .int24in32 }

    fileprivate var isInteger: Bool {
        switch self {
        case .float32, .float64, .muLaw, .aLaw: false
        default: true
        }
    }
}
