internal import CFFmpeg
internal import StenoAudio
internal import StenoFiles

/// Decodes one track and places what comes out on a timeline of frames, by the times that the file gives.
@safe final class TrackDecoder {
    enum Step: Equatable {
        /// There is audio to ``take(into:capacity:)``.
        case frames
        /// This many frames are missing before the next; ``skipGap()`` goes on behind them.
        case gap(Int64)
        /// A pipe has nothing at the moment.
        case nothing
        case end
    }

    /// That of the first frame; what comes in another one is converted to it.
    private(set) var format: AudioFormat
    private(set) var frameCount: Int64?
    /// Frames from the beginning of the file to where the next ones go.
    private(set) var position: Int64 = 0

    private let demuxer: Demuxer
    private let stream: UnsafeMutablePointer<AVStream>
    private let track: MediaFileSource.Track
    private var codec: UnsafeMutablePointer<AVCodecContext>?
    private var packet = unsafe av_packet_alloc()
    private var frame = unsafe av_frame_alloc()

    private var converter: OpaquePointer?
    /// What the converter takes.
    private var input: (format: Int32, sampleRate: Int32, channelCount: Int32) = (-1, 0, 0)
    /// The channels of ``format``.
    private var layout = unsafe AVChannelLayout()
    /// Whether the converter holds audio back.
    private var resamples = false

    /// What `frame` holds that was not yet taken.
    private var held = 0..<0
    private var gap: Int64 = 0
    /// The time of frame 0, in frames; moves when times in the file go back.
    private var origin: Int64 = 0
    private var hasPlaced = false
    /// Where the track ends by its container, in frames. The last packet is padded.
    private var trackEnd: Int64?
    private var hasFirstPacket = false
    private var isDraining = false
    private var hasEnded = false
    /// Whether something was lost just before, so that even a short gap is one.
    private var isAfterLoss = false
    /// Whether the last packet was a pause, behind which nothing may come that says how long it is.
    private var isInPause = false
    private var damage: StenoError?
    private var failedReads = 0
    /// The end in microseconds of the last packet of any track.
    private var lastTime: Int64 = 0
    private var warnings: [TimelineEvent] = []

    init(demuxer: Demuxer, track: MediaFileSource.Track) throws(StenoError) {
        self.demuxer = demuxer
        self.track = track
        unsafe stream = demuxer.stream(track.streamIndex)
        // Until the first frame is there.
        let sampleFormat = unsafe SampleFormat(AVSampleFormat(stream.pointee.codecpar.pointee.format)) ?? .float32
        format = AudioFormat(
            sampleRate: max(1, track.sampleRate), channelCount: max(1, track.channelCount), sampleFormat: sampleFormat)
        try openCodec()
        demuxer.discardOthers(than: track.streamIndex)
        if let layout = unsafe ChannelLayout(stream.pointee.codecpar.pointee.ch_layout) {
            format = AudioFormat(sampleRate: format.sampleRate, channelLayout: layout, sampleFormat: sampleFormat)
        }
        _ = try advance(isPatient: true)
        if let trackEnd {
            frameCount = max(0, trackEnd - origin)
        } else if let end = demuxer.end {
            frameCount = max(0, frames(end, microseconds) - origin)
        }
    }

    deinit {
        unsafe avcodec_free_context(&codec)
        unsafe av_packet_free(&packet)
        unsafe av_frame_free(&frame)
        unsafe swr_free(&converter)
        unsafe av_channel_layout_uninit(&layout)
    }

    func takeWarnings() -> [TimelineEvent] {
        defer { warnings.removeAll(keepingCapacity: true) }
        return warnings
    }

    func next() throws(StenoError) -> Step {
        if gap > 0 { return .gap(gap) }
        if !held.isEmpty || hasEnded && resamples { return .frames }
        return hasEnded ? .end : try advance(isPatient: false)
    }

    /// Moves frames to `target`, which has room for `capacity` of them, and returns how many.
    func take(into target: UnsafeMutableRawPointer, capacity: Int) -> Int {
        let count = min(held.count, capacity)
        let taken = unsafe steno_convert(
            converter, target.assumingMemoryBound(to: UInt8.self), Int32(clamping: capacity),
            held.isEmpty ? nil : frame,
            Int32(held.lowerBound), Int32(count))
        if held.isEmpty { resamples = taken > 0 }
        held = held.dropFirst(count)
        position += Int64(max(0, taken))
        return Int(max(0, taken))
    }

