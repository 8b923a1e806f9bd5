import Dispatch
import StenoAnalysis
import StenoAudio

/// Audio that waits to be decoded, and the state of the engine that decodes it, pass by pass.
final class WindowPasses {
    /// Less audio than this is given to the engine between silence, which does not count in times: whisper.cpp reads
    /// beyond audio that is very short, and Whisper is deaf to a word right at the start.
    private static let shortLength = WhisperRecognizer.sampleRate
    private static let silence = [Float](repeating: 0, count: shortLength / 2)
    /// Before an end shorter than this whisper.cpp drops the context, which leads it to repeat itself.
    private static let shortEnd = 5 * WhisperRecognizer.sampleRate
    /// An end no longer than this is not worth a pass when text came before; whisper.cpp leaves it out.
    private static let negligibleLength = WhisperRecognizer.sampleRate / 10
    /// Longer speech behind the last text is heard again. A pause that the detector let pass is shorter.
    private static let longestSilentEnd = WhisperRecognizer.sampleRate * 6 / 5

    var window = SpeechWindow()
    /// Whether the text of the passes before is the context of the next.
    var hasContext = false
    let decoder: WindowDecoder
    /// Whether all of the window is speech.
    private let isSpeech: Bool
    private let options: WhisperTranscriber.Options
    /// Frames before the window in what the pass hears.
    private var padding = 0

    /// - Parameter wake: Signalled after each pass.
    init(
        _ transcriber: WhisperTranscriber, isSpeech: Bool, wake: DispatchSemaphore = DispatchSemaphore(value: 0),
        isCancelled: @escaping @Sendable () -> Bool
    ) throws(StenoError) {
        decoder = try WindowDecoder(transcriber, wake: wake, isCancelled: isCancelled)
        self.isSpeech = isSpeech
        options = transcriber.options
    }

    /// Whether all is heard that is worth it.
    var isDone: Bool { window.count <= (hasContext ? Self.negligibleLength : 0) }

    /// Starts to decode what one pass reaches; ``end()`` must follow.
    ///
    /// - Parameter isEnd: Whether no audio follows the window.
    func begin(isEnd: Bool, prompt: [Int32], threads: Int) throws(StenoError) {
        let silence = window.count < Self.shortLength ? Self.silence : []
        padding = silence.count
        try decoder.begin(
            DecodeRequest(
                samples: silence + window.samples + silence,
                usesContext: hasContext && !isSpeech && !(isEnd && window.count <= Self.shortEnd),
                keepsOpenEnd: isSpeech, prompt: prompt, beamSize: options.beamSize, bestOf: options.bestOf,
                temperatureIncrement: options.temperatureIncrement, threads: threads))
    }

    /// Blocks until the pass is done, and drops the audio that it covers.
    func end() throws(StenoError) -> HeardWindow {
        let decoded = try decoder.end()
        hasContext = true
        var consumed = padding == 0 ? min(decoded.consumed, window.count) : window.count
        // whisper.cpp takes what is behind a text that it completed for silence.
        if isSpeech, let end = decoded.segments.last?.range.upperBound, end > 0 {
            if end + Self.longestSilentEnd < window.count { consumed = min(consumed, end) }
        }
        defer { window.removeFirst(consumed) }
        return HeardWindow(
            window: window, padding: padding, speech: isSpeech ? consumed : nil, decoded: decoded)
    }
}

/// What one pass heard, and where.
struct HeardWindow {
    var window: SpeechWindow
    /// Frames before the window in what the pass heard.
    var padding: Int
    /// How much of it is known to be speech and is not heard again.
    var speech: Int?
    var decoded: DecodedWindow
}

/// The final results of one session of whole-file decoding, in order.
struct FileResults {
    /// No text is spoken in less.
    private static let shortestText = WhisperRecognizer.sampleRate / 10
    /// Longer speech without text is told. Pauses of up to a second are in it.
    private static let longestWithoutText = 3 * WhisperRecognizer.sampleRate

    private let session: RecognizerSession<TranscriptionResult>
    private let options: WhisperTranscriber.Options
    /// The end of the last result, in frames of the session.
    private var finalizedEnd = Int64.min

    init(_ session: RecognizerSession<TranscriptionResult>, _ options: WhisperTranscriber.Options) {
        self.session = session
        self.options = options
    }

    mutating func send(_ heard: HeardWindow) {
        let loudness = Loudness(heard.window.samples)
        var said = 0
        func tell(before end: Int) {
            guard heard.speech != nil, end - said > Self.longestWithoutText else { return }
            let range = MediaTimeRange(
                heard.window.sessionFrames(said..<end), sampleRate: WhisperRecognizer.sampleRate)
            session.report(TimelineEvent(.speechWithoutText, range: range, detail: "speech without text"))
        }
        for segment in heard.decoded.segments where !segment.isMark {
            let segment = segment.moved(by: -heard.padding)
            tell(before: min(segment.range.lowerBound, heard.window.count))
            said = max(said, segment.range.upperBound)
            send(segment, of: heard.window, loudness, language: heard.decoded.language)
        }
        if let end = heard.speech { tell(before: end) }
    }

    /// Sends a segment as one result, or as several where audio was left out within it.
    private mutating func send(
        _ segment: DecodedWindow.Segment, of window: SpeechWindow, _ loudness: Loudness, language: SpokenLanguage
    ) {
        // What begins behind the audio was heard in the silence.
        if segment.range.lowerBound >= window.count { return }
        let start = max(0, segment.range.lowerBound)
        let bounds = start..<min(max(segment.range.upperBound, start + Self.shortestText), window.count)
        let words = segment.words(in: loudness, within: bounds, language: options.translate ? "en" : language.code)
        guard options.wordTimes else { return send(words, in: bounds, of: window, language: language) }
        func piece(of word: WindowWord) -> Range<Int> {
            let start = min(word.range.lowerBound, bounds.upperBound - 1)
            return window.mainPiece(of: start..<max(start + 1, word.range.upperBound))
        }
        var rest = words[...]
        while let first = rest.first {
            let home = piece(of: first)
            let part = rest.prefix { piece(of: $0) == home }
            send(Array(part), in: bounds.clamped(to: home), of: window, language: language)
            rest = rest.dropFirst(part.count)
        }
    }

    private mutating func send(
        _ words: [WindowWord], in range: Range<Int>, of window: SpeechWindow, language: SpokenLanguage
    ) {
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
                range: bounds, text: text, words: options.wordTimes ? timed : [], language: language.code,
                languageConfidence: language.confidence, isFinal: true))
    }

    private func time(_ frames: Range<Int64>) -> MediaTimeRange {
        MediaTimeRange(frames, sampleRate: WhisperRecognizer.sampleRate)
    }
}
