import Foundation
import StenoAnalysis
import StenoAudio
import Testing

@testable import StenoVosk

struct VoskTranscriberTests {
    @Test func wordsWithTimesAndConfidences() throws {
        let audio = try silence(seconds: 0.5) + speech() + silence(seconds: 2)
        let session = try transcribe(audio, with: VoskTranscriber(model: Fixture.model.get()))
        // As many as are spoken; how the model cuts a synthetic voice into words is its business.
        #expect(session.words.count >= 3)
        for result in session.finals {
            #expect(result.text == result.words.map(\.text).joined(separator: " "))
            #expect(result.words.allSatisfy { 0...1 ~= $0.confidence ?? -1 })
            #expect(result.alternatives == [])
        }
        expectOrder(session, within: range(0.4, Double(audio.count) / 16000 - 1.5))
    }

    /// A final result takes the place of the volatile ones, and nothing volatile is left behind.
    @Test func volatileBeforeFinal() throws {
        let audio = try speech() + silence(seconds: 2)
        let session = try transcribe(audio, with: VoskTranscriber(model: Fixture.model.get()))
        #expect(session.results.count > session.finals.count + 3)
        #expect(session.results.first?.isFinal == false)
        var standing: MediaTimeRange?
        for result in session.results {
            if let range = standing, result.isFinal {
                #expect(result.range.end > range.start)
                standing = range.end > result.range.end ? MediaTimeRange(start: result.range.end, end: range.end) : nil
            } else if result.isEmpty {
                #expect(standing.map(result.range.contains) == true)
                standing = nil
            } else if !result.isFinal {
                #expect(result.range.end <= time(Double(audio.count) / 16000))
                standing = result.range
            }
        }
        #expect(standing == nil)
    }

    @Test func volatileWords() throws {
        let audio = try speech() + silence(seconds: 2)
        var options = VoskTranscriber.Options()
        options.volatileResults = .words
        let model = try Fixture.model.get()
        let session = try transcribe(audio, with: VoskTranscriber(model: model, options: options))
        let words = session.results.filter { !$0.isFinal }.flatMap(\.words)
        #expect(!words.isEmpty && words.allSatisfy { $0.range != nil })
        options.volatileResults = .off
        options.wordTimes = false
        let plain = try transcribe(audio, with: VoskTranscriber(model: model, options: options))
        #expect(!plain.results.isEmpty && plain.results.allSatisfy { $0.isFinal && !$0.text.isEmpty && $0.words == [] })
    }

    @Test(arguments: [true, false]) func alternatives(wordTimes: Bool) throws {
        var options = VoskTranscriber.Options()
        options.maximumAlternatives = 3
        options.wordTimes = wordTimes
        let audio = try speech() + silence(seconds: 2)
        let session = try transcribe(audio, with: VoskTranscriber(model: Fixture.model.get(), options: options))
        let result = try #require(session.finals.max { $0.alternatives.count < $1.alternatives.count })
        #expect((1...3).contains(result.alternatives.count))
        #expect(Set(result.alternatives + [result.text]).count == result.alternatives.count + 1)
        #expect(result.words.isEmpty != wordTimes)
        expectOrder(session, within: range(0, Double(audio.count) / 16000))
    }

    @Test func phrases() throws {
        let transcriber = try VoskTranscriber(model: Fixture.model.get(), contextualStrings: ["하나 둘", "셋", "넷 다섯"])
        let session = try transcribe(speech("하나 둘 셋 넷 다섯") + silence(seconds: 2), with: transcriber)
        #expect(!session.words.isEmpty)
        #expect(Set(session.words.map(\.text)).isSubset(of: ["하나", "둘", "셋", "넷", "다섯"]))
    }

    @Test func phrasesChangeInMidSession() throws {
        let audio = try speech("하나 둘 셋") + silence(seconds: 2)
        let transcriber = try VoskTranscriber(model: Fixture.model.get(), contextualStrings: ["하나", "둘", "셋"])
        let session = try Session(transcriber)
        try session.accept(audio)
        try transcriber.setContextualStrings(["서울", "조금만"])
        try session.accept(audio)
        let before = session.finals.count
        try transcriber.setContextualStrings([])
        try session.accept(audio)
        try session.recognizer.finish()
        // What had not filled a block of 0.1 s is heard with the new phrases.
        let change = time(Double(audio.count) / 16000 - 0.1)
        let heard = session.finals[..<before].flatMap(\.words)
        let first = heard.filter { $0.range.map { $0.start < change } == true }
        let second = heard.filter { $0.range.map { $0.start >= change } == true }
        #expect(!first.isEmpty && Set(first.map(\.text)).isSubset(of: ["하나", "둘", "셋"]))
        #expect(!second.isEmpty && Set(second.map(\.text)).isSubset(of: ["서울", "조금만"]))
        #expect(!Set(session.words.map(\.text)).isSubset(of: ["하나", "둘", "셋", "서울", "조금만"]))
        expectOrder(session, within: range(0, 3 * Double(audio.count) / 16000))
    }

