internal import CFFmpeg
public import StenoAudio
internal import StenoFiles

/// Reads one audio track of a media file, or of a pipe, as a stream: whatever FFmpeg's libraries decode, such as M4A,
/// MP4, MOV, WebM, Matroska, AMR, WMA and AC-3.
///
/// The samples are those of the decoder, interleaved and in their own format: `float32` for most codecs, beyond ±1
/// where the decoder is. Channels whose speakers are known come in the order of ``ChannelLayout/Speakers``. The first
/// frame is time zero of the file: what an encoder put before the audio, and behind it, is left out where the file says
/// so. A track that begins later than the file (by more than 100 ms) begins with a gap, and what is missing in its middle
/// is one; a jump of more than an hour, or beyond the end, is taken for damage.
///
/// What is damaged is left out with a warning, as far as there is audio. A change of format in mid-file is converted to
/// the first.
///
/// A file is read anywhere and only to the size that it had when it was opened; a pipe is read forward. Files named in
/// the file, as in a playlist, are never opened. FFmpeg's own log is switched off, for the whole process.
/// Opening blocks until the first audio has come.
///
/// Not `Sendable`: one thread at a time.
@safe public final class MediaFileSource: CaptureStream {
    /// One of the audio tracks of a file.
    public struct Track: Sendable, Hashable {
        /// Its codec, in FFmpeg's words: `aac`.
        public let codec: String
        /// As the file has it, often three letters: `eng`.
        public let language: String?
        public let title: String?
        public let channelCount: Int
        public let sampleRate: Int
        /// Whether the file proposes it.
        public let isDefault: Bool
        let streamIndex: Int
    }

    /// The path, or what the descriptor was called.
    public let name: String
    public let format: AudioFormat
    /// The container, in FFmpeg's words: `QuickTime / MOV`.
    public let container: String
    /// The audio tracks in the order of the file.
    public let tracks: [Track]
    /// The index in ``tracks`` of the one that is read.
    public let trackIndex: Int
    /// Frames as the file declares them, in many containers to a millisecond or some; nil when it does not, or when it
    /// could only be guessed from its size.
    public let frameCount: Int64?
    /// Frames that were read so far, and those of gaps.
    public private(set) var framesRead: Int64 = 0
    /// What is odd about the file, so far: each a `fileWarning`. One that concerns the end comes with the end.
    public private(set) var warnings: [TimelineEvent] = []
    /// The ``warnings``.
    public var events: [TimelineEvent] { warnings }
    /// ``frameCount`` as a time.
    public var duration: MediaTime? { frameCount.map { MediaTime(frames: $0, sampleRate: format.sampleRate) } }

    private let demuxer: Demuxer
    private let decoder: TrackDecoder
    private var hasEnded = false

    /// Opens a file. The path may hold any character; none has a meaning.
    ///
    /// - Parameter track: Which of the audio tracks, counted from 0; nil for the one that the file proposes, or the first.
    /// - Throws: `fileNotFound`, `filePermissionDenied`, `fileIsDirectory`, `fileEmpty`, `fileNotAudio` (also for a
    ///   film without sound), `fileUnsupported`, `fileDamaged`, `fileReadFailed`; `invalidArgument` when there is no
    ///   such track. A native code is FFmpeg's, or the errno of those that concern the system.
    public convenience init(path: String, track: Int? = nil) throws(StenoError) {
        try self.init(input: ByteInput(path: path), track: track)
    }

    /// Reads an open descriptor from where it stands, seekable or a pipe: standard input is descriptor 0. An MP4 file
    /// whose index lies at its end cannot be read from a pipe.
    ///
    /// - Parameters:
    ///   - name: What to call it in messages.
    ///   - closesDescriptor: Whether the descriptor is closed in the end, also when this throws.
    /// - Throws: As ``init(path:track:)``.
    public convenience init(
        descriptor: Int32, name: String = "standard input", closesDescriptor: Bool = false, track: Int? = nil
    ) throws(StenoError) {
        try self.init(
            input: ByteInput(descriptor: descriptor, name: name, closesDescriptor: closesDescriptor), track: track)
    }

