import Foundation
import StenoAnalysis
import StenoAudio
import StenoSoxr
import StenoTesting
import Synchronization
import Testing

@Suite("Laws A1-A4: verbs, ends and results", .timeLimit(.minutes(1)))
struct SpeechAnalyzerTests {
    // MARK: Finish

    @Test func aFinishDrainsEverything() async throws {
        let module = dictation()
        let analyzer = SpeechAnalyzer(modules: [module])
        let end = try await analyzer.analyzeSequence(sequence(inputs(10)))
        #expect(end == frame(16000))
        try await analyzer.finalizeAndFinishThroughEndOfInput()
        let results = try await collect(module.results)
        #expect(results.last?.text == "last")
        #expect(results.last?.range == MediaTimeRange(start: .zero, end: frame(16000)))
        guard case .finished = await analyzer.finishReason else {
            Issue.record("the session did not say that it finished")
            return
        }
    }

    @Test func aFinishWithoutInputReturnsAndEndsTheResults() async throws {
        let module = dictation()
        let analyzer = SpeechAnalyzer(modules: [module])
        try await analyzer.finalizeAndFinishThroughEndOfInput()
        #expect(try await collect(module.results).isEmpty)
        #expect(await analyzer.volatileRange == nil)
    }

    @Test func aFinishOfAnInputThatNeverEndsGoesThroughTheLastFed() async throws {
        let module = dictation()
        let analyzer = SpeechAnalyzer(modules: [module], options: .init(inputIdleLimit: .milliseconds(500)))
        try await analyzer.start(inputSequence: sequence(inputs(3), staysOpen: true))
        try await analyzer.finalizeAndFinishThroughEndOfInput()
        #expect(try await collect(module.results).last?.range.end == frame(4800))
    }

    @Test func analyzeSequenceReturnsWhenTheSessionEndsUnderIt() async throws {
        let module = dictation()
        let analyzer = SpeechAnalyzer(modules: [module])
        async let end = analyzer.analyzeSequence(sequence(inputs(3), staysOpen: true))
        while module.accepted.last?.end != frame(4800) { await Task.yield() }
        try await analyzer.finalizeAndFinish()
        #expect(try await end == frame(4800))
        #expect(try await collect(module.results).last?.range.end == frame(4800))
    }