    @Test func wrongPhrases() throws {
        let transcriber = try VoskTranscriber(model: Fixture.model.get())
        let error = #expect(throws: StenoError.self) { try transcriber.setContextualStrings(["조금만 abcxyz", "살면"]) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.hasSuffix("lacks: abcxyz") == true)
        #expect(throws: StenoError.self) { try transcriber.setContextualStrings([" "]) }
        #expect(transcriber.contextualStrings == [])
    }

    /// Law T3.
    @Test func chunksMakeNoDifference() throws {
        let audio = try speech("서울") + silence(seconds: 2) + speech("하나 둘")
        let transcriber = try VoskTranscriber(model: Fixture.steadyModel.get())
        let whole = try transcribe(audio, with: transcriber)
        #expect(whole.finals.count >= 2)
        for size in [1, 441, 4096] {
            let session = try Session(transcriber)
            for start in stride(from: 0, to: audio.count, by: size) {
                try session.accept(Array(audio[start..<min(start + size, audio.count)]))
            }
            try session.recognizer.finish()
            #expect(session.results == whole.results, "\(size)")
        }
    }

    @Test func floatIsInt16() throws {
        let audio = try speech() + silence(seconds: 1)
        let transcriber = try VoskTranscriber(model: Fixture.steadyModel.get())
        let integers = try transcribe(audio, with: transcriber)
        let floats = try transcribe(audio.map { Float($0) / 32768 }, with: transcriber)
        #expect(!integers.words.isEmpty)
        #expect(integers.results == floats.results)
    }

    @Test(arguments: [8000, 44100, 48000]) func otherRates(sampleRate: Int) throws {
        let audio = try speech(sampleRate: sampleRate) + silence(seconds: 1, sampleRate: sampleRate)
        let transcriber = try VoskTranscriber(model: Fixture.model.get())
        #expect(transcriber.compatibleAudioFormats.contains { $0.sampleRate == sampleRate })
        let session = try transcribe(audio, with: transcriber, sampleRate: sampleRate)
        #expect(session.words.count >= 3)
        expectOrder(session, within: range(0, Double(audio.count) / Double(sampleRate)))
    }

    /// libvosk ends the process on such samples.
    @Test func samplesThatAreNoNumbers() throws {
        let audio = [Float](repeating: .nan, count: 8000) + [Float](repeating: .infinity, count: 8000)
        let session = try transcribe(audio, with: VoskTranscriber(model: Fixture.model.get()))
        expectOrder(session, within: range(0, 1))
    }

