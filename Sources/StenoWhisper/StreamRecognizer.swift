import StenoAnalysis
import StenoAudio

/// One live session: decodes the audio that is not final yet again and again, and commits the words that stay. Speech that
/// gets no text is reported.
final class StreamRecognizer: SpeechRecognizer {
    static let sampleRate = WhisperRecognizer.sampleRate
    /// Less than this is not worth a decode before the utterance ends.
    private static let shortest = sampleRate * 6 / 10
    /// The engine says more or less anything about the first half second of an utterance.
    private static let trusted = sampleRate * 11 / 10
    /// Committed words that stay in the window, so that the next decode is aligned with them.
    private static let anchor = 4
    /// Longer speech without text is told. Up to 0.7 s of it is what passes before and behind the speech.
    private static let longestWithoutText = 3 * sampleRate

    private let session: RecognizerSession<TranscriptionResult>
    private let transcriber: WhisperTranscriber
    private let streaming: WhisperTranscriber.Streaming
    private let decoder: WindowDecoder
    private let filter: SpeechFilter
    private let step: Int
    private let longestWindow: Int

    private var window = SpeechWindow()
    private var agreement = Agreement()
    /// Frames at the end of the window that no decode has heard.
    private var fresh = 0
    /// Text of the same utterance that was committed before the window.
    private var context: [Int32] = []
    private var language: SpokenLanguage?
    /// The frame after the last one accepted.
    private var nextFrame: Int64?
    /// The end of the last final result, in frames of the session.
    private var finalizedEnd = Int64.min
    /// Where volatile text stands.
    private var volatile: Range<Int64>?
    /// Up to where the speech of the utterance has final text.
    private var saidThrough: Int64?
    /// Whether the last decode said something in a loop.
    private var hasLooped = false
    private var threads: ThreadChoice

    init(
        _ transcriber: WhisperTranscriber, _ streaming: WhisperTranscriber.Streaming, detector: SileroModel,
        _ session: RecognizerSession<TranscriptionResult>
    ) throws(StenoError) {
        self.session = session
        self.transcriber = transcriber
        self.streaming = streaming
        decoder = try WindowDecoder(transcriber) { session.isCancelled }
        filter = try SpeechFilter(detector, gate: SpeechGate())
        step = Self.frames(streaming.step)
        longestWindow = Self.frames(streaming.longestWindow)
        threads = ThreadChoice(fixed: transcriber.options.threads, processors: transcriber.threads)
    }

    private static func frames(_ duration: Duration) -> Int { Int(duration / .seconds(1) * Double(sampleRate)) }

    func accept(_ input: AnalyzerInput) throws {
        let samples = input.floats
        let start = input.bufferStartTime?.frames(at: Self.sampleRate) ?? nextFrame ?? 0
        if let end = nextFrame, start > end {
            if start - end <= WhisperRecognizer.longestFilledGap {
                try take([Float](repeating: 0, count: Int(start - end)), at: end)
            } else {
                try endOfAudio()
            }
        }
        try take(samples, at: start)
        // What came while the last decode ran is heard by one decode.
        if fresh >= step, window.count >= Self.shortest { try decode() }
    }

    /// Takes audio in parts, so that a long buffer can be cancelled too, and ends an utterance where it ends.
    private func take(_ samples: [Float], at start: Int64) throws {
        for first in stride(from: 0, to: samples.count, by: SpeechFilter.chunkLength) {
            if session.isCancelled { throw WindowDecoder.cancelled }
            let part = samples[first..<min(first + SpeechFilter.chunkLength, samples.count)]
            nextFrame = start + Int64(part.endIndex)
            try filter.filter(part, pass: append)
            if !filter.isOpen { try endUtterance() }
            if streaming.keepsEveryStep, fresh >= step, window.count >= Self.shortest { try decode() }
        }
    }

    func finalize(through time: MediaTime) throws { try endOfAudio() }

    func finish() throws { try endOfAudio() }

    private func endOfAudio() throws {
        if session.isCancelled { throw WindowDecoder.cancelled }
        try filter.finish(pass: append)
        try endUtterance()
    }

    private func append(_ samples: ArraySlice<Float>, framesBeforeEnd: Int) throws(StenoError) {
        let frame = (nextFrame ?? 0) - Int64(framesBeforeEnd)
        if let end = window.end, end != frame { try endUtterance() }
        var rest = samples
        saidThrough = saidThrough ?? frame
        while !rest.isEmpty {
            let part = rest.prefix(longestWindow - window.count)
            window.append(part, at: frame + Int64(rest.startIndex - samples.startIndex))
            fresh += part.count
            rest = rest.dropFirst(part.count)
            if window.count == longestWindow { try decode() }
        }
    }

