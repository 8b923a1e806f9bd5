import StenoAnalysis
import StenoAudio

/// One session of a ``VoskTranscriber``.
///
/// Audio goes to libvosk in blocks of equal length, counted from the start, after a gap from there: where an utterance
/// ends does not depend on how the audio was cut (law T3).
final class VoskRecognizer: SpeechRecognizer {
    private let transcriber: VoskTranscriber
    private let session: RecognizerSession<TranscriptionResult>
    private let sampleRate: Int
    private let recyclingFrames: Int64
    private let blockCapacity: Int
    private var block: [Float] = []

    private var engine: VoskEngine
    private var grammarVersion: Int
    /// Where the engine's time 0 lies, as if its audio had no gaps.
    private var engineStart = MediaTime.zero
    /// What the engine was given since its last final result.
    private var unflushedFrames: Int64 = 0

    /// The earliest time that is not final yet.
    private var finalEnd = MediaTime.zero
    private var utteranceStart = MediaTime.zero
    /// The last volatile result of the utterance, while it stands.
    private var volatileResult: TranscriptionResult?

    init(transcriber: VoskTranscriber, session: RecognizerSession<TranscriptionResult>) throws(StenoError) {
        let format = session.format
        guard transcriber.compatibleAudioFormats.contains(format) else {
            throw StenoError(
                .invalidArgument, "Vosk takes \(transcriber.compatibleAudioFormats), not \(format)")
        }
        self.transcriber = transcriber
        self.session = session
        sampleRate = format.sampleRate
        recyclingFrames = Int64(transcriber.options.recyclingInterval / .seconds(1) * Double(format.sampleRate))
        // 0.1 s, which decodes well within what law A9 allows until a cancel takes effect.
        blockCapacity = format.sampleRate / 10
        block.reserveCapacity(blockCapacity)
        (engine, grammarVersion) = try Self.makeEngine(transcriber, sampleRate: sampleRate)
        placeEngine(at: .zero)
    }

    private static func makeEngine(
        _ transcriber: VoskTranscriber, sampleRate: Int
    ) throws(StenoError) -> (VoskEngine, Int) {
        let grammar = transcriber.currentGrammar
        let engine = try VoskEngine(
            model: transcriber.model, sampleRate: sampleRate, grammar: grammar.json, options: transcriber.options)
        try engine.warmUp(sampleRate: sampleRate)
        return (engine, grammar.version)
    }

    func accept(_ input: AnalyzerInput) throws {
        if session.isCancelled { return }
        let end = decodedEnd + MediaTime(frames: Int64(block.count), sampleRate: sampleRate)
        let start = input.bufferStartTime ?? end
        if (start - end).frames(at: sampleRate, rounding: .towardZero) > 0 {
            try flush()
            placeEngine(at: start)
            (finalEnd, utteranceStart) = (start, start)
        }
        switch session.format.sampleFormat {
        case .int16: try append(input.buffer) { (sample: Int16) in Float(sample) }
        default:
            // libvosk ends the process when it meets a value that is no number.
            try append(input.buffer) { (sample: Float) in sample.isNaN ? 0 : max(-1, min(1, sample)) * 32768 }
        }
    }

    func finalize(through time: MediaTime) throws { try flush() }

    func finish() throws { try flush() }

    /// The end of what the engine was given.
    private var decodedEnd: MediaTime { time(atFrame: engine.frameCount) }

    private func time(atFrame frame: Int64) -> MediaTime {
        engineStart + MediaTime(frames: frame, sampleRate: sampleRate)
    }

    private func append<Sample: AudioSample>(
        _ buffer: AudioBuffer, scaled: (Sample) -> Float
    ) throws(StenoError) {
        try buffer.withSamples(of: Sample.self) { (samples) throws(StenoError) in
            for index in samples.indices {
                block.append(scaled(samples[index]))
                guard block.count == blockCapacity else { continue }
                if session.isCancelled { return }
                try decodeBlock()
            }
        }
    }

    private func decodeBlock() throws(StenoError) {
        if hasNewGrammar, try engine.partialResult().best.text.isEmpty {
            try finalizeUtterance()
            try renewEngine()
        }
        let endsUtterance = try engine.accept(block)
        unflushedFrames += Int64(block.count)
        block.removeAll(keepingCapacity: true)
        if !endsUtterance {
            if transcriber.options.volatileResults != .off { try publishVolatile() }
        } else if hasNewGrammar || unflushedFrames >= recyclingFrames {
            try finalizeUtterance()
            if hasNewGrammar { try renewEngine() }
        } else {
            try publishFinal(engine.result())
        }
    }

    /// Makes all audio that was accepted final: libvosk cannot do so for a part of it.
    private func flush() throws(StenoError) {
        if session.isCancelled { return }
        if !block.isEmpty { try decodeBlock() }
        if unflushedFrames > 0 { try finalizeUtterance() }
    }

    private func finalizeUtterance() throws(StenoError) {
        try publishFinal(engine.finalResult())
        unflushedFrames = 0
    }

    private var hasNewGrammar: Bool { transcriber.currentGrammar.version != grammarVersion }

    private func renewEngine() throws(StenoError) {
        let end = decodedEnd
        (engine, grammarVersion) = try Self.makeEngine(transcriber, sampleRate: sampleRate)
        placeEngine(at: end)
    }

    /// Says that the engine's next audio starts at `time`.
    private func placeEngine(at time: MediaTime) {
        engineStart = time - MediaTime(frames: engine.frameCount, sampleRate: sampleRate)
    }

    private func publishVolatile() throws(StenoError) {
        let result = result(of: try engine.partialResult(), isFinal: false)
        guard result.text != volatileResult?.text ?? "" || result.words != volatileResult?.words ?? [] else { return }
        volatileResult = result.isEmpty ? nil : result
        session.send(result)
    }

    /// Ends the utterance.
    private func publishFinal(_ output: VoskOutput) {
        let result = result(of: output, isFinal: true)
        if !result.isEmpty {
            session.send(result)
            finalEnd = result.range.end
        }
        // The final result ends with the last word; the volatile one also claimed what followed.
        if let range = volatileResult?.range, range.end > finalEnd {
            session.send(.revocation(of: MediaTimeRange(start: max(range.start, finalEnd), end: range.end)))
        }
        volatileResult = nil
        utteranceStart = decodedEnd
    }

    private func result(of output: VoskOutput, isFinal: Bool) -> TranscriptionResult {
        let (text, spoken) = output.best
        // The first words of an utterance may lie before its start: what waited for context when the one before ended.
        var earliest = finalEnd
        let words = spoken.map { word in
            func time(_ seconds: Double) -> MediaTime {
                let frame = Int64((seconds * Double(sampleRate)).rounded())
                return min(max(self.time(atFrame: frame), earliest), decodedEnd)
            }
            let start = time(word.start)
            earliest = start
            let end = time(word.end)
            earliest = end
            return TranscribedWord(word.word, range: MediaTimeRange(start: start, end: end), confidence: word.conf)
        }
        var range = MediaTimeRange(start: utteranceStart, end: decodedEnd)
        if isFinal, let first = words.first?.range, let last = words.last?.range {
            range = MediaTimeRange(start: first.start, end: last.end)
        }
        return TranscriptionResult(
            range: range, text: text, words: transcriber.options.wordTimes ? words : [],
            alternatives: output.others, isFinal: isFinal)
    }
}
