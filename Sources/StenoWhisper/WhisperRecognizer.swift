import StenoAnalysis
import StenoAudio

/// One session of whole-file decoding: a window of audio, decoded when it holds more than the engine takes in one pass.
final class WhisperRecognizer: SpeechRecognizer {
    static let sampleRate = 16_000
    /// What one pass of the encoder hears.
    private static let passLength = 30 * sampleRate
    /// Audio behind the pass, so that whisper.cpp does not take the end of the pass for the end of the audio.
    private static let lookahead = sampleRate / 2
    /// Less audio than this is given to the engine between silence, which does not count in times: whisper.cpp reads
    /// beyond audio that is very short, and Whisper is deaf to a word right at the start.
    private static let shortLength = sampleRate
    private static let silence = [Float](repeating: 0, count: sampleRate / 2)
    /// No text is spoken in less.
    private static let shortestText = sampleRate / 10
    /// An end no longer than this is not worth a pass when text came before; whisper.cpp leaves it out.
    private static let negligibleLength = sampleRate / 10
    /// Before an end shorter than this whisper.cpp drops the context, which leads it to repeat itself.
    private static let shortEnd = 5 * sampleRate
    /// A second between sentences is heard as it is.
    private static let gate = SpeechGate(longestPause: 32)
    /// A longer gap in the audio ends what came before.
    static let longestFilledGap = Int64(sampleRate)

    private let session: RecognizerSession<TranscriptionResult>
    private let decoder: WindowDecoder
    private let filter: SpeechFilter?
    private let transcriber: WhisperTranscriber
    private let options: WhisperTranscriber.Options
    private var window = SpeechWindow()
    /// The frame after the last one accepted.
    private var nextFrame: Int64?
    private var usesPrompt = true
    private var hasContext = false
    /// The end of the last result, in frames of the session.
    private var finalizedEnd = Int64.min

    init(_ transcriber: WhisperTranscriber, _ session: RecognizerSession<TranscriptionResult>) throws(StenoError) {
        self.session = session
        decoder = try WindowDecoder(transcriber) { session.isCancelled }
        filter = if let detector = transcriber.detector { try SpeechFilter(detector, gate: Self.gate) } else { nil }
        self.transcriber = transcriber
        options = transcriber.options
    }

    func accept(_ input: AnalyzerInput) throws {
        let samples = input.floats
        let start = input.bufferStartTime?.frames(at: Self.sampleRate) ?? nextFrame ?? 0
        if let end = nextFrame, start > end {
            if start - end <= Self.longestFilledGap {
                try take([Float](repeating: 0, count: Int(start - end)), at: end)
            } else {
                try decodeEverything()
                hasContext = false
            }
        }
        try take(samples, at: start)
        nextFrame = start + Int64(samples.count)
    }

    func finalize(through time: MediaTime) throws { try decodeEverything() }

    func finish() throws { try decodeEverything() }

    /// Takes audio second by second, so that a long buffer can be cancelled too and needs no more memory.
    private func take(_ samples: [Float], at start: Int64) throws(StenoError) {
        for first in stride(from: 0, to: samples.count, by: Self.sampleRate) {
            if session.isCancelled { throw WindowDecoder.cancelled }
            let part = samples[first..<min(first + Self.sampleRate, samples.count)]
            guard let filter else {
                try append(part, at: start + Int64(first))
                continue
            }
            let end = start + Int64(part.endIndex)
            try filter.filter(part) { (speech, framesBeforeEnd) throws(StenoError) in
                try append(speech, at: end - Int64(framesBeforeEnd))
            }
        }
    }

    /// Adds audio to the window, and decodes whenever the window is full: at the same frame, however the audio was cut.
    private func append(_ samples: ArraySlice<Float>, at frame: Int64) throws(StenoError) {
        var (rest, frame) = (samples, frame)
        while !rest.isEmpty {
            let part = rest.prefix(Self.passLength + Self.lookahead - window.samples.count)
            window.append(part, at: frame)
            rest = rest.dropFirst(part.count)
            frame += Int64(part.count)
            if window.samples.count == Self.passLength + Self.lookahead { try decodeWindow(isEnd: false) }
        }
    }

