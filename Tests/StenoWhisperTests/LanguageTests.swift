import Foundation
import StenoAnalysis
import StenoAudio
import StenoWhisper
import Synchronization
import Testing

/// What is spoken, found out by the real engine; of the model made for that, all speech is German.
@Suite(.serialized) struct LanguageTests {
    enum Kind: CaseIterable { case everything, speech, live }

    func transcribe(
        _ samples: [Int16], _ kind: Kind, model: Result<WhisperModel, any Error> = Fixtures.multilingual,
        language: String? = nil
    ) throws -> [TranscriptionResult] {
        let session = Session()
        let recognizer = try session.recognizer(
            makeTranscriber(model: model, detector: kind != .everything) {
                $0.language = language
                ($0.beamSize, $0.temperatureIncrement) = (1, 0)
                if kind == .live { $0.streaming = .balanced }
            })
        try recognizer.accept(samples, chunk: 16_000)
        try recognizer.finish()
        return session.results.filter { !$0.isEmpty }
    }

    @Test(arguments: Kind.allCases)
    func tellsWhatItFoundAndHowLikelyThatIs(kind: Kind) throws {
        let model = try Fixtures.multilingual.get()
        #expect(model.isMultilingual && model.languages.count == 99)
        // Of a file, more than one window.
        let jfk = try Fixtures.jfk.get()
        let results = try transcribe(kind == .live ? jfk : jfk + jfk + jfk, kind)
        #expect(try results.count > 1 && #require(results.last).range.end.seconds > (kind == .live ? 6 : 31))
        let confidence = try #require(results.first?.languageConfidence)
        print("\(kind): \(confidence), \(results.map(\.text).joined(separator: " "))")
        // The token to translate is as likely, and where other models have a language.
        #expect((0.9...1).contains(confidence))
        #expect(results.allSatisfy { $0.language == "de" && $0.languageConfidence == confidence })
    }

    @Test(arguments: Kind.allCases)
    func whatIsToldHasNoProbability(kind: Kind) throws {
        let speech = Array(try Fixtures.jfk.get().prefix(4 * 16_000))
        for (model, language) in [(Fixtures.multilingual, "en"), (Fixtures.model, nil)] {
            let results = try transcribe(speech, kind, model: model, language: language)
            #expect(!results.isEmpty)
            #expect(results.allSatisfy { $0.language == "en" && $0.languageConfidence == nil })
        }
    }

    @Test func assumesWhatItWouldElseFindOut() throws {
        let transcriber = try makeTranscriber(model: Fixtures.multilingual) { $0.beamSize = 3 }
        let assuming = try #require(try transcriber.assuming(language: "jv") as? WhisperTranscriber)
        #expect(assuming.options.language == "jv" && assuming.options.beamSize == 3)
        #expect(try assuming.assuming(language: "de") === assuming)
        let english = try makeTranscriber()
        #expect(try english.assuming(language: "de") === english)
    }

    /// Law A9. The first pass of the encoder is for the language, and the engine does not look whether it is cancelled.
    @Test func cancelsWithinTheDetection() throws {
        let session = Session()
        let recognizer = try session.recognizer(makeTranscriber(model: Fixtures.multilingual))
        try recognizer.accept(Fixtures.jfk.get())
        let cancelled = ContinuousClock.now + .milliseconds(100)
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: 0.1)
            session.isCancelled.store(true, ordering: .relaxed)
        }
        let error = #expect(throws: StenoError.self) { try recognizer.finish() }
        let late = ContinuousClock.now - cancelled
        print("cancelled within the detection: returned after \(late)")
        #expect(error?.code == .cancelled)
        #expect(late > .zero && late < .milliseconds(800))
        #expect(session.results.isEmpty)
    }
}
