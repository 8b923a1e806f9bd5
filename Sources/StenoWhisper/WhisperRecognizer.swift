import StenoAnalysis
import StenoAudio

/// One session of whole-file decoding of everything: a window of audio, decoded when it holds more than the engine takes
/// in one pass.
final class WhisperRecognizer: SpeechRecognizer {
    static let sampleRate = 16_000
    /// What one pass of the encoder hears.
    static let passLength = 30 * sampleRate
    /// Audio behind the pass, so that whisper.cpp does not take the end of the pass for the end of the audio.
    private static let lookahead = sampleRate / 2
    /// A longer gap in the audio ends what came before.
    static let longestFilledGap = Int64(sampleRate)

    private let session: RecognizerSession<TranscriptionResult>
    private let transcriber: WhisperTranscriber
    private let passes: WindowPasses
    private var results: FileResults
    private var usesPrompt = true
    /// The frame after the last one accepted.
    private var nextFrame: Int64?

    init(_ transcriber: WhisperTranscriber, _ session: RecognizerSession<TranscriptionResult>) throws(StenoError) {
        self.session = session
        self.transcriber = transcriber
        passes = try WindowPasses(transcriber, isSpeech: false) { session.isCancelled }
        results = FileResults(session, transcriber.options)
    }

    func accept(_ input: AnalyzerInput) throws {
        let samples = input.floats
        let start = input.bufferStartTime?.frames(at: Self.sampleRate) ?? nextFrame ?? 0
        if let end = nextFrame, start > end {
            if start - end <= Self.longestFilledGap {
                try append([Float](repeating: 0, count: Int(start - end)), at: end)
            } else {
                try finish()
                passes.hasContext = false
            }
        }
        try append(samples, at: start)
        nextFrame = start + Int64(samples.count)
    }

    func finalize(through time: MediaTime) throws { try finish() }

    func finish() throws {
        if session.isCancelled { throw WindowDecoder.cancelled }
        while !passes.isDone { try decode(isEnd: true) }
        passes.window.removeFirst(passes.window.count)
    }

    /// Adds audio to the window, and decodes whenever the window is full: at the same frame, however the audio was cut.
    private func append(_ samples: [Float], at start: Int64) throws(StenoError) {
        var rest = samples[...]
        while !rest.isEmpty {
            let part = rest.prefix(Self.passLength + Self.lookahead - passes.window.count)
            passes.window.append(part, at: start + Int64(rest.startIndex))
            rest = rest.dropFirst(part.count)
            if passes.window.count == Self.passLength + Self.lookahead { try decode(isEnd: false) }
        }
    }

    private func decode(isEnd: Bool) throws(StenoError) {
        try passes.begin(
            isEnd: isEnd, prompt: usesPrompt ? transcriber.prompt : [], threads: transcriber.threads)
        results.send(try passes.end())
        usesPrompt = false
    }
}

extension AnalyzerInput {
    /// The samples, from -1 to 1.
    var floats: [Float] {
        switch bufferFormat.sampleFormat {
        case .int16: buffer.samples(of: Int16.self).map { Float($0) / 32768 }
        default: buffer.samples(of: Float.self)
        }
    }
}

extension MediaTimeRange {
    init(_ frames: Range<Int64>, sampleRate: Int) {
        self.init(
            start: MediaTime(frames: frames.lowerBound, sampleRate: sampleRate),
            end: MediaTime(frames: frames.upperBound, sampleRate: sampleRate))
    }
}