    func skipGap() {
        position += gap
        gap = 0
    }

    /// Decodes until there is audio, or a gap before it.
    ///
    /// - Parameter isPatient: Whether to wait for a pipe that has nothing.
    private func advance(isPatient: Bool) throws(StenoError) -> Step {
        while true {
            let status = unsafe avcodec_receive_frame(codec, frame)
            if status == 0 {
                if try place() { return gap > 0 ? .gap(gap) : .frames }
            } else if status == steno_averror_eof() || isDraining {
                if isInPause {
                    isInPause = false
                    let end = frames(lastTime, microseconds) - origin
                    gap = max(0, min(end, frameCount ?? .max) - position)
                    if gap > 0 { return .gap(gap) }
                }
                hasEnded = true
                try noteEnd()
                return resamples ? .frames : .end
            } else if status != steno_averror(EAGAIN) {
                noteDamage(status, "the decoder of \(track.codec) fails")
            } else {
                let input = demuxer.input
                if !isPatient, !input.isSeekable, demuxer.bufferedCount == 0, !input.hasEnded,
                    input.wait(for: 1, milliseconds: 100) == 0, !input.hasEnded
                {
                    return .nothing
                }
                feed()
            }
        }
    }

    /// Hands the decoder the next packet, or the end.
    private func feed() {
        guard let packet = unsafe packet else { return }
        unsafe av_packet_unref(packet)
        let status = unsafe demuxer.read(into: packet)
        guard status == 0 else {
            if status != steno_averror_eof() {
                failedReads += 1
                noteDamage(status, "the file cannot be read on")
            }
            // Some containers find their way again.
            if status == steno_averror_eof() || failedReads > 20 || demuxer.input.failure != nil {
                isDraining = true
                unsafe avcodec_send_packet(codec, nil)
            }
            return
        }
        failedReads = 0
        let base = unsafe demuxer.stream(Int(packet.pointee.stream_index)).pointee.time_base
        if unsafe packet.pointee.pts != steno_nopts() {
            let end = unsafe packet.pointee.pts + packet.pointee.duration
            lastTime = max(lastTime, av_rescale_q(end, base, microseconds))
        }
        guard unsafe packet.pointee.stream_index == track.streamIndex else { return }
        if !hasFirstPacket {
            hasFirstPacket = true
            unsafe findTrackEnd(packet)
        }
        if unsafe isPause(packet.pointee) {
            (isAfterLoss, isInPause) = (true, hasPlaced)
            return
        }
        if unsafe packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 { isAfterLoss = true }
        let sent = unsafe avcodec_send_packet(codec, packet)
        if sent < 0 { noteDamage(sent, "a packet cannot be decoded") }
    }

    /// Whether it holds no speech: what a telephone sends in pauses (discontinuous transmission), which FFmpeg's decoders
    /// take for damage. The frame behind it, or the end, says how long the pause is.
    private func isPause(_ packet: AVPacket) -> Bool {
        guard unsafe (1...7).contains(packet.size), let type = unsafe packet.data.map({ unsafe $0[0] >> 3 & 15 }) else {
            return false
        }
        switch unsafe codec?.pointee.codec_id {
        case AV_CODEC_ID_AMR_NB: return type >= 8
        case AV_CODEC_ID_AMR_WB: return type >= 9
        default: return false
        }
    }