    @Test func aSecondFinishWaitsForTheSameEnd() async throws {
        let module = ScriptedTranscriber { call, _ in if case .finish = call { Thread.sleep(forTimeInterval: 0.1) } }
        let analyzer = SpeechAnalyzer(modules: [module])
        try await analyzer.analyzeSequence(sequence(inputs(1)))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 { group.addTask { try await analyzer.finalizeAndFinish() } }
            try await group.waitForAll()
        }
        try await analyzer.finalizeAndFinishThroughEndOfInput()
        #expect(module.calls.filter { if case .finish = $0 { true } else { false } }.count == 1)
    }

    @Test func aFinishRacingACancelReturns() async {
        for round in 0..<100 {
            let module = dictation()
            let analyzer = SpeechAnalyzer(modules: [module])
            _ = try? await analyzer.analyzeSequence(sequence(inputs(2)))
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await analyzer.finalizeAndFinish() }
                group.addTask {
                    if round.isMultiple(of: 2) { await Task.yield() }
                    await analyzer.cancelAndFinishNow()
                }
                group.addTask { _ = try? await collect(module.results) }
            }
            #expect(await analyzer.finishReason != nil)
        }
    }

    @Test func afterTheEndVerbsSaySo() async throws {
        let analyzer = SpeechAnalyzer(modules: [dictation()])
        try await analyzer.finalizeAndFinish()
        let found = await code { () async throws(StenoError) in try await analyzer.analyzeSequence(sequence(inputs(1)))
        }
        #expect(found == .sessionFinished)
        #expect(await code { () async throws(StenoError) in try await analyzer.finalize() } == .sessionFinished)
        #expect(await code { () async throws(StenoError) in try await analyzer.setModules([]) } == .sessionFinished)
    }

    // MARK: Finalize

    @Test func afterFinalizeTheResultsArePublishedAndTheSessionGoesOn() async throws {
        let module = dictation()
        let analyzer = SpeechAnalyzer(modules: [module])
        try await analyzer.analyzeSequence(sequence(inputs(2)))
        try await analyzer.finalize(through: frame(2000))
        #expect(await analyzer.volatileRange == MediaTimeRange(start: frame(2000), end: frame(3200)))
        try await analyzer.finalize()
        #expect(await analyzer.volatileRange?.isEmpty == true)
        try await analyzer.analyzeSequence(sequence(inputs(1)))
        try await analyzer.finalize(through: frame(99999))
        try await analyzer.finalizeAndFinish()
        let finals = try await collect(module.results).filter { $0.isFinal && !$0.range.isEmpty }
        #expect(finals.map(\.range.end) == [frame(2000), frame(3200), frame(4800)])
    }

    /// A buffer that is longer than the queue is all fed, though its end still waits for room.
    @Test func finalizeInTheMiddleOfABufferGoesThroughItsEnd() async throws {
        let module = dictation()
        let analyzer = SpeechAnalyzer(modules: [module], options: .init(queueDuration: 0.001))
        try await analyzer.start(inputSequence: sequence(inputs(1, frames: 16000), staysOpen: true))
        while module.accepted.isEmpty { await Task.yield() }
        try await analyzer.finalize()
        #expect(await analyzer.volatileRange == MediaTimeRange(start: frame(16000), end: frame(16000)))
        try await analyzer.finalizeAndFinish()
        #expect(try await collect(module.results).first { $0.isFinal }?.range.end == frame(16000))
    }

    // MARK: Cancel and failure

    @Test func cancelEndsWaitersAndResultsAndTheRunningDecode() async throws {
        let isDecoding = Atomic(false)
        let hasStopped = Atomic(false)
        let module = ScriptedTranscriber { call, session in
            guard case .accept = call else { return }
            isDecoding.store(true, ordering: .relaxed)
            while !session.isCancelled { Thread.sleep(forTimeInterval: 0.001) }
            hasStopped.store(true, ordering: .relaxed)
            throw StenoError(.cancelled, "stopped")
        }
        let analyzer = SpeechAnalyzer(modules: [module])
        try await analyzer.start(inputSequence: sequence(inputs(1), staysOpen: true))
        async let finalized = code { () async throws(StenoError) in try await analyzer.finalize() }
        async let finished = code { () async throws(StenoError) in
            try await analyzer.finalizeAndFinishThroughEndOfInput()
        }
        async let read = code { () async throws(StenoError) in _ = try await collect(module.results) }
        while !isDecoding.load(ordering: .relaxed) { await Task.yield() }
        await analyzer.cancelAndFinishNow()
        let finalizeCode = await finalized
        #expect(finalizeCode == nil || finalizeCode == .cancelled || finalizeCode == .sessionFinished)
        #expect(await finished == .cancelled)
        #expect(await read == .cancelled)
        while !hasStopped.load(ordering: .relaxed) { await Task.yield() }
    }

    @Test func oneFailureReachesEveryWaiterAndEveryModule() async throws {
        let failing = ScriptedTranscriber { call, _ in
            if case .accept = call { throw StenoError(.engineFailed, "broken", nativeCode: 7) }
        }
        let sound = dictation()
        let analyzer = SpeechAnalyzer(modules: [failing, sound])
        let feeding = await code { () async throws(StenoError) in
            try await analyzer.analyzeSequence(sequence(inputs(1)))
            try await analyzer.finalize()
        }
        #expect(feeding == .engineFailed)
        for module in [failing, sound] {
            #expect(
                await code { () async throws(StenoError) in _ = try await collect(module.results) } == .engineFailed)
        }
        let finishing = await code { () async throws(StenoError) in try await analyzer.finalizeAndFinish() }
        #expect(finishing == .engineFailed)
        #expect(await analyzer.finishReason?.error?.nativeCode == 7)
    }

    // MARK: Dropping modules that fail

    /// In whatever call a module fails, only its own results end with the error.
    @Test(arguments: ["prepare", "accept", "finalize", "finish"])
    func aModuleThatFailsIsDropped(in place: String) async throws {
        let failing = failing(in: place)
        let sound = dictation()
        let analyzer = SpeechAnalyzer(modules: [failing, sound], options: .init(moduleFailurePolicy: .dropModule))
        try await analyzer.prepareToAnalyze(in: ScriptedTranscriber.usualFormat)
        try await analyzer.analyzeSequence(sequence(inputs(2)))
        try await analyzer.finalize()
        try await analyzer.analyzeSequence(sequence(inputs(1)))
        try await analyzer.finalizeAndFinish()
        #expect(await code { () async throws(StenoError) in _ = try await collect(failing.results) } == .engineFailed)
        #expect(try await collect(sound.results).last { $0.isFinal && !$0.range.isEmpty }?.range.end == frame(4800))
        let failures = await analyzer.moduleFailures
        #expect(failures.map { $0.module === failing } == [true])
        #expect(failures.first?.error.nativeCode == 7)
        #expect(await analyzer.modules.map { $0 === sound } == [true])
        #expect(await analyzer.finishReason.map { $0.error == nil } == true)
    }

    /// With nobody left to listen the session fails.
    @Test func theLastModuleThatFailsEndsTheSession() async throws {
        let modules = [failing(in: "accept"), failing(in: "finish")]
        let analyzer = SpeechAnalyzer(modules: modules, options: .init(moduleFailurePolicy: .dropModule))
        try await analyzer.analyzeSequence(sequence(inputs(1)))
        let finishing = await code { () async throws(StenoError) in try await analyzer.finalizeAndFinish() }
        #expect(finishing == .engineFailed)
        #expect(await analyzer.finishReason?.error?.code == .engineFailed)
        #expect(await analyzer.moduleFailures.count == 2)
        for module in modules {
            #expect(
                await code { () async throws(StenoError) in _ = try await collect(module.results) } == .engineFailed)
        }
    }

    private func failing(in place: String) -> ScriptedTranscriber {
        ScriptedTranscriber { call, _ in
            let name =
                switch call {
                case .prepare: "prepare"
                case .accept: "accept"
                case .finalize: "finalize"
                case .finish: "finish"
                }
            if name == place { throw StenoError(.engineFailed, "broken", nativeCode: 7) }
        }
    }

    @Test func aModelThatIsMissingIsSaidWhenPreparing() async {
        let module = ScriptedTranscriber { call, _ in
            if case .prepare = call { throw StenoError(.modelNotFound, "no model") }
        }
        let analyzer = SpeechAnalyzer(modules: [module])
        let found = await code { () async throws(StenoError) in
            try await analyzer.prepareToAnalyze(in: ScriptedTranscriber.usualFormat)
        }
        #expect(found == .modelNotFound)
        #expect(await code { () async throws(StenoError) in _ = try await collect(module.results) } == .modelNotFound)
    }

    @Test func anErrorOfTheInputComesAfterTheTextBeforeIt() async throws {
        struct Unplugged: Error {}
        let module = dictation()
        let analyzer = SpeechAnalyzer(modules: [module])
        let (stream, continuation) = AsyncThrowingStream.makeStream(of: AnalyzerInput.self)
        continuation.yield(inputs(1)[0])
        continuation.finish(throwing: Unplugged())
        try await analyzer.start(inputSequence: stream)
        let finishing = await code { () async throws(StenoError) in
            try await analyzer.finalizeAndFinishThroughEndOfInput()
        }
        #expect(finishing == .inputFailed)
        var results: [TranscriptionResult] = []
        let reading = await code { () async throws(StenoError) in
            for try await result in module.results { results.append(result) }
        }
        #expect(reading == .inputFailed)
        #expect(results.last?.text == "last")
    }

    @Test func anAbandonedAnalyzerEndsItsResults() async {
        let module = dictation()
        var analyzer: SpeechAnalyzer? = SpeechAnalyzer(modules: [module])
        try? await analyzer?.start(inputSequence: sequence(inputs(1), staysOpen: true))
        analyzer = nil
        #expect(await code { () async throws(StenoError) in _ = try await collect(module.results) } == .cancelled)
    }

    // MARK: Formats and modules

    @Test func audioThatNoModuleTakesIsRefusedWithBothFormats() async throws {
        let module = dictation()
        let analyzer = SpeechAnalyzer(modules: [module])
        let wrong = AudioFormat(sampleRate: 44100, channelCount: 2, sampleFormat: .int16)
        do {
            try await analyzer.analyzeSequence(
                sequence([AnalyzerInput(buffer: .silence(format: wrong, frameCount: 10))]))
            Issue.record("44.1 kHz stereo was taken")
        } catch {
            #expect(error.code == .unexpectedAudioFormat)
            #expect(error.message.contains("\(wrong)"))
            #expect(error.message.contains("\(ScriptedTranscriber.usualFormat)"))
        }
        // The session goes on.
        try await analyzer.analyzeSequence(sequence(inputs(1)))
        try await analyzer.finalizeAndFinish()
        #expect(module.accepted.count == 1)
    }

    /// Each module in a format of its own, from one session: every one of its frames, at its times, over a gap too.
    @Test func eachModuleIsFedInItsOwnFormat() async throws {
        func format(_ rate: Int, _ sample: SampleFormat) -> AudioFormat {
            AudioFormat(sampleRate: rate, channelCount: 1, sampleFormat: sample)
        }
        let formats = [format(48000, .float32), format(16000, .int16), format(44100, .float32), format(48000, .int16)]
        let modules = formats.map { ScriptedTranscriber(formats: [$0]) }
        let analyzer = SpeechAnalyzer(modules: modules, resampler: SoxrResamplerFactory())
        func input(_ frames: Int, at seconds: Double) -> AnalyzerInput {
            let sine = TestSignals.sine(frequency: 440, sampleRate: 48000, frameCount: frames)
            return AnalyzerInput(
                buffer: AudioBuffer(interleaved: sine, sampleRate: 48000),
                bufferStartTime: MediaTime(value: Int64(seconds * 48000), timescale: 48000))
        }
        let late = ScriptedTranscriber(formats: [format(8000, .int16)])
        try await analyzer.analyzeSequence(sequence([input(4800, at: 0), input(4801, at: 0.1)]))
        try await analyzer.setModules(modules + [late])
        try await analyzer.finalize()
        try await analyzer.analyzeSequence(sequence([input(24000, at: 1)]))
        try await analyzer.finalizeAndFinish()
        for (module, format) in zip(modules + [late], formats + [format(8000, .int16)]) {
            var frames = 0
            for case .accept(let input) in module.calls {
                #expect(input.bufferFormat == format)
                frames += input.buffer.frameCount
            }
            let expected = (module === late ? 24000 : 33601) * Double(format.sampleRate) / 48000
            #expect(abs(Double(frames) - expected) <= 1, "\(format)")
            let limit = MediaTime(value: 1, timescale: Int32(format.sampleRate))
            let behindGap = try #require(module.accepted.first { $0.start > frame(8000) })
            #expect(abs((behindGap.start - frame(16000)).seconds) <= limit.seconds, "\(format)")
            #expect(abs(try #require(module.accepted.last).end.seconds - 1.5) <= limit.seconds, "\(format)")
            let fed = module.accepted
            #expect(zip(fed, fed.dropFirst()).allSatisfy { $0.end <= $1.start })
        }
    }

    @Test func theBestFormatIsCommonAndNearTheSource() {
        func format(_ rate: Int, _ sample: SampleFormat) -> AudioFormat {
            AudioFormat(sampleRate: rate, channelCount: 1, sampleFormat: sample)
        }
        let a = ScriptedTranscriber(formats: [format(16000, .float32), format(16000, .int16), format(48000, .int16)])
        let b = ScriptedTranscriber(formats: [format(48000, .int16), format(16000, .int16)])
        #expect(SpeechAnalyzer.bestAvailableAudioFormat(compatibleWith: [a, b]) == format(16000, .int16))
        #expect(
            SpeechAnalyzer.bestAvailableAudioFormat(compatibleWith: [a, b], considering: format(48000, .float32))
                == format(48000, .int16))
        let c = ScriptedTranscriber(formats: [format(8000, .int16)])
        #expect(SpeechAnalyzer.bestAvailableAudioFormat(compatibleWith: [a, c]) == nil)
    }

    @Test func aModuleServesOneSession() async throws {
        let module = dictation()
        try await SpeechAnalyzer(modules: [module]).finalizeAndFinish()
        let second = SpeechAnalyzer(modules: [module])
        let found = await code { () async throws(StenoError) in try await second.analyzeSequence(sequence(inputs(1))) }
        #expect(found == .moduleInUse)
    }

    @Test func aModuleThatJoinsLaterSeesOnlyLaterAudio() async throws {
        let (first, second) = (dictation(), dictation())
        let analyzer = SpeechAnalyzer(modules: [first])
        try await analyzer.analyzeSequence(sequence(inputs(2)))
        try await analyzer.setModules([second])
        #expect(try await collect(first.results).last?.text == "last")
        try await analyzer.analyzeSequence(sequence(inputs(2)))
        try await analyzer.finalizeAndFinish()
        #expect(first.accepted.last?.end == frame(3200))
        #expect(second.accepted.first?.start == frame(3200))
        #expect(try await collect(second.results).allSatisfy { $0.range.start >= frame(3200) })
    }

    @Test func modulesThatAreReplacedBeforeAnyAudioEndTheirResults() async throws {
        let (first, second) = (dictation(), dictation())
        let analyzer = SpeechAnalyzer(modules: [first])
        try await analyzer.setModules([second])
        #expect(try await collect(first.results).isEmpty)
        try await analyzer.analyzeSequence(sequence(inputs(1)))
        try await analyzer.finalizeAndFinish()
        #expect(second.accepted.count == 1)
    }

    /// A module of another session is refused, and this one goes on as it was.
    @Test func aModuleInUseReplacesNothing() async throws {
        let (first, used) = (dictation(), dictation())
        try await SpeechAnalyzer(modules: [used]).finalizeAndFinish()
        let analyzer = SpeechAnalyzer(modules: [first])
        try await analyzer.analyzeSequence(sequence(inputs(1)))
        let found = await code { () async throws(StenoError) in try await analyzer.setModules([dictation(), used]) }
        #expect(found == .moduleInUse)
        try await analyzer.analyzeSequence(sequence(inputs(1)))
        try await analyzer.finalizeAndFinish()
        #expect(try await collect(first.results).last?.range.end == frame(3200))
    }

    /// A replaced module that does not come back does not hold a cancel.
    @Test func aCancelReachesModulesThatAreBeingReplaced() async throws {
        let isFinishing = Atomic(false)
        let slow = ScriptedTranscriber { call, session in
            guard case .finish = call else { return }
            isFinishing.store(true, ordering: .relaxed)
            while !session.isCancelled { Thread.sleep(forTimeInterval: 0.001) }
        }
        let analyzer = SpeechAnalyzer(modules: [slow])
        try await analyzer.analyzeSequence(sequence(inputs(1)))
        async let replacing = code { () async throws(StenoError) in try await analyzer.setModules([dictation()]) }
        while !isFinishing.load(ordering: .relaxed) { await Task.yield() }
        await analyzer.cancelAndFinishNow()
        #expect(await code { () async throws(StenoError) in _ = try await collect(slow.results) } == .cancelled)
        #expect(await replacing == .cancelled)
    }

    // MARK: Feeding

    @Test func aSlowModuleHoldsTheFeederAndNothingIsLost() async throws {
        let module = ScriptedTranscriber { call, _ in if case .accept = call { Thread.sleep(forTimeInterval: 0.002) } }
        let analyzer = SpeechAnalyzer(modules: [module], options: .init(queueDuration: 0.25))
        try await analyzer.analyzeSequence(sequence(inputs(100, frames: 1601)))
        try await analyzer.finalizeAndFinish()
        let fed = module.accepted
        #expect(fed.last?.end == frame(160_100))
        #expect(zip(fed, fed.dropFirst()).allSatisfy { $0.end == $1.start })
        #expect(fed.allSatisfy { $0.duration <= frame(4000) })
    }

    @Test func aNewSequenceReplacesTheOldOneAndTheTimelineGoesOn() async throws {
        let module = dictation()
        let analyzer = SpeechAnalyzer(modules: [module])
        try await analyzer.start(inputSequence: sequence(inputs(2), staysOpen: true))
        while module.accepted.last?.end != frame(3200) { await Task.yield() }
        try await analyzer.analyzeSequence(sequence(inputs(1)))
        try await analyzer.finalizeAndFinish()
        #expect(module.accepted.last?.end == frame(4800))
    }

    /// A recognizer is never asked for audio that it did not get.
    @Test func finalizeBehindDroppedAudioGoesThroughTheLastAccepted() async throws {
        let mayGoOn = Atomic(false)
        let module = ScriptedTranscriber { call, _ in
            while !mayGoOn.load(ordering: .relaxed) { Thread.sleep(forTimeInterval: 0.001) }
        }
        let analyzer = SpeechAnalyzer(modules: [module])
        try await analyzer.analyzeSequence(sequence(inputs(10)))
        await analyzer.cancelAnalysis(before: frame(16000))
        mayGoOn.store(true, ordering: .relaxed)
        try await analyzer.finalize()
        try await analyzer.finalizeAndFinish()
        let finalized = module.calls.compactMap { if case .finalize(let time) = $0 { time } else { nil } }
        #expect(finalized == [.zero])
    }

    @Test func waitingAudioCanBeDroppedAndIsReported() async throws {
        let mayGoOn = Atomic(false)
        let module = ScriptedTranscriber { call, _ in
            while !mayGoOn.load(ordering: .relaxed) { Thread.sleep(forTimeInterval: 0.001) }
        }
        let analyzer = SpeechAnalyzer(modules: [module])
        try await analyzer.analyzeSequence(sequence(inputs(10)))
        await analyzer.cancelAnalysis(before: frame(8000))
        mayGoOn.store(true, ordering: .relaxed)
        try await analyzer.finalizeAndFinish()
        #expect(module.accepted.map(\.start) == [frame(8000)])
        #expect(
            await analyzer.events == [
                TimelineEvent(.dropped, range: MediaTimeRange(start: .zero, end: frame(8000)))
            ])
    }
}