    // MARK: Decoding

    /// Hears the window once more, commits what was heard twice, and says what is left as volatile text.
    private func decode() throws(StenoError) {
        let words = try hear(window.samples, isLast: false)
        fresh = 0
        // In so short a window the engine guesses.
        send(agreement.take(words, isTrusted: window.count >= Self.trusted))
        let isFull = window.count == longestWindow
        // Law A5: what nothing confirmed in a whole window is final now, but for its end.
        if isFull {
            let end = window.count - 2 * Self.sampleRate
            send(agreement.commit(agreement.pending.prefix { $0.range.upperBound < end }.count))
        }
        sendVolatile(agreement.pending)
        if isFull || window.count > longestWindow * 2 / 3 { trim(isForced: isFull) }
    }

    /// Commits everything: the speaker paused, or the audio ends.
    private func endUtterance() throws(StenoError) {
        guard window.count > 0 else { return }
        let words = try hear(window.samples, isLast: true)
        send(agreement.rest(after: words))
        sendVolatile([])
        if let end = window.end { reportSpeechWithoutText(before: end) }
        saidThrough = nil
        // What is said after a pause is heard best without what was said before.
        context = []
        window = SpeechWindow()
        agreement = Agreement()
        fresh = 0
    }

    /// What the engine hears in `samples`, without what it said in a loop.
    ///
    /// - Parameter isLast: Whether they are not heard again, and so are worth a second try.
    private func hear(_ samples: [Float], isLast: Bool) throws(StenoError) -> [WindowWord] {
        // Less audio than a second is given to the engine between silence.
        let silence = [Float](repeating: 0, count: max(0, Self.sampleRate - samples.count) / 2)
        let seconds = Double(samples.count + 2 * silence.count) / Double(Self.sampleRate)
        var request = DecodeRequest(
            samples: silence + samples + silence, prompt: transcriber.prompt + context,
            audioContext: Self.audioContext(seconds), maximumTokens: 16 + Int(12 * seconds),
            beamSize: streaming.beamSize, bestOf: 1, temperatureIncrement: 0, threads: threads.count)
        var (words, consumed) = try hear(request, from: silence.count, count: samples.count)
        if isLast, words.isEmpty || words.loop != nil {
            (request.prompt, request.audioContext) = (transcriber.prompt, 0)
            (words, consumed) = try hear(request, from: silence.count, count: samples.count)
        }
        hasLooped = words.loop != nil
        if let loop = words.loop { words.removeLast(words.count - loop) }
        // The engine may stop early.
        if isLast, silence.isEmpty, consumed + Self.sampleRate < samples.count {
            let loopedBefore = hasLooped
            words += try hear(Array(samples[consumed...]), isLast: true).map { $0.moved(by: consumed) }
            hasLooped = hasLooped || loopedBefore
        }
        return words
    }

    /// The words of one decode, in frames behind the padding, and where the engine would go on.
    private func hear(
        _ request: DecodeRequest, from first: Int, count: Int
    ) throws(StenoError) -> ([WindowWord], consumed: Int) {
        let start = ContinuousClock.now
        let decoded = try decoder.decode(request)
        let work = Double(request.audioContext == 0 ? Self.wholeContext : request.audioContext)
        threads.note(cost: (ContinuousClock.now - start) / .seconds(1) / work)
        language = decoded.language
        let loudness = Loudness(Array(request.samples[first..<first + count]))
        let words = decoded.segments.filter { !$0.isMark }.flatMap { segment in
            let segment = segment.moved(by: -first)
            return segment.words(
                in: loudness, within: segment.range.clamped(to: 0..<count), language: decoded.language.code)
        }
        return (words, decoded.consumed)
    }

    /// What the encoder looks at, in its frames of 20 ms: the audio and a margin. With less the engine loops.
    private static func audioContext(_ seconds: Double) -> Int {
        min(wholeContext, max(384, Int(50 * seconds) + 128))
    }
    private static let wholeContext = 1500