    /// Law A10: one model, two sessions, two threads.
    @Test func twoSessionsAtOnce() async throws {
        let transcriber = try VoskTranscriber(model: Fixture.steadyModel.get())
        let audio = try [speech() + silence(seconds: 1), speech("안녕하세요") + silence(seconds: 1)]
        let alone = try audio.map { try transcribe($0, with: transcriber).results }
        let together = try await withThrowingTaskGroup(of: (Int, [TranscriptionResult]).self) { group in
            for index in audio.indices {
                group.addTask { (index, try transcribe(audio[index], with: transcriber).results) }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(alone[0] != alone[1])
        #expect(together == [0: alone[0], 1: alone[1]])
    }

    /// Case 021, law T6: the same audio again after a gap has the same words at the same distance from its start.
    @Test func gapKeepsTheTimeBase() throws {
        let audio = try speech()
        let session = try Session(VoskTranscriber(model: Fixture.steadyModel.get()))
        try session.accept(audio, at: time(4))
        try session.accept(audio, at: time(100))
        try session.recognizer.finish()
        let words = session.words
        let first = words.filter { $0.range.map { $0.end <= time(4 + Double(audio.count) / 16000) } == true }
        #expect(!first.isEmpty && words.count == 2 * first.count)
        for (before, after) in zip(first, words.dropFirst(first.count)) {
            #expect(before.text == after.text)
            let (start, again) = (try #require(before.range).start.seconds, try #require(after.range).start.seconds)
            #expect(start >= 4 && abs(again - start - 96) < 0.001)
        }
    }

    /// Case 029: results come at each pause, and what finishing adds may be nothing.
    @Test func timesGoOnOverPauses() throws {
        let part = try speech("안녕하세요") + silence(seconds: 3)
        let session = try Session(VoskTranscriber(model: Fixture.model.get()))
        for _ in 0..<3 { try session.accept(part) }
        let before = session.finals
        #expect(before.count >= 3)
        try session.recognizer.finish()
        #expect(session.finals == before)
        let length = Double(part.count) / 16000
        for index in 0..<3 {
            let bounds = range(Double(index) * length, Double(index + 1) * length)
            #expect(session.words.contains { $0.range.map(bounds.contains) == true })
        }
        expectOrder(session, within: range(0, 3 * length))
    }

    @Test func recyclingKeepsTheTimeBase() throws {
        let part = try speech("안녕하세요") + silence(seconds: 3)
        var options = VoskTranscriber.Options()
        options.recyclingInterval = .seconds(4)
        let steady = try Fixture.steadyModel.get()
        let session = try Session(VoskTranscriber(model: steady, options: options))
        for _ in 0..<3 { try session.accept(part) }
        try session.recognizer.finish()
        let length = Double(part.count) / 16000
        let starts = session.finals.map { $0.range.start.seconds }
        #expect(starts.count == 3)
        for (index, start) in starts.enumerated() {
            #expect(abs(start - starts[0] - Double(index) * length) < 0.1)
        }
    }

    /// Law A11. In noise the model may take back a word, but it says none for good.
    @Test func nothingInSilence() throws {
        let transcriber = try VoskTranscriber(model: Fixture.model.get())
        for audio in [[Int16](repeating: 0, count: 96000), silence(seconds: 0.01), [0], []] {
            #expect(try transcribe(audio, with: transcriber).results == [])
        }
        let noise = silence(seconds: 6).map { $0 * 8 }
        #expect(try transcribe(noise, with: transcriber).finals == [])
        let untouched = try Session(transcriber)
        try untouched.recognizer.finalize(through: .zero)
        try untouched.recognizer.finish()
        #expect(untouched.results == [])
    }

    @Test func shortClip() throws {
        let audio = try speech("안녕하세요")
        let clip = Array(audio[4000..<7200])
        let session = try transcribe(clip, with: VoskTranscriber(model: Fixture.model.get()))
        #expect(session.finals.count == 1)
        expectOrder(session, within: range(0, 0.2))
    }

    /// The audio ends in the middle of speech: all of it is heard, whether the session goes on or not.
    @Test func finishDrains() throws {
        let audio = try Array(speech().prefix(43210))
        let transcriber = try VoskTranscriber(model: Fixture.steadyModel.get())
        let finished = try transcribe(audio, with: transcriber)
        let last = try #require(finished.words.last?.range?.end)
        #expect(last > time(43210.0 / 16000 - 0.3))

        let session = try Session(transcriber)
        try session.accept(audio)
        #expect(session.finals.count < finished.finals.count)
        try session.recognizer.finalize(through: time(43210.0 / 16000))
        #expect(session.finals == finished.finals)
        try session.accept(audio)
        try session.recognizer.finish()
        #expect(session.words.count > finished.words.count)
        expectOrder(session, within: range(0, 2 * 43210.0 / 16000))
    }

    @Test func behindTheAnalyzer() async throws {
        let module = try VoskTranscriber(model: Fixture.model.get())
        let analyzer = SpeechAnalyzer(modules: [module])
        let buffer = try AudioBuffer(interleaved: speech() + silence(seconds: 1), sampleRate: 16000)
        let (inputs, continuation) = AsyncStream.makeStream(of: AnalyzerInput.self)
        continuation.yield(AnalyzerInput(buffer: buffer))
        continuation.finish()
        _ = try await analyzer.analyzeSequence(inputs)
        try await analyzer.finalizeAndFinishThroughEndOfInput()
        var results: [TranscriptionResult] = []
        for try await result in module.results { results.append(result) }
        #expect(results.contains { $0.isFinal && !$0.words.isEmpty })
        #expect(await analyzer.events.isEmpty)
        #expect(await analyzer.volatileRange?.isEmpty == true)
    }

    /// Law A9: after the cancel no further piece of a long buffer is decoded.
    @Test func cancelEndsALongCall() throws {
        let audio = try speech() + speech() + speech()
        let session = try Session(VoskTranscriber(model: Fixture.model.get())) { !$0.isEmpty }
        try session.accept(audio)
        try session.recognizer.finish()
        #expect(session.results.count == 1)
    }

    @Test func wrongOptions() throws {
        var options = VoskTranscriber.Options()
        options.maximumAlternatives = -1
        #expect(throws: StenoError.self) { try VoskTranscriber(model: Fixture.model.get(), options: options) }
        #expect(throws: StenoError.self) {
            try Session(VoskTranscriber(model: Fixture.model.get()), sampleFormat: .int32)
        }
    }
}
