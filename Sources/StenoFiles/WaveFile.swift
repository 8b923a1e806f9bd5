internal import StenoAudio

/// Where the audio of a RIFF/WAVE file lies, found whatever its sizes say (law F2).
///
/// libsndfile reads the file with a header made from this in front of the audio, so that it never sees an odd size,
/// a missing pad byte or a chunk behind the audio.
struct WaveFile {
    /// The body of the format chunk, complete.
    var format: [UInt8] = []
    var dataStart: Int64 = 0
    /// Nil: through to the end of a pipe.
    var dataLength: Int64?
    /// RF64 or BW64.
    var hasLongSizes = false
    var warnings: [String] = []

    /// Nil when the input is no little-endian WAVE file.
    init?(input: ByteInput) throws(StenoError) {
        let start = input.bytes(at: 0, count: 12)
        guard start.count == 12, ["RIFF", "RF64", "BW64"].contains(start.tag(0)), start.tag(8) == "WAVE" else {
            return nil
        }
        hasLongSizes = start.tag(0) != "RIFF"
        var longDataLength: UInt64?
        var offset: Int64 = 12
        while true {
            let header = input.bytes(at: offset, count: 8)
            guard header.count == 8, header.isTag(0) else {
                throw Self.noAudio(in: input, at: offset, hasFormat: !format.isEmpty)
            }
            let (id, size) = (header.tag(0), Int64(header.integer(4, 4)))
            offset += 8
            switch id {
            case "ds64": longDataLength = input.bytes(at: offset, count: 16).optionalInteger(8, 8)
            case "fmt " where format.isEmpty:
                format = input.bytes(at: offset, count: Int(min(size, 4096)))
                try completeFormat(name: input.name)
            case "data":
                guard !format.isEmpty else { throw Self.noAudio(in: input, at: offset - 8, hasFormat: false) }
                dataStart = offset
                let long = size == 0xFFFF_FFFF ? longDataLength : nil
                setDataLength(declared: long.map { Int64(clamping: $0) } ?? size, input: input)
                return
            default: break
            }
            offset += size
            if !size.isMultiple(of: 2) {
                let padded = Self.isPadded(at: offset, in: input)
                if padded { offset += 1 } else { warnings.append("chunk \(id.debugDescription) has no pad byte") }
            }
        }
    }

    /// The format's tag, or that of the sub-format of an extensible one.
    var tag: UInt64 {
        format.integer(0, 2) == 0xFFFE && format.count >= 26 ? format.integer(24, 2) : format.integer(0, 2)
    }
    var bitsPerSample: UInt64 { format.integer(14, 2) }

    /// The header that libsndfile gets to see.
    var head: [UInt8] {
        // libsndfile reads block codecs only under 32-bit sizes.
        let isPlain = [1, 3, 6, 7].contains(tag)
        var head = WaveHead(format: format)
        head.setLength(bytes: dataLength ?? (isPlain ? 1 << 60 : 0xFFFF_0000), frames: 0)
        return head.bytes
    }

    /// Makes a short format chunk whole, or says why nothing can be read.
    private mutating func completeFormat(name: String) throws(StenoError) {
        guard format.count >= 14 else {
            throw StenoError(
                .fileDamaged, "\(quoted(name)): its format chunk holds \(format.count) bytes; expected at least 16")
        }
        let (tag, channels, rate) = (format.integer(0, 2), format.integer(2, 2), format.integer(4, 4))
        guard channels > 0, rate > 0, rate <= UInt64(Int32.max) else {
            throw StenoError(.fileDamaged, "\(quoted(name)): its header says \(channels) channels at \(rate) Hz")
        }
        if format.count < 16 {
            warnings.append("the format chunk has no sample size; it follows from the frame size")
            format = Array(format.prefix(14)) + littleEndian(format.integer(12, 2) / channels * 8, 2)
        }
        if tag == 0xFFFE, format.count < 40 {
            guard [8, 16, 24].contains(bitsPerSample) else {
                throw StenoError(
                    .fileUnsupported,
                    "\(quoted(name)): an extensible WAV format of \(bitsPerSample) bits without a sub-format; "
                        + "it could be integers or floats")
            }
            warnings.append("the extensible format has no sub-format; its \(bitsPerSample) bits are read as PCM")
            format = littleEndian(1, 2) + format[2..<16]
        }
    }

    /// Sizes that programs write for an unknown length: 0, near 2^31 (sox, ALSA), 2^32 with or without a header, and
    /// with 64 bits more than there is.
    private static func meansUnknown(_ size: Int64) -> Bool {
        [0, 0x7FFF_F000, 0x7FFF_FFFF, 0x8000_0000].contains(size) || (0xFFFF_FF00...0xFFFF_FFFF).contains(size)
            || size >= 1 << 60
    }

    private mutating func setDataLength(declared: Int64, input: ByteInput) {
        guard let available = input.available(from: dataStart) else {
            dataLength = Self.meansUnknown(declared) ? nil : declared
            return
        }
        dataLength = min(declared, available)
        if declared > available {
            warnings.append(
                Self.meansUnknown(declared)
                    ? "the header does not know the length; the audio is read to the end of the file"
                    : "the header says \(declared) bytes of audio, the file has \(available)")
        } else if !Self.chunksFill(input, from: dataStart + declared) {
            let rest = available - declared
            if Self.meansUnknown(declared) {
                dataLength = available
                warnings.append("the header does not know the length; the audio is read to the end of the file")
            } else if rest >= 1 << 32 {
                dataLength = declared + ((rest >> 32) << 32)
                warnings.append("the length in the header wrapped at 4 GiB; the audio goes on behind it")
            } else {
                warnings.append("\(rest) bytes behind the audio are no chunk and are left out")
            }
        }
    }

