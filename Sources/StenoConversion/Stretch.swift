import StenoAudio

/// A stretch of the stream in one input format: decode, mix, change the rate, encode.
final class Stretch {
    let input: AudioFormat
    private let mixing: ChannelMix
    private var watch: ChannelWatch?
    /// Whether the output is the input, bit for bit.
    private let isCopy: Bool
    /// Frames of a block: 20 ms of the input. With a watch, blocks are counted from the start of the stretch, so that
    /// its decisions do not depend on how the stream is cut.
    private let blockFrames: Int
    /// Decoded frames, interleaved; with a watch, `pending` of them wait until the block is full.
    private let block: Scratch
    private var pending = 0
    /// Frames after the mix, interleaved.
    private let mixed: Scratch
    /// One side of a stereo mix.
    private let side: Scratch
    private let rate: RateStage
    /// Changes in the use of channels that are kept while nobody takes them.
    static let keptChanges = 256
    private var changes: [ChannelChange] = []

    init(
        from input: AudioFormat, to output: AudioFormat, policy: ChannelPolicy, factory: any ResamplerFactory
    ) throws(StenoError) {
        let mixing = try ChannelMix(from: input, to: output, policy: policy)
        let channels = mixing.channelCount(of: input)
        let blockFrames = min(max(input.sampleRate / 50, 1), 4096)
        let rate = try RateStage(
            from: input, to: output, channelCount: channels, blockFrames: blockFrames, factory: factory)
        self.input = input
        self.mixing = mixing
        // The layouts may differ where the counts agree.
        isCopy =
            input.channelCount == channels && channels == output.channelCount
            && input.sampleRate == output.sampleRate && input.sampleFormat == output.sampleFormat
            && input.isInterleaved == output.isInterleaved
        self.blockFrames = blockFrames
        self.rate = rate
        if case .automatic(let weights) = mixing { watch = ChannelWatch(weights: weights) }
        block = Scratch(count: Gains.room(frameCount: blockFrames, channelCount: input.channelCount))
        mixed = Scratch(count: Gains.rounded(blockFrames) * channels)
        side = Scratch(count: channels == 2 ? Gains.rounded(blockFrames) : 0)
    }

    /// Starts where an earlier stretch ended.
    func start(at position: StreamPosition) { rate.start(at: position) }

    /// Where the stream stands at the end of this stretch.
    var position: StreamPosition { rate.position }

    /// The exact length of the stream in output frames with `frames` more of this stretch.
    func length(adding frames: Int) -> Int64 { rate.length(adding: pending + frames) }

    /// Frames of the stream that came out so far.
    var produced: Int64 { rate.produced }

    /// Converts `frameCount` frames; planes of a planar input lie `capacity` frames apart.
    func convert(
        _ source: RawSpan, frameCount: Int, capacity: Int, into bytes: inout MutableRawSpan, _ count: inout Int
    ) throws(StenoError) {
        if isCopy {
            rate.copy(source, frameCount: frameCount, capacity: capacity, into: &bytes, &count)
            return
        }
        var next = 0
        while next < frameCount {
            let frames = min(blockFrames - pending, frameCount - next)
            decodeFrames(source, from: next, frames, capacity: capacity)
            next += frames
            pending += frames
            if pending == blockFrames || watch == nil { try processPending(into: &bytes, &count) }
        }
    }

    func finish(into bytes: inout MutableRawSpan, _ count: inout Int) throws(StenoError) {
        if pending > 0 { try processPending(into: &bytes, &count) }
        try rate.finish(into: &bytes, &count)
    }

