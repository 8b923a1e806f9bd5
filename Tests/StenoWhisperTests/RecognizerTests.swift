import Foundation
import StenoAnalysis
import StenoAudio
import StenoTesting
import StenoWhisper
import Synchronization
import Testing

/// The real engine with the smallest model. One after the other: each takes all of a processor.
@Suite(.serialized) struct RecognizerTests {
    static let jfkText =
        "And so my fellow Americans ask not what your country can do for you ask what you can do for your country"

    /// Sentences that the model reads well in a synthetic voice.
    static let sentences = [
        "Good morning and welcome to the show.",
        "I would like to buy a train ticket to London.",
        "My brother lives in a small house near the river.",
        "Thank you very much for your help with this problem.",
        "We are going to the market to buy some fresh fruit.",
        "The children are playing in the garden behind the school.",
        "He told me that he would come back next week.",
        "Please open the window, because it is very hot in here.",
        "They have been working on this project for three years.",
    ]

    /// Over a minute of speech.
    static let long = Result {
        let jfk = try Fixtures.jfk.get()
        let spoken = try sentences.map { Fixtures.silence(0.8) + (try Fixtures.speech($0, speed: 110)) }
        let samples = jfk + spoken.joined() + Fixtures.silence(0.8) + jfk
        try #require(samples.count > 61 * 16_000)
        return samples
    }
    static let longFromCommandLine = Result { try Fixtures.commandLine(long.get()) }
    static let longText = plainWords([jfkText] + sentences + [jfkText])

    /// Words in order within their segment, segments in order within the audio, and nothing twice (laws A4, T1).
    func checkOrder(_ results: [TranscriptionResult], frames: Int, at here: SourceLocation = #_sourceLocation) {
        var end = MediaTime.zero
        for result in results {
            #expect(result.isFinal && result.range.start >= end && !result.range.isEmpty, sourceLocation: here)
            end = result.range.end
            var wordEnd = result.range.start
            for word in result.words {
                let range = word.range ?? MediaTimeRange(start: .zero, end: .zero)
                #expect(range.start >= wordEnd && range.end <= end, "\(word)", sourceLocation: here)
                #expect((0...1).contains(word.confidence ?? -1), sourceLocation: here)
                wordEnd = range.end
            }
            #expect(result.words.map(\.text).joined(separator: " ") == result.text, sourceLocation: here)
        }
        #expect(end <= MediaTime(frames: Int64(frames), sampleRate: 16_000), sourceLocation: here)
    }

    @Test(arguments: [false, true])
    func readsSpeech(detector: Bool) throws {
        let jfk = try Fixtures.jfk.get()
        let results = try transcribe(jfk, detector: detector)
        let words = plainWords(results.map(\.text))
        #expect(words == plainWords([Self.jfkText]))
        checkOrder(results, frames: jfk.count)
        #expect(results.allSatisfy { $0.language == "en" })
        // "Americans" ends at 2.2 s, the second "ask" begins at 8.2 s.
        let spoken = results.flatMap(\.words)
        #expect(abs((spoken.first { $0.text == "Americans" }?.range?.end.seconds ?? 0) - 2.2) < 0.5)
        #expect(abs((spoken.last { $0.text == "ask" }?.range?.start.seconds ?? 0) - 8.2) < 0.5)
    }

    @Test func saysWhatTheCommandLineSays() throws {
        var clips = [try Fixtures.jfk.get()]
        for text in [Self.sentences[0], Self.sentences[3...].joined(separator: " ")] {
            clips.append(try Fixtures.speech(text))
        }
        for clip in clips {
            #expect(try transcribe(clip).map(\.text) == Fixtures.commandLine(clip))
        }
    }

    @Test(arguments: [false, true])
    func goesOnBehindThirtySecondsWithoutLosingOrDoubling(detector: Bool) throws {
        let long = try Self.long.get()
        let results = try transcribe(long, detector: detector)
        checkOrder(results, frames: long.count)
        let errors = editDistance(plainWords(results.map(\.text)), Self.longText)
        let errorsOfCommandLine = editDistance(plainWords(try Self.longFromCommandLine.get()), Self.longText)
        print("\(errors) word errors in \(Self.longText.count), command line \(errorsOfCommandLine)")
        #expect(errors <= errorsOfCommandLine + Self.longText.count / 50)
    }