    /// Says where the held frame belongs; false when nothing of it is audio.
    private func place() throws(StenoError) -> Bool {
        guard let frame = unsafe frame?.pointee else { return false }
        try unsafe configure(frame)
        let rate = Int64(format.sampleRate)
        var audio = 0..<Int(unsafe frame.nb_samples)
        let time = unsafe frame.pts != steno_nopts() ? frame.pts : frame.best_effort_timestamp
        if time != steno_nopts() {
            let start = unsafe frames(time, stream.pointee.time_base)
            // As much as the times of a container may wander about the truth.
            let tolerance = isAfterLoss ? rate / 200 : rate / 10
            if !hasPlaced {
                origin = demuxer.start.map { frames($0, microseconds) } ?? start
                if (0...rate / 10).contains(start - origin) { origin = start }
                // What is before the beginning is for the decoder alone.
                if start < origin { audio = audio.dropFirst(inputFrames(origin - start)) }
            }
            let jump = max(start, origin) - origin - position
            if jump > tolerance, isPlausible(jump) {
                gap = jump
            } else if jump > tolerance || jump < -rate / 10 {
                origin += jump
                warn("the times in the file jump by \(Double(jump) / Double(rate)) s; the audio is kept as it comes")
            }
        }
        (isAfterLoss, isInPause) = (false, false)
        if let trackEnd { audio = audio.prefix(inputFrames(max(0, trackEnd - origin - position - gap))) }
        guard !audio.isEmpty else {
            gap = 0
            return false
        }
        hasPlaced = true
        held = audio
        return true
    }

    /// Whether so many frames can be missing, and the times, or the length, are not simply wrong: at most an hour.
    private func isPlausible(_ jump: Int64) -> Bool {
        jump <= 3600 * Int64(format.sampleRate) && position + jump <= frameCount ?? .max
    }

    /// Frames of ``format`` in frames of the decoder.
    private func inputFrames(_ count: Int64) -> Int {
        Int(clamping: av_rescale(count, Int64(input.sampleRate), Int64(format.sampleRate)))
    }

    private func frames(_ time: Int64, _ base: AVRational) -> Int64 {
        av_rescale_q(time, base, AVRational(num: 1, den: Int32(format.sampleRate)))
    }

    private func warn(_ detail: String) {
        let now = MediaTime(frames: position, sampleRate: format.sampleRate)
        warnings.note(TimelineEvent(.fileWarning, range: MediaTimeRange(start: now, end: now), detail: detail))
    }

    private func noteDamage(_ status: Int32, _ what: String) {
        isAfterLoss = true
        let name = demuxer.input.name
        damage =
            demuxer.input.failure.map { .system($0, "reading", name, otherwise: .fileReadFailed) }
            ?? .ffmpeg(status, name, what, otherwise: .fileDamaged)
        warn("\(what): \(ffmpegError(status))")
    }

    private func noteEnd() throws(StenoError) {
        if let number = demuxer.input.failure {
            damage = .system(number, "reading", demuxer.input.name, otherwise: .fileReadFailed)
        }
        if let damage, !hasPlaced { throw damage }
        if demuxer.input.failure != nil, let damage { warn("the audio ends at a fault: \(damage)") }
        guard let frameCount, position < frameCount - Int64(format.sampleRate / 10) else { return }
        // A film may go on without sound.
        let isCut = trackEnd != nil || demuxer.end.map { lastTime < $0 - 100_000 } ?? false
        if isCut { warn("the file says \(frameCount) frames and holds \(position)") }
    }
}

private let microseconds = AVRational(num: 1, den: 1_000_000)

// Setting up.
extension TrackDecoder {
    private func openCodec() throws(StenoError) {
        let name = demuxer.input.name
        guard let parameters = unsafe stream.pointee.codecpar,
            let decoder = unsafe avcodec_find_decoder(parameters.pointee.codec_id)
        else { throw StenoError(.fileUnsupported, "\(quoted(name)): there is no decoder for \(track.codec)") }
        unsafe codec = avcodec_alloc_context3(decoder)
        guard let codec = unsafe codec, unsafe packet != nil, unsafe frame != nil else {
            throw StenoError(.insufficientResources, "\(quoted(name)): no memory to decode it")
        }
        var status = unsafe avcodec_parameters_to_context(codec, parameters)
        unsafe codec.pointee.pkt_timebase = stream.pointee.time_base
        unsafe codec.pointee.thread_count = 1
        if status >= 0 { status = unsafe avcodec_open2(codec, decoder, nil) }
        guard status >= 0 else {
            throw .ffmpeg(status, name, "the decoder of \(track.codec) cannot begin", otherwise: .fileUnsupported)
        }
    }