    /// Decodes behind the frames that wait in the block.
    private func decodeFrames(_ source: RawSpan, from start: Int, _ frames: Int, capacity: Int) {
        let channels = input.channelCount
        let samples = unsafe block.samples
        var block = unsafe samples.mutableSpan
        func run(_ channel: Int) -> SampleRun {
            input.isInterleaved
                ? SampleRun(start: start * channels + channel, stride: channels)
                : SampleRun(start: channel * capacity + start, stride: 1)
        }
        if case .one(let channel) = mixing {
            decode(
                input.sampleFormat, from: source, run(channel), count: frames, into: &block,
                SampleRun(start: pending, stride: 1))
        } else if input.isInterleaved {
            decode(
                input.sampleFormat, from: source, SampleRun(start: start * channels, stride: 1),
                count: frames * channels, into: &block, SampleRun(start: pending * channels, stride: 1))
        } else {
            for channel in 0..<channels {
                decode(
                    input.sampleFormat, from: source, run(channel), count: frames, into: &block,
                    SampleRun(start: pending * channels + channel, stride: channels))
            }
        }
    }

    private func processPending(into bytes: inout MutableRawSpan, _ count: inout Int) throws(StenoError) {
        let frames = pending
        pending = 0
        if watch != nil { observe(frames) }
        let samples = frames * mixing.channelCount(of: input)
        switch mixing {
        case .one, .all:
            let ready = unsafe block.samples.extracting(..<samples)
            if !isFinite(unsafe ready.span) { makeBlockFinite(samples) }
            try rate.accept(unsafe ready.span, into: &bytes, &count)
        case .mean, .automatic, .stereo:
            let ready = unsafe mixed.samples.extracting(..<samples)
            mixBlock(frames)
            if !isFinite(unsafe ready.span) {
                makeBlockFinite(frames * input.channelCount)
                mixBlock(frames)
            }
            try rate.accept(unsafe ready.span, into: &bytes, &count)
        }
    }

    private func mixBlock(_ frames: Int) {
        let (source, target) = unsafe (self.block.samples, self.mixed.samples)
        let block = unsafe source.span
        var mixed = unsafe target.mutableSpan
        switch mixing {
        case .mean(let gains):
            mix(block, frameCount: frames, gains: gains, into: &mixed)
        case .stereo(let left, let right):
            let samples = unsafe self.side.samples
            var side = unsafe samples.mutableSpan
            mix(block, frameCount: frames, gains: left, into: &side)
            for frame in 0..<frames { mixed[2 * frame] = side[frame] }
            mix(block, frameCount: frames, gains: right, into: &side)
            for frame in 0..<frames { mixed[2 * frame + 1] = side[frame] }
        default:
            guard let watch else { return }
            if watch.isRamping {
                mixRamp(block, frameCount: frames, from: watch.earlierGains, to: watch.gains, into: &mixed)
            } else {
                mix(block, frameCount: frames, gains: watch.gains, into: &mixed)
            }
        }
    }

    private func makeBlockFinite(_ count: Int) {
        let samples = unsafe block.samples
        var block = unsafe samples.mutableSpan
        makeFinite(&block, count: count)
    }

    private func observe(_ frames: Int) {
        let samples = unsafe block.samples
        var change = watch?.observe(unsafe samples.span, frameCount: frames)
        if change == nil {
            makeBlockFinite(frames * input.channelCount)
            change = watch?.observe(unsafe samples.span, frameCount: frames)
        }
        guard change == true else { return }
        if changes.count == Self.keptChanges { changes.removeFirst() }
        changes.append(ChannelChange(frame: rate.length(adding: 0), report: report))
    }

    func takeChanges() -> [ChannelChange] {
        defer { changes = [] }
        return changes
    }

    var report: ChannelReport {
        func channels(_ gain: (Int) -> Float) -> [ChannelReport.Channel] {
            (0..<input.channelCount).map { channel in
                ChannelReport.Channel(use: gain(channel) > 0 ? .used : .notChosen, gain: gain(channel), level: nil)
            }
        }
        let all =
            switch mixing {
            case .all: channels { _ in 1 }
            case .one(let chosen): channels { $0 == chosen ? 1 : 0 }
            case .mean(let gains): channels { gains[$0] }
            case .stereo(let left, let right): channels { max(left[$0], right[$0]) }
            case .automatic: watch?.report ?? []
            }
        return ChannelReport(channels: all)
    }
}