    @Test(arguments: [false, true])
    func chunkingIsInvisible(detector: Bool) throws {
        // The cut of a window is in it.
        let samples = Array(try Self.long.get().prefix((detector ? 36 : 32) * 16_000))
        let results = try transcribe(samples, detector: detector)
        #expect(try transcribe(samples, detector: detector, chunk: 37) == results)
        #expect(try transcribe(samples, detector: detector, chunk: samples.count) == results)
    }

    /// Which of the windows is done first changes nothing.
    @Test func windowsSideBySideAreInOrderAndTheSame() throws {
        let samples = try Self.long.get()
        func results() throws -> [TranscriptionResult] {
            let session = Session()
            let recognizer = try session.recognizer(
                makeTranscriber(detector: true) { ($0.parallelWindows, $0.threads) = (3, 4) })
            try recognizer.accept(samples)
            try recognizer.finish()
            return session.results
        }
        let first = try results()
        checkOrder(first, frames: samples.count)
        #expect(editDistance(plainWords(first.map(\.text)), Self.longText) <= Self.longText.count / 30)
        #expect(try results() == first)
    }

    /// What the detector heard and the engine did not is told, and only that.
    @Test func speechWithoutTextIsTold() throws {
        func events(of samples: [Int16]) throws -> [TimelineEvent] {
            let session = Session()
            let recognizer = try session.recognizer(makeTranscriber(detector: true))
            try recognizer.accept(samples)
            try recognizer.finish()
            return session.events
        }
        #expect(try events(of: Fixtures.jfk.get()).isEmpty)
        let speech = try Fixtures.speech(String(repeating: "stop ", count: 40), speed: 220)
        let event = try #require(try events(of: Fixtures.silence(5) + speech).first)
        #expect(event.kind == .speechWithoutText)
        #expect(event.range.start.seconds > 4 && event.range.duration.seconds > 3)
        #expect(event.range.end.seconds < 5.1 + Double(speech.count) / 16_000)
    }

    @Test func floatsAndIntegersAreTheSame() throws {
        let speech = try Fixtures.speech(Self.sentences[0])
        let session = Session()
        let recognizer = try session.recognizer(makeTranscriber(), format: .float32)
        try recognizer.accept(speech.map { Float($0) / 32768 })
        try recognizer.finish()
        #expect(try session.results == transcribe(speech))
    }

    @Test func hearsNothingInSilence() throws {
        let noises = [-55, -35].map { Fixtures.noise(10, decibels: $0) }
        for samples in [[], Fixtures.silence(10), [0], Fixtures.silence(0.5)] + noises {
            #expect(try transcribe(samples, detector: true).isEmpty)
        }
        #expect(try transcribe([]).isEmpty)
    }

    @Test func inventsNothingBehindSpeech() throws {
        let speech = try Fixtures.speech(Self.sentences[0])
        let results = try transcribe(Fixtures.silence(40) + speech + Fixtures.silence(1.5), detector: true)
        #expect(plainWords(results.map(\.text)) == plainWords([Self.sentences[0]]))
        let start = try #require(results.first).range.start.seconds
        #expect(abs(start - 40) < 0.4)
    }

    @Test(arguments: [false, true])
    func hearsOneShortWord(detector: Bool) throws {
        let yes = try Fixtures.speech("yes", speed: 220)
        #expect((3000...6000).contains(yes.count))
        let results = try transcribe(yes, detector: detector)
        #expect(plainWords(results.map(\.text)) == ["yes"])
        checkOrder(results, frames: yes.count)
    }

    @Test(arguments: [15_999, 16_000])
    func hearsASecondOfSpeech(count: Int) throws {
        let samples = Array(try Fixtures.jfk.get()[6_000..<6_000 + count])
        let results = try transcribe(samples)
        #expect(!results.isEmpty)
        checkOrder(results, frames: count)
    }

    /// Case 005: times stay right over silence that was left out.
    @Test func putsWordsBackWhereTheyWere() throws {
        var samples: [Int16] = []
        var spoken: [(last: String, range: ClosedRange<Double>)] = []
        for sentence in Self.sentences.prefix(5) {
            samples += Fixtures.silence(3)
            let start = Double(samples.count) / 16_000
            samples += try Fixtures.speech(sentence)
            spoken.append((plainWords([sentence]).last ?? "", start - 0.5...Double(samples.count) / 16_000 + 0.5))
        }
        let results = try transcribe(samples, detector: true)
        checkOrder(results, frames: samples.count)
        for (last, range) in spoken {
            let words = results.flatMap(\.words).filter { plainWords([$0.text]) == [last] }
            #expect(words.contains { range.contains($0.range?.end.seconds ?? -1) }, "\(last) at \(range)")
        }
        // What was left out is in no result.
        for result in results.map(\.range) {
            let (start, end) = (result.start.seconds, result.end.seconds)
            #expect(spoken.contains { $0.range.contains(start) && $0.range.contains(end) }, "\(result)")
        }
    }

