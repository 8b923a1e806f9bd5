import StenoAnalysis
import StenoAudio
import StenoWhisper
import Synchronization
import Testing

/// Where there is speech, on the real network.
@Suite struct DetectorTests {
    func detect(
        _ samples: [Int16], chunk: Int = 1600, start: Int = 0,
        _ change: (inout SileroDetector.Options) -> Void = { _ in }
    ) throws -> [SpeechDetection] {
        var options = SileroDetector.Options()
        change(&options)
        let detector = try SileroDetector(model: Fixtures.detector.get(), options: options)
        let results = Mutex<[SpeechDetection]>([])
        let format = AudioFormat(sampleRate: 16_000, channelLayout: .mono, sampleFormat: .int16)
        let recognizer = try detector.makeRecognizer(
            RecognizerSession(
                format: format, sink: { result in results.withLock { $0.append(result) } }, cancelled: { false }))
        try recognizer.accept(samples, chunk: chunk, start: start)
        try recognizer.finish()
        return results.withLock { $0 }
    }

    /// Speech of about 3 s after 2 s, and after 4 s more.
    func twice() throws -> (samples: [Int16], places: [ClosedRange<Double>]) {
        var samples: [Int16] = []
        var places: [ClosedRange<Double>] = []
        for pause in [2.0, 4] {
            samples += Fixtures.silence(pause)
            let speech = try Fixtures.speech(RecognizerTests.sentences[4])
            places.append(Double(samples.count) / 16_000...Double(samples.count + speech.count) / 16_000)
            samples += speech
        }
        return (samples + Fixtures.silence(2), places)
    }

    @Test func speechIsWhereItIs() throws {
        let (samples, places) = try twice()
        let found = try detect(samples, start: 1_600_000).filter(\.isFinal).map(\.range)
        try #require(found.count == 2)
        for (range, place) in zip(found, places) {
            #expect((-0.25...0.05).contains(range.start.seconds - 100 - place.lowerBound))
            #expect((0...0.6).contains(range.end.seconds - 100 - place.upperBound))
        }
    }

    @Test func itIsToldWhileItGoesOn() throws {
        let (samples, _) = try twice()
        let results = try detect(samples)
        let ends = results.map(\.range.end)
        #expect(ends == ends.sorted() && results.filter { !$0.isFinal }.count > 20)
        #expect(try detect(samples) { $0.reportsVolatileResults = false }.allSatisfy(\.isFinal))
    }

    @Test func theCutOfTheAudioDoesNotMatter() throws {
        let (samples, _) = try twice()
        let whole = try detect(samples).filter(\.isFinal)
        for chunk in [77, 16_000, samples.count] {
            #expect(try detect(samples, chunk: chunk).filter(\.isFinal) == whole)
        }
    }

    @Test func noSpeechIsNothing() throws {
        for samples in [[], [0], Fixtures.silence(5), Fixtures.noise(5, decibels: -45)] {
            #expect(try detect(samples).isEmpty)
        }
    }

    @Test func paddingAndPreRollAreTime() throws {
        let (samples, _) = try twice()
        let tight = try detect(samples) { ($0.preRoll, $0.padding) = (.zero, .milliseconds(64)) }
        let wide = try detect(samples) { ($0.preRoll, $0.padding) = (.seconds(1), .seconds(1)) }
        let (first, last) = (try #require(tight.first { $0.isFinal }), try #require(tight.last))
        #expect(first.range.start.seconds - (try #require(wide.first { $0.isFinal })).range.start.seconds > 0.9)
        #expect((try #require(wide.last)).range.end.seconds - last.range.end.seconds > 0.5)
        let error = #expect(throws: StenoError.self) { try detect([]) { $0.threshold = 2 } }
        #expect(error?.code == .invalidArgument)
    }
}
