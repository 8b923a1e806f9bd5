import Dispatch
public import StenoAnalysis
public import StenoAudio
import Synchronization

/// A law that a back end broke, and how.
public struct LawViolation: Sendable, CustomStringConvertible {
    /// The law's name in Documentation/Laws.md, such as `A4`.
    public let law: String
    /// What was expected and what was found.
    public let text: String

    public init(law: String, text: String) {
        self.law = law
        self.text = text
    }

    public var description: String { "\(law): \(text)" }
}

/// Tests that a recognizer back end keeps what ``SpeechModule`` and ``SpeechRecognizer`` ask of it.
///
///     #expect(await checkTranscriber(speech: clip) { try MyTranscriber() }.isEmpty)
///
/// It looks at what the recognizer itself sends, before the core clamps and orders it.
///
/// - Parameters:
///   - speech: some seconds that the recognizer should find text in, in one of its formats.
///   - limit: how long one session may take before it counts as hung.
///   - make: makes a new module; called some fifteen times. The modules may share a loaded model.
/// - Returns: every law that was broken; empty for a good back end.
public func checkTranscriber(
    speech: AudioBuffer, limit: Duration = .seconds(120), make: @escaping @Sendable () throws -> any TranscriberModule
) async -> [LawViolation] {
    let check: TranscriberCheck
    do {
        check = TranscriberCheck(speech: speech, limit: limit, capabilities: try make().capabilities, make: make)
    } catch {
        return [LawViolation(law: "A7", text: "the module could not be made: \(error)")]
    }
    await check.formats()
    await check.silence()
    await check.shortInput()
    let reference = await check.speech()
    await check.timeBase(reference)
    await check.chunking(reference)
    await check.gap(reference)
    await check.finalizing()
    await check.isolation(reference)
    await check.cancelling()
    return check.violations
}

/// One session's script: audio, orders, and what came of them.
private enum Step: Sendable {
    case accept(AudioBuffer, at: MediaTime)
    case finalize(MediaTime)
    case finish
    /// Cancels while the next audio is being accepted.
    case cancelSoon
}

private struct Outcome: Sendable {
    var results: [TranscriptionResult] = []
    var events: [TimelineEvent] = []
    /// How many results there were after each step.
    var counts: [Int] = []
    var error: (any Error)?
    var cancelled: Duration?

    var finals: [TranscriptionResult] { results.filter { $0.isFinal && !$0.isEmpty } }
    var text: String { finals.map(\.text).joined(separator: " ") }
}

private final class TranscriberCheck: Sendable {
    let speech: AudioBuffer
    let limit: Duration
    let capabilities: TranscriberCapabilities
    let make: @Sendable () throws -> any TranscriberModule
    private let found = Lock<[LawViolation]>([])

    init(
        speech: AudioBuffer, limit: Duration, capabilities: TranscriberCapabilities,
        make: @escaping @Sendable () throws -> any TranscriberModule
    ) {
        self.speech = speech
        self.limit = limit
        self.capabilities = capabilities
        self.make = make
    }

    var violations: [LawViolation] { found.withLock { $0 } }

    private func expect(_ condition: Bool, _ law: String, _ text: @autoclosure () -> String) {
        if !condition {
            let violation = LawViolation(law: law, text: text())
            found.withLock { $0.append(violation) }
        }
    }

    private var format: AudioFormat { speech.format }
    private func time(_ frame: Int) -> MediaTime { MediaTime(frames: Int64(frame), sampleRate: format.sampleRate) }
    private func silence(_ seconds: Double) -> AudioBuffer {
        .silence(format: format, frameCount: Int(seconds * Double(format.sampleRate)))
    }

    // MARK: The laws

    func formats() async {
        let module = try? make()
        let formats = module?.compatibleAudioFormats ?? []
        expect(!formats.isEmpty, "A6", "compatibleAudioFormats is empty")
        expect(formats.contains(format), "A6", "the speech is in \(format), which is none of \(formats)")
    }

