import StenoAudio

/// What the next stretch needs to know of all earlier ones.
struct StreamPosition {
    var length: StreamLength
    /// Frames that came out.
    var produced: Int64
}

/// The second half of a stretch: changes the rate, keeps the exact length, writes the output's sample format.
final class RateStage {
    private let resampler: (any Resampler)?
    private let inputRate: Int
    private let writer: FrameWriter
    /// The exact length of all earlier stretches.
    private var base = StreamLength()
    /// Frames of this stretch that went in.
    private var consumed: Int64 = 0
    /// Frames of the whole stream that came out.
    private(set) var produced: Int64 = 0
    /// What the resampler wrote; the first `held` frames wait until the exact length reaches them.
    private let resampled: Scratch
    private var held = 0

    init(
        from input: AudioFormat, to output: AudioFormat, channelCount: Int, blockFrames: Int,
        factory: any ResamplerFactory
    ) throws(StenoError) {
        inputRate = input.sampleRate
        writer = FrameWriter(output: output, channelCount: channelCount)
        let sameRate = input.sampleRate == output.sampleRate
        do {
            resampler =
                sameRate
                ? nil
                : try factory.makeResampler(
                    from: input.sampleRate, to: output.sampleRate, channelCount: channelCount)
        } catch {
            throw StenoError(
                error.code, "cannot convert \(input) to \(output): \(error.message)", nativeCode: error.nativeCode)
        }
        let ratio = 1 + output.sampleRate / input.sampleRate
        resampled = Scratch(count: sameRate ? 0 : (min(blockFrames * ratio, 16384) + 64) * channelCount)
    }

    private var channelCount: Int { writer.channelCount }
    private var outputRate: Int { writer.output.sampleRate }

    /// The exact length of the stream with `frames` more of this stretch.
    func length(adding frames: Int) -> Int64 {
        base.rounded(adding: consumed + Int64(frames), from: inputRate, to: outputRate)
    }

    /// Where the stream stands at the end of this stretch.
    var position: StreamPosition {
        var length = base
        length.add(consumed, from: inputRate, to: outputRate)
        return StreamPosition(length: length, produced: produced)
    }

    /// Starts where an earlier stretch ended.
    func start(at position: StreamPosition) {
        base = position.length
        produced = position.produced
    }

    /// Passes frames on as they are. Only where input and output have one format.
    func copy(
        _ source: RawSpan, frameCount: Int, capacity: Int, into bytes: inout MutableRawSpan, _ count: inout Int
    ) {
        let planes = writer.output.isInterleaved ? 1 : channelCount
        let frameBytes = writer.output.bytesPerFrame / planes
        let (outputCapacity, first) = (bytes.byteCount / writer.output.bytesPerFrame, count)
        for plane in 0..<planes {
            let from = plane * capacity * frameBytes
            let part = source.extracting(from..<from + frameCount * frameBytes)
            let start = (plane * outputCapacity + first) * frameBytes
            unsafe part.withUnsafeBytes { part in
                unsafe bytes.withUnsafeMutableBytes { bytes in
                    unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[start...]).copyMemory(from: part)
                }
            }
        }
        consumed += Int64(frameCount)
        produced += Int64(frameCount)
        count += frameCount
    }

    func accept(
        _ frames: Span<Float>, into bytes: inout MutableRawSpan, _ count: inout Int
    ) throws(StenoError) {
        consumed += Int64(frames.count / channelCount)
        if resampler == nil {
            writer.write(frames, frames.count / channelCount, into: &bytes, &count)
            produced += Int64(frames.count / channelCount)
        } else {
            try resample(frames, through: length(adding: 0), into: &bytes, &count)
        }
    }

    /// Drains the resampler. Behind the last frame come zeros where the rounding over all stretches asks for one frame
    /// more than this stretch alone has, so that the true tail of the filter comes out.
    func finish(into bytes: inout MutableRawSpan, _ count: inout Int) throws(StenoError) {
        guard let resampler else { return }
        let end = length(adding: 0)
        let stretch = Int128(end - base.rounded(adding: 0, from: inputRate, to: outputRate))
        let needed = divide(stretch * Int128(inputRate), by: Int128(outputRate), rounding: .up)
        var missing = Int(needed - Int128(consumed))
        let zeros = [Float](repeating: 0, count: min(max(missing, 0), 1024) * channelCount)
        while missing > 0 {
            let part = min(missing, 1024)
            try resample(zeros.span.extracting(first: part * channelCount), through: end, into: &bytes, &count)
            missing -= part
        }
        while produced < end {
            let samples = unsafe resampled.samples
            var span = unsafe samples.mutableSpan
            var room = span._mutatingExtracting(droppingFirst: held * channelCount)
            let drained = try resampler.drain(into: &room)
            guard drained > 0 else {
                throw StenoError(
                    .conversionFailed,
                    "the resampler from \(inputRate) Hz to \(outputRate) Hz ended \(end - produced) frames short")
            }
            emit(held + drained, through: end, into: &bytes, &count)
        }
    }

    private func resample(
        _ frames: Span<Float>, through end: Int64, into bytes: inout MutableRawSpan, _ count: inout Int
    ) throws(StenoError) {
        guard let resampler else { return }
        var rest = frames
        while true {
            let samples = unsafe resampled.samples
            var span = unsafe samples.mutableSpan
            var room = span._mutatingExtracting(droppingFirst: held * channelCount)
            let (used, made) = try resampler.resample(rest, into: &room)
            rest = rest.extracting(droppingFirst: used * channelCount)
            let isFull = (held + made + 1) * channelCount > resampled.count
            if used == 0 && made == 0 {
                if rest.isEmpty { return }
                throw StenoError(
                    .conversionFailed,
                    "the resampler from \(inputRate) Hz to \(outputRate) Hz takes no more frames")
            }
            emit(held + made, through: end, into: &bytes, &count)
            if rest.isEmpty && !isFull { return }
        }
    }

    /// Writes as many of the first `available` resampled frames as belong before `end`, and keeps the others.
    private func emit(
        _ available: Int, through end: Int64, into bytes: inout MutableRawSpan, _ count: inout Int
    ) {
        let ready = Int(min(Int64(available), end - produced))
        let samples = unsafe resampled.samples
        var frames = unsafe samples.mutableSpan
        writer.write(frames.span, ready, into: &bytes, &count)
        produced += Int64(ready)
        held = available - ready
        for sample in 0..<held * channelCount { frames[sample] = frames[ready * channelCount + sample] }
    }
}

/// Writes mixed frames in the output's sample format and layout.
struct FrameWriter {
    let output: AudioFormat
    /// Channels of the frames that are written: as many as the output has, or one that goes to all of them.
    let channelCount: Int

    func write(_ frames: Span<Float>, _ frameCount: Int, into bytes: inout MutableRawSpan, _ count: inout Int) {
        let outputs = output.channelCount
        let capacity = bytes.byteCount / output.bytesPerFrame
        if channelCount == outputs && output.isInterleaved {
            encode(
                output.sampleFormat, from: frames, SampleRun(start: 0, stride: 1), count: frameCount * outputs,
                into: &bytes, SampleRun(start: count * outputs, stride: 1))
        } else {
            for channel in 0..<outputs {
                let from = SampleRun(start: channelCount == 1 ? 0 : channel, stride: channelCount)
                let to =
                    output.isInterleaved
                    ? SampleRun(start: count * outputs + channel, stride: outputs)
                    : SampleRun(start: channel * capacity + count, stride: 1)
                encode(output.sampleFormat, from: frames, from, count: frameCount, into: &bytes, to)
            }
        }
        count += frameCount
    }
}