    /// Takes the format of the first frame, and makes a converter when one comes in another.
    private func configure(_ frame: AVFrame) throws(StenoError) {
        let new = unsafe (frame.format, frame.sample_rate, frame.ch_layout.nb_channels)
        if new == input { return }
        let name = demuxer.input.name
        let isFirst = unsafe converter == nil
        guard let channels = unsafe ChannelLayout(frame.ch_layout), new.1 > 0,
            let sampleFormat = unsafe SampleFormat(AVSampleFormat(frame.format))
        else {
            throw StenoError(
                .fileUnsupported, "\(quoted(name)): \(track.codec) in \(new.2) channels, sample format \(new.0)")
        }
        var status: Int32 = 0
        if isFirst {
            format = AudioFormat(sampleRate: Int(new.1), channelLayout: channels, sampleFormat: sampleFormat)
            status = unsafe withUnsafePointer(to: frame.ch_layout) { unsafe av_channel_layout_copy(&layout, $0) }
        } else {
            warn("the audio changes to \(new.1) Hz, \(channels); it is converted to \(format)")
        }
        guard let packed = format.sampleFormat.ffmpegFormat else { return }
        // As many channels are the same channels, whatever they are called.
        let isMixed = channels.channelCount != format.channelCount
        var from = unsafe isMixed ? frame.ch_layout : layout
        if status >= 0 {
            status = unsafe swr_alloc_set_opts2(
                &converter, &layout, packed, Int32(format.sampleRate), &from, AVSampleFormat(frame.format), new.1, 0,
                nil)
        }
        if status >= 0 { status = unsafe swr_init(converter) }
        guard status >= 0 else {
            throw .ffmpeg(status, name, "no conversion to \(format)", otherwise: .fileUnsupported)
        }
        input = new
        resamples = Int(new.1) != format.sampleRate
    }

    /// Finds where the audio ends, behind which the last packet is padded, in the containers that say it exactly. An
    /// unfinished recording (fragments) does not.
    private func findTrackEnd(_ packet: UnsafeMutablePointer<AVPacket>) {
        // Some containers show their streams only later.
        guard demuxer.headerDurations.indices.contains(track.streamIndex) else { return }
        let duration = demuxer.headerDurations[track.streamIndex]
        guard demuxer.isQuickTime, unsafe stream.pointee.nb_frames > 0, duration > 0 else { return }
        let isSkipped = unsafe av_packet_get_side_data(packet, AV_PKT_DATA_SKIP_SAMPLES, nil) != nil
        let start = unsafe packet.pointee.pts
        // Negative times before an edit list are no part of the duration.
        var end = (isSkipped ? max(0, start) : start) + duration
        // iTunes says it in a comment: hexadecimal numbers, of which the second is the delay and the fourth the length.
        if isSkipped, start == 0, let comment = demuxer.tag("iTunSMPB") {
            let numbers = comment.split(separator: " ").map { Int64($0, radix: 16) ?? 0 }
            if numbers.count > 3, numbers[3] > 0 { end = min(end, numbers[1] + numbers[3]) }
        }
        trackEnd = unsafe frames(end, stream.pointee.time_base)
    }
}

extension Demuxer {
    /// Where the file begins, in microseconds.
    fileprivate var start: Int64? {
        guard let start = unsafe context?.pointee.start_time, start != steno_nopts() else { return nil }
        return max(0, start)
    }

    /// Where the file ends in microseconds, unless that was guessed.
    fileprivate var end: Int64? {
        guard let context = unsafe context?.pointee, unsafe context.duration != steno_nopts(),
            unsafe context.duration_estimation_method != AVFMT_DURATION_FROM_BITRATE
        else { return nil }
        return unsafe context.duration + (context.start_time == steno_nopts() ? 0 : context.start_time)
    }

    fileprivate func tag(_ key: String) -> String? {
        unsafe av_dict_get(context?.pointee.metadata, key, nil, 0).map { unsafe String(cString: $0.pointee.value) }
    }

    /// Leaves out what is not wanted. Not where the other tracks tell whether the file was cut off.
    fileprivate func discardOthers(than index: Int) {
        guard let context = unsafe context?.pointee else { return }
        guard unsafe isQuickTime || context.duration_estimation_method == AVFMT_DURATION_FROM_PTS else { return }
        for other in 0..<Int(unsafe context.nb_streams) where other != index {
            unsafe stream(other).pointee.discard = AVDISCARD_ALL
        }
    }
}
