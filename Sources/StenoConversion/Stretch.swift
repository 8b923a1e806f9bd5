import StenoAudio

/// A stretch of the stream in one input format: decode, mix, change the rate, encode.
struct Stretch: ~Copyable {
    let input: AudioFormat
    private let mix: ChannelMix
    /// Frames of a block: 20 ms of the input.
    private let blockFrames: Int
    /// Decoded frames, interleaved.
    private let block: Scratch
    /// Frames after the mix, interleaved.
    private let mixed: Scratch
    private var rate: RateStage

    init(
        from input: AudioFormat, to output: AudioFormat, policy: ChannelPolicy, factory: any ResamplerFactory
    ) throws(StenoError) {
        let mix = try ChannelMix(from: input, to: output, policy: policy)
        let channels = mix.channelCount(of: input)
        let blockFrames = min(max(input.sampleRate / 50, 1), 4096)
        let rate = try RateStage(
            from: input, to: output, channelCount: channels, blockFrames: blockFrames, factory: factory)
        self.input = input
        self.mix = mix
        self.blockFrames = blockFrames
        self.rate = rate
        block = Scratch(count: blockFrames * input.channelCount)
        mixed = Scratch(count: blockFrames * channels)
    }

    /// Starts where an earlier stretch ended.
    mutating func start(at position: StreamPosition) { rate.start(at: position) }

    /// Where the stream stands at the end of this stretch.
    var position: StreamPosition { rate.position }

    /// The exact length of the stream in output frames with `frames` more of this stretch.
    func length(adding frames: Int) -> Int64 { rate.length(adding: frames) }

    /// Frames of the stream that came out so far.
    var produced: Int64 { rate.produced }

    /// Converts `frameCount` frames; planes of a planar input lie `capacity` frames apart.
    mutating func convert(
        _ source: RawSpan, frameCount: Int, capacity: Int, into bytes: inout MutableRawSpan, _ count: inout Int
    ) throws(StenoError) {
        var next = 0
        while next < frameCount {
            let frames = min(blockFrames, frameCount - next)
            decodeFrames(source, from: next, frames, capacity: capacity)
            next += frames
            try process(frames, into: &bytes, &count)
        }
    }

    mutating func finish(into bytes: inout MutableRawSpan, _ count: inout Int) throws(StenoError) {
        try rate.finish(into: &bytes, &count)
    }

    private mutating func decodeFrames(_ source: RawSpan, from start: Int, _ frames: Int, capacity: Int) {
        let channels = input.channelCount
        var block = unsafe block.samples.mutableSpan
        func run(_ channel: Int) -> SampleRun {
            input.isInterleaved
                ? SampleRun(start: start * channels + channel, stride: channels)
                : SampleRun(start: channel * capacity + start, stride: 1)
        }
        let together = SampleRun(start: 0, stride: 1)
        if case .one(let channel) = mix {
            decode(input.sampleFormat, from: source, run(channel), count: frames, into: &block, together)
            makeFinite(&block, count: frames)
            return
        }
        if input.isInterleaved {
            decode(
                input.sampleFormat, from: source, SampleRun(start: start * channels, stride: 1),
                count: frames * channels, into: &block, together)
        } else {
            for channel in 0..<channels {
                decode(
                    input.sampleFormat, from: source, run(channel), count: frames, into: &block,
                    SampleRun(start: channel, stride: channels))
            }
        }
        makeFinite(&block, count: frames * channels)
    }

    private mutating func process(
        _ frames: Int, into bytes: inout MutableRawSpan, _ count: inout Int
    ) throws(StenoError) {
        let block = unsafe block.samples.span
        var mixed = unsafe mixed.samples.mutableSpan
        switch mix {
        case .one:
            try rate.accept(block.extracting(first: frames), into: &bytes, &count)
        case .all:
            try rate.accept(block.extracting(first: frames * input.channelCount), into: &bytes, &count)
        case .mean(let weights), .automatic(let weights):
            let gains = normalized(weights)
            StenoConversion.mix(block, frameCount: frames, gains: gains.span, into: &mixed)
            try rate.accept(mixed.span.extracting(first: frames), into: &bytes, &count)
        case .stereo(let left, let right):
            StenoConversion.mix(block, frameCount: frames, gains: left.span, into: &mixed, stride: 2)
            StenoConversion.mix(block, frameCount: frames, gains: right.span, into: &mixed, start: 1, stride: 2)
            try rate.accept(mixed.span.extracting(first: frames * 2), into: &bytes, &count)
        }
    }
}

/// Makes what is not a number 0 and what is infinite full scale, so that neither stays in a filter.
func makeFinite(_ samples: inout MutableSpan<Float>, count: Int) {
    for i in 0..<count where !samples[i].isFinite {
        samples[i] = samples[i].isNaN ? 0 : (samples[i] > 0 ? 1 : -1)
    }
}
