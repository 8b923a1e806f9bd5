import Foundation
import StenoAnalysis
import StenoAudio
import StenoTesting
import StenoWhisper
import Testing

/// Live decoding with the real engine and the smallest model, at every step, so that a slow machine hears the same.
@Suite(.serialized) struct StreamTests {
    func makeLive(_ change: (inout WhisperTranscriber.Streaming) -> Void = { _ in }) throws -> WhisperTranscriber {
        var streaming = WhisperTranscriber.Streaming.balanced
        streaming.keepsEveryStep = true
        change(&streaming)
        return try makeTranscriber(detector: true) { $0.streaming = streaming }
    }

    func stream(
        _ samples: [Int16], chunk: Int = 1600, _ change: (inout WhisperTranscriber.Streaming) -> Void = { _ in }
    ) throws -> [TranscriptionResult] { try streamWithEvents(samples, chunk: chunk, change).results }

    func streamWithEvents(
        _ samples: [Int16], chunk: Int = 1600, _ change: (inout WhisperTranscriber.Streaming) -> Void = { _ in }
    ) throws -> (results: [TranscriptionResult], events: [TimelineEvent]) {
        let session = Session()
        let recognizer = try session.recognizer(makeLive(change))
        try recognizer.accept(samples, chunk: chunk)
        try recognizer.finish()
        check(session.results, frames: samples.count)
        return (session.results, session.events)
    }

    /// Law A4 for what a recognizer sends by itself.
    func check(_ results: [TranscriptionResult], frames: Int, at here: SourceLocation = #_sourceLocation) {
        var end = MediaTime.zero
        let limit = MediaTime(frames: Int64(frames), sampleRate: 16_000)
        for result in results {
            #expect(result.range.start >= end && result.range.end <= limit, sourceLocation: here)
            var wordEnd = result.range.start
            for word in result.words {
                let range = word.range ?? MediaTimeRange(start: .zero, end: .zero)
                #expect(range.start >= wordEnd && range.end <= result.range.end, "\(word)", sourceLocation: here)
                wordEnd = range.start
            }
            if result.isFinal { end = result.range.end }
        }
        #expect(results.last?.isFinal != false || results.last?.isEmpty == true, sourceLocation: here)
    }

    func finals(_ results: [TranscriptionResult]) -> [String] { plainWords(results.filter(\.isFinal).map(\.text)) }

    @Test func saysWhatIsSaidWhileItIsSaid() throws {
        let jfk = try Fixtures.jfk.get()
        let (results, events) = try streamWithEvents(jfk)
        #expect(editDistance(finals(results), plainWords([RecognizerTests.jfkText])) <= 2)
        #expect(events.isEmpty)
        // Final text comes all the way, not at the end, and volatile text before it.
        #expect(results.filter { $0.isFinal && !$0.isEmpty }.count >= 4)
        let first = try #require(results.first)
        #expect(!first.isFinal && first.range.end.seconds < 2)
        let words = results.filter(\.isFinal).flatMap(\.words)
        #expect(abs((words.first { $0.text.hasPrefix("Americans") }?.range?.end.seconds ?? 0) - 2.2) < 0.4)
        #expect(abs((words.last { $0.text.lowercased() == "ask" }?.range?.start.seconds ?? 0) - 8.2) < 0.4)
    }

    @Test func volatileTextCanBeTurnedOff() throws {
        let speech = try Fixtures.speech(RecognizerTests.sentences[1])
        let results = try stream(speech) { $0.reportsVolatileResults = false }
        #expect(!results.isEmpty && results.allSatisfy(\.isFinal))
    }

    @Test(arguments: [533, 16_000, 1 << 20]) func chunkingIsInvisible(chunk: Int) throws {
        let samples = Array(try Fixtures.jfk.get().prefix(4 * 16_000))
        #expect(try stream(samples, chunk: chunk) == stream(samples))
    }

    /// What came while a decode ran is heard at once, and nothing is lost by it.
    @Test func aBacklogIsHeardInFewDecodes() throws {
        let jfk = try Fixtures.jfk.get()
        let results = try stream(jfk, chunk: 4 * 16_000) { $0.keepsEveryStep = false }
        #expect(editDistance(finals(results), plainWords([RecognizerTests.jfkText])) <= 2)
    }

    @Test func hearsNothingWhereNothingIsSaid() throws {
        var random = SystemRandomNumberGenerator()
        // Chords, and breath: noise that swells.
        let music = (0..<160_000).map { frame in
            let time = Double(frame) / 16_000
            return Int16(2000 * [220.0, 277.2, 329.6].reduce(0) { $0 + sin(2 * .pi * $1 * time) })
        }
        let breath = (0..<160_000).map { frame in
            let swell = max(0, sin(2 * .pi * Double(frame) / 48_000))
            return Int16(Double.random(in: -400...400, using: &random) * swell)
        }
        for samples in [Fixtures.silence(10), Fixtures.noise(10, decibels: -55), music, breath] {
            #expect(try stream(samples).isEmpty)
        }
    }