    func silence() async {
        let nothing = await run([.finish], "a session without audio")
        expect(nothing.results.isEmpty, "A11", "a session without audio gave \(nothing.results)")
        let silent = await run([.accept(silence(3), at: .zero), .finish], "three seconds of silence")
        expect(silent.text.isEmpty, "A11", "three seconds of silence gave \"\(silent.text)\"")
        inspect(silent, fedFrom: .zero, through: time(silence(3).frameCount), "silence")
    }

    func shortInput() async {
        for frames in [1, format.sampleRate / 20, format.sampleRate / 5] {
            let buffer = speech.copy(frames: 0..<min(frames, speech.frameCount))
            let outcome = await run([.accept(buffer, at: .zero), .finish], "\(frames) frames")
            inspect(outcome, fedFrom: .zero, through: time(buffer.frameCount), "\(frames) frames")
        }
    }

    func speech() async -> Outcome {
        let outcome = await run([.accept(speech, at: .zero), .finish], "speech")
        expect(!outcome.text.isEmpty, "A2", "finish returned and the speech has no final text")
        inspect(outcome, fedFrom: .zero, through: time(speech.frameCount), "speech")
        return outcome
    }

    func timeBase(_ reference: Outcome) async {
        let offset = MediaTime(value: 100, timescale: 1)
        let outcome = await run([.accept(speech, at: offset), .finish], "speech at 100 s")
        inspect(outcome, fedFrom: offset, through: offset + time(speech.frameCount), "speech at 100 s")
        let starts = outcome.finals.map(\.range.start)
        let expected = reference.finals.map { $0.range.start + offset }
        expect(
            starts == expected, "T2",
            "the same audio 100 s later gives results at \(starts.map(\.seconds)) s, "
                + "not at \(expected.map(\.seconds)) s: times are those of the buffers")
    }

    func chunking(_ reference: Outcome) async {
        for chunk in [format.sampleRate / 100 + 1, format.sampleRate / 3] {
            var steps: [Step] = []
            for first in stride(from: 0, to: speech.frameCount, by: chunk) {
                let range = first..<min(first + chunk, speech.frameCount)
                steps.append(.accept(speech.copy(frames: range), at: time(first)))
            }
            let outcome = await run(steps + [.finish], "speech in buffers of \(chunk) frames")
            expect(
                outcome.text == reference.text, "T3",
                "in buffers of \(chunk) frames the speech reads \"\(outcome.text)\", at once \"\(reference.text)\"")
            inspect(outcome, fedFrom: .zero, through: time(speech.frameCount), "speech in buffers of \(chunk) frames")
        }
    }

    func gap(_ reference: Outcome) async {
        let end = time(speech.frameCount)
        let second = end + MediaTime(value: 30, timescale: 1)
        let outcome = await run(
            [.accept(speech, at: .zero), .accept(speech, at: second), .finish], "speech around a gap")
        let through = second + end
        inspect(outcome, fedFrom: .zero, through: through, "speech around a gap")
        let inside = outcome.finals.flatMap(\.words).filter { word in
            word.range.map { $0.start >= end && $0.end <= second && !$0.isEmpty } ?? false
        }
        expect(inside.isEmpty, "T2", "words lie in a gap of 30 s where there was no audio: \(inside.map(\.text))")
        expect(
            reference.text.isEmpty || outcome.finals.contains { $0.range.start >= second }, "T2",
            "after a gap of 30 s no result lies behind it, though there was speech")
    }