    @Test(arguments: [false, true])
    func timesAreThoseOfTheBuffers(detector: Bool) throws {
        let speech = try Fixtures.speech(Self.sentences[0])
        let session = Session()
        let recognizer = try session.recognizer(makeTranscriber(detector: detector))
        let second = 100 * 16_000 + speech.count + 5 * 16_000
        try recognizer.accept(speech, start: 100 * 16_000)
        try recognizer.accept(speech, start: second)
        try recognizer.finish()
        let results = session.results
        #expect(plainWords(results.map(\.text)) == plainWords([Self.sentences[0], Self.sentences[0]]))
        #expect(abs(results[0].range.start.seconds - 100) < 0.4)
        #expect(results.contains { abs($0.range.start.seconds - Double(second) / 16_000) < 0.4 })
    }

    @Test func finalizesAndGoesOn() throws {
        let speech = try Fixtures.speech(Self.sentences[0])
        let session = Session()
        let recognizer = try session.recognizer(makeTranscriber(detector: true))
        try recognizer.accept(speech)
        try recognizer.finalize(through: MediaTime(frames: Int64(speech.count), sampleRate: 16_000))
        let first = session.results
        #expect(plainWords(first.map(\.text)) == plainWords([Self.sentences[0]]))
        try recognizer.accept(Fixtures.silence(1) + speech, start: speech.count)
        try recognizer.finish()
        #expect(session.results.starts(with: first))
        checkOrder(session.results, frames: 2 * speech.count + 16_000)
        #expect(plainWords(session.results.map(\.text)) == plainWords([Self.sentences[0], Self.sentences[0]]))
    }

    @Test func keepsTheLawsOfModules() async throws {
        let speech = AudioBuffer(interleaved: try Fixtures.speech(Self.sentences[0]), sampleRate: 16_000)
        let broken = await checkTranscriber(speech: speech) { try makeTranscriber(detector: true) { $0.beamSize = 1 } }
        #expect(broken.isEmpty)
    }

    /// Law A9. The engine itself looks only after a whole pass of its encoder.
    @Test(arguments: [false, true])
    func cancelsWithinADecode(detector: Bool) throws {
        let session = Session()
        let recognizer = try session.recognizer(makeTranscriber(detector: detector) { $0.threads = 2 })
        // With the detector a window is decoded while the next is filled.
        try recognizer.accept(detector ? Array(Self.long.get().prefix(35 * 16_000)) : Fixtures.jfk.get())
        let cancelled = ContinuousClock.now + .milliseconds(150)
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: 0.15)
            session.isCancelled.store(true, ordering: .relaxed)
        }
        let error = #expect(throws: StenoError.self) { try recognizer.finish() }
        let late = ContinuousClock.now - cancelled
        print("cancelled within a decode: returned after \(late)")
        #expect(error?.code == .cancelled)
        #expect(late > .zero && late < .milliseconds(800))
        #expect(session.results.isEmpty)
    }

    /// Law A10.
    @Test func twoSessionsOnOneModelDoNotMeet() async throws {
        let clips = [try Fixtures.jfk.get(), try Fixtures.speech(Self.sentences[1])]
        let alone = try clips.map { try transcribe($0) }
        let together = try await withThrowingTaskGroup(of: (Int, [TranscriptionResult]).self) { group in
            for (index, clip) in clips.enumerated() { group.addTask { (index, try transcribe(clip)) } }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(together[0] == alone[0] && together[1] == alone[1])
    }

    /// Case 109. Other tests of the process make the figure unsteady; a session that leaks costs 50 times 140 MB.
    @Test func sessionsLeaveNothingBehind() throws {
        func resident() throws -> Int {
            let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")[1]
            return try #require(Int(pages)) * 4096
        }
        let transcriber = try makeTranscriber(detector: true)
        func makeMany(_ count: Int) throws {
            for _ in 0..<count {
                let recognizer = try Session().recognizer(transcriber)
                try recognizer.accept([Int16](repeating: 0, count: 1600))
                try recognizer.finish()
                _ = try? WhisperModel(path: Fixtures.detectorPath)
            }
        }
        try makeMany(5)
        let before = try resident()
        try makeMany(50)
        let growth = try resident() - before
        print("50 sessions made and ended: \(growth / 1024) KiB more")
        #expect(growth < 30 << 20)
    }
}