    /// Whether nothing or a row of whole chunks lies between `offset` and the end.
    private static func chunksFill(_ input: ByteInput, from offset: Int64) -> Bool {
        // Audio of odd length has a pad byte or has not.
        [offset, offset + 1].contains { start in
            var offset = start
            for _ in 0..<1000 {
                guard let rest = input.available(from: offset), rest > 1 else { return true }
                let header = input.bytes(at: offset, count: 8)
                guard header.count == 8, header.isTag(0) else { return false }
                let size = Int64(header.integer(4, 4))
                guard size <= rest - 8 else { return false }
                offset += 8 + size
                if !size.isMultiple(of: 2), isPadded(at: offset, in: input) { offset += 1 }
            }
            return false
        }
    }

    /// Whether a pad byte lies at `offset`, behind a chunk of odd length. The rule is that one does; where it is
    /// missing, a chunk begins there.
    private static func isPadded(at offset: Int64, in input: ByteInput) -> Bool {
        let next = input.bytes(at: offset, count: 5)
        guard next.isTag(0) else { return true }
        return !Self.knownChunks.contains(next.tag(0)) && next.isTag(1)
    }

    private static let knownChunks: Set<String> = [
        "data", "fmt ", "LIST", "fact", "PEAK", "bext", "JUNK", "junk", "cue ", "smpl", "inst", "iXML", "id3 ", "ID3 ",
    ]

    private static func noAudio(in input: ByteInput, at offset: Int64, hasFormat: Bool) -> StenoError {
        let missing = hasFormat ? "a data chunk" : "a format chunk"
        return StenoError(
            .fileDamaged, "\(quoted(input.name)): expected \(missing), found none in \(offset) bytes of header")
    }
}

/// A WAV header in front of audio: RF64 where 32 bits do not hold the sizes, else RIFF with the room kept that RF64
/// needs, so that a recording turns from one to the other without moving its audio.
struct WaveHead {
    private(set) var bytes: [UInt8]
    private let factOffset: Int?

    /// - Parameters:
    ///   - format: The body of the format chunk.
    ///   - hasFact: Whether the frames are counted too, as formats other than PCM ask.
    init(format: [UInt8], hasFact: Bool = false) {
        bytes = [UInt8](repeating: 0, count: 48) + Array("fmt ".utf8) + littleEndian(UInt64(format.count), 4) + format
        factOffset = hasFact ? bytes.count + 8 : nil
        if hasFact { bytes += Array("fact".utf8) + littleEndian(4, 4) + littleEndian(0, 4) }
        bytes += Array("data".utf8) + littleEndian(0, 4)
        set("WAVE", at: 8)
        set(28, 4, at: 16)
        setLength(bytes: 0, frames: 0)
    }

    /// Writes the length of the audio into the header. Allocates nothing.
    mutating func setLength(bytes dataLength: Int64, frames: Int64) {
        let riffLength = Int64(bytes.count - 8) + dataLength + dataLength % 2
        let isLong = riffLength >= 0xFFFF_FFFF
        let (riff, data, frames) = (UInt64(riffLength), UInt64(dataLength), UInt64(frames))
        set(isLong ? "RF64" : "RIFF", at: 0)
        set(isLong ? .max : riff, 4, at: 4)
        set(isLong ? "ds64" : "JUNK", at: 12)
        set(isLong ? riff : 0, 8, at: 20)
        set(isLong ? data : 0, 8, at: 28)
        set(isLong ? frames : 0, 8, at: 36)
        if let factOffset { set(isLong ? .max : frames, 4, at: factOffset) }
        set(isLong ? .max : data, 4, at: bytes.count - 4)
    }

    private mutating func set(_ tag: String, at offset: Int) {
        for (index, byte) in tag.utf8.enumerated() { bytes[offset + index] = byte }
    }

    private mutating func set(_ value: UInt64, _ byteCount: Int, at offset: Int) {
        for index in 0..<byteCount { bytes[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * UInt64(index))) }
    }
}

func littleEndian(_ value: UInt64, _ byteCount: Int) -> [UInt8] {
    (0..<byteCount).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }
}

extension [UInt8] {
    fileprivate func tag(_ offset: Int) -> String { String(decoding: self[offset..<offset + 4], as: UTF8.self) }

    /// Whether four printable characters stand there.
    fileprivate func isTag(_ offset: Int) -> Bool {
        count >= offset + 4 && self[offset..<offset + 4].allSatisfy { (0x20...0x7E).contains($0) }
    }

    fileprivate func integer(_ offset: Int, _ byteCount: Int) -> UInt64 {
        (0..<byteCount).reduce(0) { $0 | UInt64(self[offset + $1]) << (8 * UInt64($1)) }
    }

    fileprivate func optionalInteger(_ offset: Int, _ byteCount: Int) -> UInt64? {
        count >= offset + byteCount ? integer(offset, byteCount) : nil
    }
}