    func finalizing() async {
        let end = time(speech.frameCount)
        let outcome = await run(
            [
                .accept(speech, at: .zero), .finalize(end), .finalize(end), .accept(silence(1), at: end), .finish,
            ], "finalize")
        guard outcome.counts.count == 5 else { return }
        let before = outcome.results.prefix(outcome.counts[1])
        let after = outcome.results.dropFirst(outcome.counts[1])
        expect(
            before.contains { $0.isFinal && !$0.isEmpty }, "A2", "finalize returned and no text of the speech is final")
        expect(
            after.allSatisfy { $0.isEmpty || $0.range.end > end }, "A4",
            "after finalize through \(end.seconds) s there came \(after.first?.text ?? "") for earlier audio")
        inspect(outcome, fedFrom: .zero, through: end + time(silence(1).frameCount), "finalize")
    }

    func isolation(_ reference: Outcome) async {
        async let first = run([.accept(speech, at: .zero), .finish], "one of two sessions")
        async let second = run([.accept(silence(2), at: .zero), .finish], "the other of two sessions")
        let (speaking, silent) = await (first, second)
        expect(
            speaking.text == reference.text, "A10",
            "beside another session the speech reads \"\(speaking.text)\", alone \"\(reference.text)\"")
        expect(silent.text.isEmpty, "A10", "a session of silence beside one of speech gave \"\(silent.text)\"")
    }

    func cancelling() async {
        // Half an hour, in the pieces that the core hands over.
        var long = AudioBuffer(format: format, frameCapacity: max(speech.frameCount, 10 * format.sampleRate))
        while long.frameCount + speech.frameCount <= long.frameCapacity { long.append(speech) }
        var steps: [Step] = [.cancelSoon]
        for index in 0..<180 { steps.append(.accept(long, at: time(index * long.frameCount))) }
        let outcome = await run(steps + [.finish], "half an hour of speech that is cancelled")
        guard let taken = outcome.cancelled else { return }
        // The law says 200 ms; a busy machine gets a second, which no back end that decodes to the end keeps.
        expect(taken < .seconds(1), "A9", "a cancelled session went on for \(taken)")
    }

    // MARK: What holds for every session

    private func inspect(_ outcome: Outcome, fedFrom start: MediaTime, through end: MediaTime, _ what: String) {
        let audio = MediaTimeRange(start: start, end: end)
        var finalEnd = start
        var volatile: MediaTimeRange?
        for result in outcome.results {
            expect(
                audio.contains(result.range), "A4",
                "\(what): a result at \(seconds(result.range)) lies outside the audio at \(seconds(audio))")
            expect(!result.text.contains("\u{FFFD}"), "F4", "\(what): \"\(result.text)\" holds half a character")
            if result.isFinal {
                expect(
                    result.range.start >= finalEnd, "A4",
                    "\(what): a final result at \(seconds(result.range)) after audio to \(finalEnd.seconds) s was final"
                )
                finalEnd = max(finalEnd, result.range.end)
            } else {
                expect(
                    capabilities.contains(.volatileResults), "A7", "\(what): a volatile result without the capability")
            }
            if !result.isFinal && !result.isEmpty {
                volatile = result.range
            } else if let standing = volatile, result.range.end > standing.start, result.range.start <= standing.start {
                volatile =
                    result.range.end >= standing.end
                    ? nil : MediaTimeRange(start: result.range.end, end: standing.end)
            }
            inspectWords(of: result, what)
        }
        for event in outcome.events {
            expect(
                audio.contains(event.range), "T6",
                "\(what): an event at \(seconds(event.range)) lies outside the audio at \(seconds(audio))")
        }
        if let volatile, outcome.error == nil {
            expect(false, "A4", "\(what): text at \(seconds(volatile)) stayed volatile after finish")
        }
    }

    private func inspectWords(of result: TranscriptionResult, _ what: String) {
        var last = result.range.start
        for word in result.words {
            if let range = word.range {
                expect(capabilities.contains(.wordTimes), "A7", "\(what): word times without the capability")
                expect(
                    range.start >= last && range.end <= result.range.end, "A4",
                    "\(what): the word \"\(word.text)\" at \(seconds(range)) is out of order or outside its segment at "
                        + seconds(result.range))
                last = range.start
            }
            if let confidence = word.confidence {
                expect(capabilities.contains(.confidence), "A7", "\(what): a confidence without the capability")
                expect((0...1).contains(confidence), "A4", "\(what): a confidence of \(confidence)")
            }
        }
        expect(
            result.alternatives.isEmpty || capabilities.contains(.alternatives), "A7",
            "\(what): alternatives without the capability")
    }

