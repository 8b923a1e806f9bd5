public import StenoAudio
public import StenoConversion

/// Turns the audio of a source into input for an analyzer: converts it, and gives it exact start times.
///
/// Holds over what does not fill a frame yet; ``finish(_:)`` brings the rest. The source's format may change between
/// buffers. One thread at a time; allocates nothing in the steady state as long as the receiver keeps no buffer.
public final class AnalyzerInputConverter {
    public struct Options: Sendable {
        public var channelPolicy: ChannelPolicy
        public var gapPolicy: GapPolicy
        public var overlapPolicy: OverlapPolicy
        /// A step of the source's clock that is off by less is jitter.
        public var tolerance: MediaTime

        public init(
            channelPolicy: ChannelPolicy = .automatic, gapPolicy: GapPolicy = .fill,
            overlapPolicy: OverlapPolicy = .trim,
            tolerance: MediaTime = MediaTime(value: 50, timescale: 1000)
        ) {
            self.channelPolicy = channelPolicy
            self.gapPolicy = gapPolicy
            self.overlapPolicy = overlapPolicy
            self.tolerance = tolerance
        }
    }

    /// What every recognizer takes, in one form or another: 16 kHz, mono, `int16`.
    public static let compatibleFormat = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)

    public let analyzerFormat: AudioFormat
    /// The counts and the source's clock so far.
    public private(set) var retimer: AnalyzerInputRetimer
    /// What happened to the source's audio so far, on the analyzer's timeline.
    public private(set) var events: [TimelineEvent] = []

    private let gapPolicy: GapPolicy
    private let converter: AudioConverter
    private var output: AudioBuffer
    private var sourceFormat: AudioFormat?
    /// Where the converter's stream began on the timeline.
    private var streamStart: Int64 = 0

    /// - Parameter analyzerFormat: what the analyzer takes; see ``SpeechAnalyzer/bestAvailableAudioFormat(compatibleWith:considering:)``.
    public init(analyzerFormat: AudioFormat, resampler: any ResamplerFactory, options: Options = Options()) {
        self.analyzerFormat = analyzerFormat
        gapPolicy = options.gapPolicy
        converter = AudioConverter(
            to: analyzerFormat, channelPolicy: options.channelPolicy, resampler: resampler)
        output = AudioBuffer(format: analyzerFormat, frameCapacity: 4096)
        retimer = AnalyzerInputRetimer(
            sampleRate: analyzerFormat.sampleRate, overlapPolicy: options.overlapPolicy, tolerance: options.tolerance)
    }

    /// A converter to the best format that all modules take.
    ///
    /// - Throws: `incompatibleAudioFormats` when there is none.
    public static func converter(
        compatibleWith modules: [any SpeechModule], considering natural: AudioFormat? = nil,
        resampler: any ResamplerFactory, options: Options = Options()
    ) throws(StenoError) -> AnalyzerInputConverter {
        guard
            let format = SpeechAnalyzer.bestAvailableAudioFormat(compatibleWith: modules, considering: natural)
        else {
            throw StenoError(.incompatibleAudioFormats, "the \(modules.count) modules have no audio format in common")
        }
        return AnalyzerInputConverter(analyzerFormat: format, resampler: resampler, options: options)
    }

    /// Converts a buffer and hands what is ready to `body`, in order; often once, sometimes not at all.
    ///
    /// - Parameter sourceTime: the time of the first frame by the source's clock, which starts at zero; nil when the
    ///   buffer follows the one before.
    /// - Throws: `unsupportedConversion`, `conversionFailed`, `audioDisordered`, or what `body` throws.
    public func convert(
        _ buffer: AudioBuffer, at sourceTime: MediaTime? = nil, _ body: (AnalyzerInput) throws(StenoError) -> Void
    ) throws(StenoError) {
        guard buffer.frameCount > 0 else { return }
        let placement = try retimer.place(
            frameCount: buffer.frameCount, sampleRate: buffer.format.sampleRate, at: sourceTime)
        if let sourceFormat, sourceFormat != buffer.format {
            note(.formatChanged, frames: 0, detail: "from \(sourceFormat) to \(buffer.format)")
        }
        sourceFormat = buffer.format
        if placement.missingFrames > 0 { try skip(placement.missingFrames, kind: .gap, isAnnounced: false, body) }
        if placement.ignoredStamp { note(.overlapIgnored, frames: 0) }
        if placement.overlappingFrames == 0 {
            try pass(buffer, body)
        } else {
            note(.overlapTrimmed, frames: Int64(placement.overlappingFrames))
            try pass(buffer.copy(frames: placement.overlappingFrames..<buffer.frameCount), body)
        }
    }

    /// Accounts for frames that the source says are missing: silence takes their place, or the next input starts later.
    ///
    /// - Parameter frameCount: at the rate of the buffers before, or the analyzer's before the first.
    public func skip(
        _ frameCount: Int64, kind: TimelineEvent.Kind, _ body: (AnalyzerInput) throws(StenoError) -> Void
    ) throws(StenoError) {
        try skip(frameCount, kind: kind, isAnnounced: true, body)
    }

    /// Hands over all that is still held. The next buffer, if there is one, goes on with the timeline.
    public func finish(_ body: (AnalyzerInput) throws(StenoError) -> Void) throws(StenoError) {
        try converter.finish(into: &output)
        try emit(body)
        streamStart = retimer.nextFrame
    }

    /// Frames that came out, and those still held, less what the source's own count makes of them (law T5).
    public var driftFromSource: Int64 { retimer.nextFrame + converter.heldFrames - retimer.sourceFrames }

    private func skip(
        _ frameCount: Int64, kind: TimelineEvent.Kind, isAnnounced: Bool,
        _ body: (AnalyzerInput) throws(StenoError) -> Void
    ) throws(StenoError) {
        guard frameCount > 0 else { return }
        let format = sourceFormat ?? analyzerFormat
        note(kind, frames: frameCount)
        retimer.skip(frameCount, sampleRate: format.sampleRate, isAnnounced: isAnnounced)
        switch gapPolicy {
        case .keep:
            try finish(body)
            retimer.jump()
            streamStart = retimer.nextFrame
        case .fill:
            var rest = frameCount
            var silence = AudioBuffer.silence(format: format, frameCount: Int(min(rest, Int64(format.sampleRate))))
            while rest > 0 {
                silence.truncate(to: Int(min(rest, Int64(silence.frameCount))))
                rest -= Int64(silence.frameCount)
                try converter.convert(silence, into: &output)
                try emit(body)
            }
        }
    }

    private func pass(_ buffer: AudioBuffer, _ body: (AnalyzerInput) throws(StenoError) -> Void) throws(StenoError) {
        guard buffer.frameCount > 0 else { return }
        retimer.advance(buffer.frameCount, sampleRate: buffer.format.sampleRate)
        try converter.convert(buffer, into: &output)
        try emit(body)
    }

    private func emit(_ body: (AnalyzerInput) throws(StenoError) -> Void) throws(StenoError) {
        for change in converter.takeChannelChanges() {
            let time = MediaTime(frames: streamStart + change.frame, sampleRate: analyzerFormat.sampleRate)
            events.note(
                TimelineEvent(
                    .channels, range: MediaTimeRange(start: time, end: time), detail: change.report.description))
        }
        guard output.frameCount > 0 else { return }
        try body(AnalyzerInput(buffer: output, bufferStartTime: retimer.stamp(frameCount: output.frameCount)))
    }

    /// Notes what happens at the source's present place.
    private func note(_ kind: TimelineEvent.Kind, frames: Int64, detail: String = "") {
        let start = MediaTime(frames: retimer.sourceFrames, sampleRate: analyzerFormat.sampleRate)
        let rate = sourceFormat?.sampleRate ?? analyzerFormat.sampleRate
        let length = MediaTime(frames: frames, sampleRate: rate).converted(to: Int32(analyzerFormat.sampleRate))
        events.note(TimelineEvent(kind, range: MediaTimeRange(start: start, duration: length), detail: detail))
    }
}

extension AnalyzerInputConverter {
    /// Like ``convert(_:at:_:)``, collected in an array. Allocates.
    public func convert(_ buffer: AudioBuffer, at sourceTime: MediaTime? = nil) throws(StenoError) -> [AnalyzerInput] {
        var inputs: [AnalyzerInput] = []
        try convert(buffer, at: sourceTime) { (input) throws(StenoError) in inputs.append(input) }
        return inputs
    }

    /// Like ``finish(_:)``, collected in an array. Allocates.
    public func finish() throws(StenoError) -> [AnalyzerInput] {
        var inputs: [AnalyzerInput] = []
        try finish { (input) throws(StenoError) in inputs.append(input) }
        return inputs
    }
}
