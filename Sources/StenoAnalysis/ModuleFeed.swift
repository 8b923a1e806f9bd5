import StenoAudio
import StenoConversion

/// Brings the audio of a session into the format of one module, if that is another one, on the module's thread.
final class ModuleFeed {
    private let format: AudioFormat
    private let sampleRate: Int
    /// Nil where the formats are the same.
    private let converter: AnalyzerInputConverter?
    /// The session's frame after the last one that came; nil before the first.
    private var end: Int64?

    init(from session: AudioFormat, to format: AudioFormat, resampler: (any ResamplerFactory)?) {
        self.format = format
        sampleRate = session.sampleRate
        converter = resampler.flatMap { resampler in
            session == format
                ? nil
                : AnalyzerInputConverter(analyzerFormat: format, resampler: resampler, options: .init(gapPolicy: .keep))
        }
    }

    func accept(_ buffer: AudioBuffer, start: Int64, by recognizer: any SpeechRecognizer) throws {
        guard let converter else {
            let time = MediaTime(frames: start, sampleRate: sampleRate)
            return try recognizer.accept(AnalyzerInput(buffer: buffer, bufferStartTime: time))
        }
        var inputs: [AnalyzerInput] = []
        // Before its first audio the converter counts at its own rate.
        let missing =
            end.map { start - $0 } ?? MediaTime(frames: start, sampleRate: sampleRate).frames(at: format.sampleRate)
        try converter.skip(missing, kind: .gap) { (input) throws(StenoError) in inputs.append(input) }
        try converter.convert(buffer) { (input) throws(StenoError) in inputs.append(input) }
        end = start + Int64(buffer.frameCount)
        for input in inputs { try recognizer.accept(input) }
    }

    /// Hands over what a resampler still holds. Returns `time`, or the end of all audio where that comes before it.
    func flush(through time: MediaTime, into recognizer: any SpeechRecognizer) throws -> MediaTime {
        guard let converter else { return time }
        for input in try converter.finish() { try recognizer.accept(input) }
        return min(time, MediaTime(frames: converter.retimer.nextFrame, sampleRate: format.sampleRate))
    }
}