    private func seconds(_ range: MediaTimeRange) -> String { "\(range.start.seconds)-\(range.end.seconds) s" }

    // MARK: Running a session

    /// Runs the script on a thread of its own. A session that does not come back is a violation, and is left behind.
    private func run(_ steps: [Step], _ what: String) async -> Outcome {
        let state = SessionState()
        return await withCheckedContinuation { (continuation: CheckedContinuation<Outcome, Never>) in
            let deliver: @Sendable (Outcome?) -> Void = { [self] outcome in
                let isFirst = state.claim()
                guard isFirst else { return }
                expect(outcome != nil, "A2", "\(what): not back after \(limit)")
                continuation.resume(returning: outcome ?? Outcome())
            }
            DispatchQueue(label: "steno.check").async { deliver(self.session(steps, what, state)) }
            let nanoseconds = limit.components.seconds * 1_000_000_000
            DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(Int(nanoseconds))) { deliver(nil) }
        }
    }

    private func session(_ steps: [Step], _ what: String, _ state: SessionState) -> Outcome {
        var outcome = Outcome()
        do {
            let module = try make()
            outcome = try play(steps, module, state, what)
        } catch {
            outcome.error = error
            outcome.results = state.results.withLock { $0 }
            if !state.isCancelled { expect(false, "A11", "\(what): threw \(error)") }
        }
        if let start = state.cancelledAt.withLock({ $0 }) { outcome.cancelled = .now - start }
        return outcome
    }

    private func play(
        _ steps: [Step], _ module: some TranscriberModule, _ state: SessionState, _ what: String
    ) throws -> Outcome {
        let session = RecognizerSession<TranscriptionResult>(
            format: format, sink: { state.take($0) },
            reporter: { event in state.events.withLock { $0.append(event) } }, cancelled: { state.isCancelled })
        let recognizer = try module.makeRecognizer(session)
        var outcome = Outcome()
        for step in steps where !state.isCancelled {
            switch step {
            case .accept(let buffer, let start):
                try recognizer.accept(AnalyzerInput(buffer: buffer, bufferStartTime: start))
            case .finalize(let time): try recognizer.finalize(through: time)
            case .finish: try recognizer.finish()
            case .cancelSoon:
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(300)) { state.cancel() }
            }
            outcome.counts.append(state.results.withLock { $0.count })
        }
        outcome.results = state.results.withLock { $0 }
        outcome.events = state.events.withLock { $0 }
        if !state.isCancelled {
            // Whatever still runs in the back end has a moment to show itself.
            DispatchSemaphore(value: 0).waitBriefly()
            let late = state.results.withLock { $0.count } - outcome.results.count
            expect(late == 0, "A2", "\(what): \(late) results came after finish had returned")
        }
        return outcome
    }
}

private final class SessionState: Sendable {
    let results = Lock<[TranscriptionResult]>([])
    let events = Lock<[TimelineEvent]>([])
    let cancelledAt = Lock<ContinuousClock.Instant?>(nil)
    private let isClaimed = Atomic(false)
    private let cancelled = Atomic(false)

    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    func take(_ result: TranscriptionResult) { results.withLock { $0.append(result) } }

    func cancel() {
        cancelledAt.withLock { $0 = .now }
        cancelled.store(true, ordering: .releasing)
    }

    /// True for the first caller.
    func claim() -> Bool { !isClaimed.exchange(true, ordering: .acquiringAndReleasing) }
}

extension DispatchSemaphore {
    fileprivate func waitBriefly() { _ = wait(timeout: .now() + .milliseconds(50)) }
}