    /// Utterances in silence: each one's text, its start and end within 0.25 s, and nothing invented between or behind.
    @Test func utterancesAreWhereTheyWereSaid() throws {
        let sentences = [0, 4, 5].map { RecognizerTests.sentences[$0] }
        var samples: [Int16] = []
        var places: [ClosedRange<Double>] = []
        for (sentence, pause) in zip(sentences, [3.0, 12.3, 5.7]) {
            samples += Fixtures.silence(pause)
            let speech = try Fixtures.speech(sentence, speed: 110)
            places.append(Double(samples.count) / 16_000...Double(samples.count + speech.count) / 16_000)
            samples += speech
        }
        samples += Fixtures.silence(8)
        let words = try stream(samples).filter(\.isFinal).flatMap(\.words)
        for (sentence, place) in zip(sentences, places) {
            let said = words.filter { place.lowerBound - 1...place.upperBound + 1 ~= $0.range?.start.seconds ?? -9 }
            #expect(editDistance(plainWords(said.map(\.text)), plainWords([sentence])) <= 1)
            #expect(abs((said.first?.range?.start.seconds ?? -9) - place.lowerBound) < 0.25)
            #expect(abs((said.last?.range?.end.seconds ?? -9) - place.upperBound) < 0.25)
        }
        #expect(abs(words.count - plainWords(sentences).count) <= 2)
    }

    /// Where the engine makes nothing of speech, or repeats itself, that is told: no text is lost in silence.
    @Test func speechWithoutTextIsTold() throws {
        let speech = try Fixtures.speech(String(repeating: "stop ", count: 40), speed: 260)
        let end = 2 + Double(speech.count) / 16_000
        let (results, events) = try streamWithEvents(Fixtures.silence(2) + speech + Fixtures.silence(2))
        let said = finals(results).count
        let silent = events.filter { [.speechWithoutText, .loopCut].contains($0.kind) }
        #expect(said < 40 && !silent.isEmpty, "\(said) words, \(events)")
        for event in events {
            #expect(event.range.start.seconds > 1 && event.range.end.seconds < end + 1)
            #expect(event.range.duration.seconds > 2 && !event.detail.isEmpty)
        }
    }

    /// The end of the audio right behind the last word costs nothing.
    @Test func finishSaysWhatIsLeft() throws {
        let speech = try Fixtures.speech(RecognizerTests.sentences[4], speed: 110)
        let offline = plainWords(try transcribe(speech, detector: true).map(\.text))
        #expect(try editDistance(finals(stream(speech)), offline) <= 1)
        #expect(try finals(stream(Fixtures.speech("yes", speed: 220))).count == 1)
    }

    @Test func finalizeLeavesNothingVolatile() throws {
        let speech = try Fixtures.speech(RecognizerTests.sentences[4], speed: 110)
        let session = Session()
        let recognizer = try session.recognizer(makeLive())
        try recognizer.accept(speech)
        try recognizer.finalize(through: MediaTime(frames: Int64(speech.count), sampleRate: 16_000))
        let said = plainWords([RecognizerTests.sentences[4]])
        #expect(editDistance(finals(session.results), said) <= 1)
        try recognizer.accept(speech, start: speech.count)
        try recognizer.finish()
        check(session.results, frames: 2 * speech.count)
        #expect(editDistance(finals(session.results), said + said) <= 2)
    }

    /// Law A5: speech without a pause is final by and by, and the window stays within its bound.
    @Test func speechWithoutAPauseBecomesFinal() throws {
        let jfk = try Fixtures.jfk.get()
        // Nothing between the words is quiet enough for the detector.
        let loud = jfk.filter { abs(Int($0)) > 0 } + jfk
        let results = try stream(loud) { $0.longestWindow = .seconds(6) }
        var volatileSince = MediaTime.zero
        for result in results {
            if result.isFinal { volatileSince = result.range.end }
            #expect((result.range.end - volatileSince).seconds < 8)
        }
        #expect(editDistance(finals(results), plainWords([RecognizerTests.jfkText, RecognizerTests.jfkText])) <= 8)
    }

    @Test func missingAudioIsNotSplicedOver() throws {
        let speech = try Fixtures.speech(RecognizerTests.sentences[4], speed: 110)
        let session = Session()
        let recognizer = try session.recognizer(makeLive())
        try recognizer.accept(speech)
        let second = speech.count + 5 * 16_000
        try recognizer.accept(speech, start: second)
        try recognizer.finish()
        check(session.results, frames: second + speech.count)
        let words = session.results.filter(\.isFinal).flatMap(\.words)
        let border = Double(speech.count) / 16_000
        #expect(
            words.allSatisfy {
                ($0.range?.end.seconds ?? 0) <= border || ($0.range?.start.seconds ?? 0) >= border + 4.9
            })
        #expect(abs(words.count - 2 * plainWords([RecognizerTests.sentences[4]]).count) <= 2)
    }

    @Test func keepsTheLawsOfModules() async throws {
        let speech = AudioBuffer(interleaved: try Fixtures.speech(RecognizerTests.sentences[0]), sampleRate: 16_000)
        let broken = await checkTranscriber(speech: speech) { try makeLive { $0.step = .milliseconds(400) } }
        #expect(broken.isEmpty)
    }

    @Test func optionsAreChecked() throws {
        for change: (inout WhisperTranscriber.Streaming) -> Void in [
            { $0.step = .zero }, { $0.longestWindow = .seconds(40) }, { $0.beamSize = 9 },
        ] {
            let error = #expect(throws: StenoError.self) { try makeLive(change) }
            #expect(error?.code == .invalidArgument)
        }
        let error = #expect(throws: StenoError.self) {
            try makeTranscriber(detector: false) { $0.streaming = .lowLatency }
        }
        #expect(error?.code == .invalidArgument)
    }
}