    /// Drops audio whose words are committed, at the quietest point between two of them.
    private func trim(isForced: Bool) {
        let committed = agreement.committed
        let count = committed.count - Self.anchor
        if count > 0 {
            cut(at: quietest(between: committed[count - 1].range, and: committed[count].range), words: count)
        } else if isForced {
            // Few words in a long time: none is left that is not final.
            let middle = window.count / 2
            cut(at: middle, words: committed.prefix { $0.range.upperBound <= middle }.count)
        }
    }

    private func cut(at frame: Int, words: Int) {
        remember(agreement.removeFirst(words, frames: frame))
        window.removeFirst(frame)
    }

    /// The middle of the 20 ms with the least energy near the boundary of two words.
    private func quietest(between word: Range<Int>, and next: Range<Int>) -> Int {
        let (length, reach) = (Self.sampleRate / 50, Self.sampleRate / 5)
        let boundary = (word.upperBound + next.lowerBound) / 2
        let first = max(word.lowerBound, boundary - reach, 0)
        let last = min(next.upperBound, boundary + reach, window.count - length)
        guard first < last else { return min(boundary, window.count) }
        func energy(_ start: Int) -> Float { window.samples[start..<start + length].reduce(0) { $0 + $1 * $1 } }
        let starts = stride(from: first, through: last, by: length / 2).map { (energy($0), $0) }
        return (starts.min { $0 < $1 }?.1 ?? boundary) + length / 2
    }

    private func remember(_ words: [WindowWord]) {
        context = (context + words.flatMap(\.tokens)).suffix(transcriber.options.contextLimit)
    }

    // MARK: Results

    /// Makes words final.
    private func send(_ words: [WindowWord]) {
        guard let first = words.first, let last = words.last else { return }
        for word in words {
            let start = window.sessionFrames(word.range.lowerBound..<word.range.lowerBound + 1).lowerBound
            reportSpeechWithoutText(before: start)
            // A word that seems to last longer stands alone in speech of which the engine made nothing.
            saidThrough = max(saidThrough ?? start, start + Int64(min(word.range.count, Self.sampleRate)))
        }
        let frames = window.sessionFrames(
            first.range.lowerBound..<max(last.range.upperBound, first.range.lowerBound + 1))
        let start = max(frames.lowerBound, finalizedEnd)
        finalizedEnd = max(frames.upperBound, start + 1)
        // What a final result does not cover would stand beside it.
        if let standing = volatile, standing.clamped(to: start..<finalizedEnd) != standing { sendVolatile([]) }
        volatile = nil
        send(words, in: start..<finalizedEnd, isFinal: true)
    }

    /// Tells of speech that has no text up to `end`, where there has been much of it.
    private func reportSpeechWithoutText(before end: Int64) {
        guard let start = saidThrough, end - start > Self.longestWithoutText else { return }
        session.report(
            TimelineEvent(
                hasLooped ? .loopCut : .speechWithoutText,
                range: MediaTimeRange(start..<end, sampleRate: Self.sampleRate),
                detail: hasLooped ? "the engine repeated itself, and that was cut" : "speech without text"))
    }

    /// Replaces the volatile text.
    private func sendVolatile(_ words: [WindowWord]) {
        guard streaming.reportsVolatileResults, let end = window.end else { return }
        let standing = volatile ?? end..<end
        let start = words.isEmpty ? end : max(finalizedEnd, end - Int64(window.count))
        let range = min(start, standing.lowerBound)..<max(end, standing.upperBound)
        guard !range.isEmpty, !words.isEmpty || volatile != nil else { return }
        volatile = words.isEmpty ? nil : range
        send(words, in: range, isFinal: false)
    }

    private func send(_ words: [WindowWord], in range: Range<Int64>, isFinal: Bool) {
        let bounds = MediaTimeRange(range, sampleRate: Self.sampleRate)
        let timed = words.compactMap { word -> TranscribedWord? in
            let frames = window.sessionFrames(
                word.range.lowerBound..<max(word.range.upperBound, word.range.lowerBound + 1))
            let text = word.text.trimmed
            return text.isEmpty
                ? nil
                : TranscribedWord(
                    text, range: MediaTimeRange(frames, sampleRate: Self.sampleRate).clamped(to: bounds),
                    confidence: word.confidence)
        }
        session.send(
            TranscriptionResult(
                range: bounds, text: words.map(\.text).joined().trimmed,
                words: transcriber.options.wordTimes ? timed : [], language: language?.code,
                languageConfidence: language?.confidence, isFinal: isFinal))
    }
}