    init(input: ByteInput, track: Int?) throws(StenoError) {
        name = input.name
        let start = input.bytes(at: 0, count: 512)
        guard !start.isEmpty || input.failure != nil else {
            throw StenoError(.fileEmpty, "\(quoted(name)) is empty, 0 bytes; expected an audio file")
        }
        // FFmpeg takes text for subtitles or worse.
        if case .notAudio(let what) = Content(head: start), !what.hasSuffix("unknown kind") {
            throw StenoError(.fileNotAudio, "\(quoted(name)) is \(what); expected an audio file")
        }
        demuxer = try Demuxer(input: input)
        container = demuxer.containerName
        tracks = demuxer.audioTracks
        guard !tracks.isEmpty else {
            throw StenoError(.fileNotAudio, "\(quoted(name)) is \(container) without an audio track")
        }
        trackIndex = track ?? tracks.firstIndex(where: \.isDefault) ?? 0
        guard tracks.indices.contains(trackIndex) else {
            throw StenoError(
                .invalidArgument, "\(quoted(name)) has \(tracks.count) audio tracks; there is no track \(trackIndex)")
        }
        decoder = try TrackDecoder(demuxer: demuxer, track: tracks[trackIndex])
        format = decoder.format
        frameCount = decoder.frameCount
        takeWarnings()
    }

    /// Replaces the content of `buffer` with the next frames, at most `buffer.frameCapacity` of them.
    ///
    /// Blocks for the disk. On a pipe it returns what has come, and `nothing` when nothing comes for 100 ms; only in
    /// the middle of a packet it waits for the rest. Allocates nothing itself once `buffer` is in ``format``; FFmpeg does.
    ///
    /// - Throws: `fileDamaged` or `fileReadFailed` when not one frame could be read. After real audio the same is a
    ///   warning and the end.
    /// - Precondition: `buffer` has room for a frame.
    public func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead {
        precondition(buffer.frameCapacity > 0, "a buffer without room takes no frames")
        if buffer.format != format { buffer = AudioBuffer(format: format, frameCapacity: buffer.frameCapacity) }
        buffer.removeAll()
        if hasEnded { return .end }
        let capacity = buffer.frameCapacity
        var step = TrackDecoder.Step.nothing
        try unsafe buffer.withUnsafeMutableBytes { (bytes) throws(StenoError) in
            var count = 0
            while count < capacity {
                step = try decoder.next()
                guard step == .frames else { break }
                unsafe count += decoder.take(
                    into: bytes.baseAddress.unsafelyUnwrapped + count * format.bytesPerFrame, capacity: capacity - count
                )
                // What comes through a pipe may be live.
                if !demuxer.input.isSeekable, count > 0 { break }
            }
            return count
        }
        framesRead = decoder.position
        takeWarnings()
        if buffer.frameCount > 0 { return .frames }
        switch step {
        case .frames, .nothing: return .nothing
        case .gap(let count):
            decoder.skipGap()
            framesRead = decoder.position
            return .gap(frameCount: count, kind: .gap)
        case .end:
            hasEnded = true
            return .end
        }
    }

    private func takeWarnings() {
        for warning in decoder.takeWarnings() { warnings.note(warning) }
    }
}

extension Demuxer {
    fileprivate var containerName: String {
        unsafe context?.pointee.iformat?.pointee.long_name.map { unsafe String(cString: $0) } ?? "unknown"
    }

    fileprivate var audioTracks: [MediaFileSource.Track] {
        let count = unsafe Int(context?.pointee.nb_streams ?? 0)
        return (0..<count).compactMap { index in
            let stream = unsafe stream(index).pointee
            guard let parameters = unsafe stream.codecpar?.pointee, unsafe parameters.codec_type == AVMEDIA_TYPE_AUDIO
            else { return nil }
            func tag(_ key: String) -> String? {
                unsafe av_dict_get(stream.metadata, key, nil, 0).map { unsafe String(cString: $0.pointee.value) }
            }
            return unsafe MediaFileSource.Track(
                codec: String(cString: avcodec_get_name(parameters.codec_id)), language: tag("language"),
                title: tag("title"), channelCount: Int(parameters.ch_layout.nb_channels),
                sampleRate: Int(parameters.sample_rate), isDefault: stream.disposition & AV_DISPOSITION_DEFAULT != 0,
                streamIndex: index)
        }
    }
}