    private func decodeEverything() throws(StenoError) {
        if session.isCancelled { throw WindowDecoder.cancelled }
        if let filter, let end = nextFrame {
            try filter.finish { (speech, framesBeforeEnd) throws(StenoError) in
                try append(speech, at: end - Int64(framesBeforeEnd))
            }
        }
        while window.samples.count > (hasContext ? Self.negligibleLength : 0) { try decodeWindow(isEnd: true) }
        window.removeFirst(window.samples.count)
    }

    /// Decodes what one pass reaches, sends the results, and drops the audio that they cover.
    private func decodeWindow(isEnd: Bool) throws(StenoError) {
        let count = window.samples.count
        let usesContext = hasContext && !(isEnd && count <= Self.shortEnd)
        let silence = count < Self.shortLength ? Self.silence : []
        let decoded = try decoder.decode(
            DecodeRequest(
                samples: silence + window.samples + silence, usesContext: usesContext,
                prompt: usesPrompt ? transcriber.prompt : [], beamSize: options.beamSize, bestOf: options.bestOf,
                temperatureIncrement: options.temperatureIncrement, threads: transcriber.threads))
        (hasContext, usesPrompt) = (true, false)
        let loudness = Loudness(window.samples)
        for segment in decoded.segments where !segment.isMark {
            send(segment.moved(by: -silence.count), loudness, language: decoded.language)
        }
        window.removeFirst(silence.isEmpty ? min(decoded.consumed, count) : count)
    }

    /// Sends a segment as one result, or as several where audio was left out within it.
    private func send(_ segment: DecodedWindow.Segment, _ loudness: Loudness, language: String?) {
        let count = window.samples.count
        // What begins behind the audio was heard in the silence.
        if segment.range.lowerBound >= count { return }
        let start = max(0, segment.range.lowerBound)
        let bounds = start..<min(max(segment.range.upperBound, start + Self.shortestText), count)
        let words = segment.words(in: loudness, within: bounds, language: options.translate ? "en" : language)
        guard options.wordTimes else { return send(words, in: bounds, language: language) }
        func piece(of word: WindowWord) -> Range<Int> {
            let start = min(word.range.lowerBound, bounds.upperBound - 1)
            return window.mainPiece(of: start..<max(start + 1, word.range.upperBound))
        }
        var rest = words[...]
        while let first = rest.first {
            let home = piece(of: first)
            let part = rest.prefix { piece(of: $0) == home }
            send(Array(part), in: bounds.clamped(to: home), language: language)
            rest = rest.dropFirst(part.count)
        }
    }

    private func send(_ words: [WindowWord], in range: Range<Int>, language: String?) {
        let text = words.map(\.text).joined().trimmed
        if text.isEmpty { return }
        let frames = window.sessionFrames(range)
        let start = max(frames.lowerBound, finalizedEnd)
        // Text is not lost, whatever its times are.
        finalizedEnd = max(frames.upperBound, start + 1)
        let bounds = time(start..<finalizedEnd)
        // Words have times only where no audio was left out within `range`, so one shift places them all.
        let shift = frames.lowerBound - Int64(range.lowerBound)
        let timed = words.compactMap { word -> TranscribedWord? in
            let heard = word.range.clamped(to: range)
            let placed = time(Int64(heard.lowerBound) + shift..<Int64(heard.upperBound) + shift)
            let text = word.text.trimmed
            return text.isEmpty
                ? nil : TranscribedWord(text, range: placed.clamped(to: bounds), confidence: word.confidence)
        }
        session.send(
            TranscriptionResult(
                range: bounds, text: text, words: options.wordTimes ? timed : [], language: language, isFinal: true))
    }

    private func time(_ frames: Range<Int64>) -> MediaTimeRange {
        MediaTimeRange(frames, sampleRate: Self.sampleRate)
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
