import Foundation
import StenoAnalysis
import StenoAudio
import StenoTesting
import Synchronization
import Testing

/// What each of the analyzer's verbs does in each state. A cell is the state that follows, or, with `!`, the error that is
/// thrown while the state stays.
///
/// `fed` is after a sequence has ended, `running` in one that does not end, `finishing` while a module drains. A finish
/// in `finishing` waits for the same end.
private let table = """
              prepare    analyze    start      finalize   drop       replace    finishInput finish    cancel
    fresh     prepared   fed        running    fresh      fresh      fresh      finished   finished   cancelled
    prepared  prepared   fed        running    prepared   prepared   prepared   finished   finished   cancelled
    running   running    fed        running    running    running    running    finished   finished   cancelled
    fed       fed        fed        running    fed        fed        fed        finished   finished   cancelled
    finishing !finished  !finished  !finished  !finished  finishing  !finished  finished   finished   cancelled
    finished  !finished  !finished  !finished  !finished  finished   !finished  finished   finished   finished
    cancelled !cancelled !cancelled !cancelled !cancelled cancelled  !cancelled !cancelled !cancelled cancelled
    failed    !failed    !failed    !failed    !failed    failed     !failed    !failed    !failed    failed
    """

enum AnalyzerState: String, CaseIterable { case fresh, prepared, running, fed, finishing, finished, cancelled, failed }

enum AnalyzerVerb: String, CaseIterable, Sendable {
    case prepare, analyze, start, finalize, drop, replace, finishInput, finish, cancel
}

/// There is no form of these tests without threads: a verb is done when a module's recognizer, which may block and so has
/// a thread of its own, has done its part. The table runs on the real ones, and once more under the thread sanitizer.
@Suite("The analyzer's verbs in all states", .timeLimit(.minutes(2)))
struct StateTableTests {
    private struct Outcome: Equatable {
        var next: AnalyzerState
        var error: StenoError.Code?
    }

    private static let outcomes: [AnalyzerState: [AnalyzerVerb: Outcome]] = {
        let rows = table.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        var outcomes: [AnalyzerState: [AnalyzerVerb: Outcome]] = [:]
        for row in rows.dropFirst() {
            guard let state = AnalyzerState(rawValue: row[0]) else { continue }
            for (name, cell) in zip(rows[0], row.dropFirst()) {
                guard let verb = AnalyzerVerb(rawValue: name) else { continue }
                let errors: [String: StenoError.Code] = [
                    "!finished": .sessionFinished, "!cancelled": .cancelled, "!failed": .engineFailed,
                ]
                outcomes[state, default: [:]][verb] = Outcome(
                    next: AnalyzerState(rawValue: cell) ?? state, error: errors[cell])
            }
        }
        return outcomes
    }()

    private func outcome(of verb: AnalyzerVerb, in state: AnalyzerState) throws -> Outcome {
        try #require(Self.outcomes[state]?[verb])
    }

    /// Each verb in each state, and after it each verb again, the same one too.
    @Test(arguments: AnalyzerState.allCases.filter { $0 != .finishing })
    func everyVerbAfterEveryVerb(in state: AnalyzerState) async throws {
        for first in AnalyzerVerb.allCases {
            for second in AnalyzerVerb.allCases {
                let session = try await Session(in: state)
                let expected = try outcome(of: first, in: state)
                #expect(await session.call(first) == expected.error, "\(first) in \(state)")
                let then = try outcome(of: second, in: expected.next)
                #expect(await session.call(second) == then.error, "\(second) after \(first) in \(state)")
                try await session.expectEnd(then.next, "\(second) after \(first) in \(state)")
            }
        }
    }

    /// The verbs that wait for the end are called twice at once, then the module is let go; the others come back before.
    @Test func everyVerbTwiceWhileFinishing() async throws {
        for verb in AnalyzerVerb.allCases {
            let session = try await Session(in: .finishing)
            let expected = try outcome(of: verb, in: .finishing)
            if expected.next == .finished {
                async let first = session.call(verb)
                async let second = session.call(verb)
                for _ in 0..<10 { await Task.yield() }
                #expect(await session.analyzer.finishReason == nil)
                session.letGo()
                #expect(await [first, second] == [nil, nil], "\(verb)")
            } else {
                for _ in 1...2 { #expect(await session.call(verb) == expected.error, "\(verb)") }
                session.letGo()
            }
            let end = expected.next == .finishing ? AnalyzerState.finished : expected.next
            #expect(await session.finishing?.value == (end == .cancelled ? .cancelled : nil), "\(verb)")
            try await session.expectEnd(end, "\(verb) while finishing")
        }
    }

    /// Some verbs at once, in orders that a seed chooses: each returns, with an error that one of the orders explains, and
    /// what the session says in the end is consistent.
    @Test(arguments: [false, true])
    func racingVerbs(withAFailure fails: Bool) async throws {
        for seed in 0..<200 {
            var random = SeededRandom(seed: UInt64(seed))
            let session = Session(fails: fails)
            let verbs = (0..<Int.random(in: 2...6, using: &random)).map { _ in
                (AnalyzerVerb.allCases.randomElement(using: &random) ?? .finish, Int.random(in: 0...20, using: &random))
            }
            let codes = await withTaskGroup(of: StenoError.Code?.self) { group in
                for (verb, delay) in verbs {
                    group.addTask {
                        for _ in 0..<delay { await Task.yield() }
                        return await session.call(verb)
                    }
                }
                return await group.reduce(into: Set<StenoError.Code>()) { if let code = $1 { $0.insert(code) } }
            }
            var allowed: Set<StenoError.Code> = [.sessionFinished]
            if verbs.contains(where: { $0.0 == .cancel }) { allowed.insert(.cancelled) }
            if fails { allowed.insert(.engineFailed) }
            #expect(codes.subtracting(allowed).isEmpty, "seed \(seed): \(verbs.map(\.0))")
            _ = await session.call(.finish)
            try await session.expectConsistency("seed \(seed): \(verbs.map(\.0))")
        }
    }
}

/// An analyzer whose modules are remembered, also those that were replaced.
private final class Session: Sendable {
    let analyzer: SpeechAnalyzer
    /// Holds a module in its `finish`.
    private let hold = Hold()
    let finishing: Task<StenoError.Code?, Never>?
    private let modules: Lock<[ScriptedTranscriber]>
    private let fails: Bool

    /// - Parameter fails: whether the first module fails at its second buffer.
    init(fails: Bool = false) {
        self.fails = fails
        let module = fails ? failing(after: 1) : dictation()
        modules = Lock([module])
        analyzer = SpeechAnalyzer(modules: [module], options: .init(inputIdleLimit: .milliseconds(20)))
        finishing = nil
    }

    init(in state: AnalyzerState) async throws {
        fails = state == .failed
        let hold = hold
        let module =
            switch state {
            case .failed: failing(after: 0)
            case .finishing:
                dictation { call in
                    if case .finish = call {
                        while hold.isOn.load(ordering: .relaxed) { Thread.sleep(forTimeInterval: 0.001) }
                    }
                }
            default: dictation()
            }
        modules = Lock([module])
        let analyzer = SpeechAnalyzer(modules: [module], options: .init(inputIdleLimit: .milliseconds(20)))
        self.analyzer = analyzer
        switch state {
        case .fresh: break
        case .prepared: try await analyzer.prepareToAnalyze(in: ScriptedTranscriber.usualFormat)
        case .running:
            try await analyzer.start(inputSequence: sequence(inputs(1), staysOpen: true))
            while module.accepted.isEmpty { await Task.yield() }
        case .fed, .finishing: try await analyzer.analyzeSequence(sequence(inputs(1)))
        case .finished: try await analyzer.finalizeAndFinish()
        case .cancelled: await analyzer.cancelAndFinishNow()
        case .failed:
            _ = try? await analyzer.analyzeSequence(sequence(inputs(1)))
            try? await analyzer.finalize()
        }
        guard state == .finishing else {
            finishing = nil
            return
        }
        hold.isOn.store(true, ordering: .relaxed)
        finishing = Task {
            await code { () async throws(StenoError) in try await analyzer.finalizeAndFinish() }
        }
        while !module.calls.contains(where: { if case .finish = $0 { true } else { false } }) { await Task.yield() }
    }

    func letGo() { hold.isOn.store(false, ordering: .relaxed) }

    func call(_ verb: AnalyzerVerb) async -> StenoError.Code? {
        await code { () async throws(StenoError) in
            switch verb {
            case .prepare: try await analyzer.prepareToAnalyze(in: ScriptedTranscriber.usualFormat)
            case .analyze: try await analyzer.analyzeSequence(sequence(inputs(3, frames: 500)))
            case .start: try await analyzer.start(inputSequence: sequence(inputs(2), staysOpen: true))
            case .finalize: try await analyzer.finalize()
            case .drop: await analyzer.cancelAnalysis(before: frame(100))
            case .replace:
                let module = dictation()
                modules.withLock { $0.append(module) }
                do throws(StenoError) {
                    try await analyzer.setModules([module])
                } catch {
                    // It may not have become one of the session's.
                    module.output.finish(.failed(error))
                    throw error
                }
            case .finishInput: try await analyzer.finalizeAndFinishThroughEndOfInput()
            case .finish: try await analyzer.finalizeAndFinish()
            case .cancel: await analyzer.cancelAndFinishNow()
            }
        }
    }

    /// The session is in this state, or is cancelled where that is none that lasts; its results end accordingly.
    func expectEnd(_ state: AnalyzerState, _ comment: String) async throws {
        let isOver = [.finished, .cancelled, .failed].contains(state)
        #expect(await (analyzer.finishReason != nil) == isOver, "\(comment)")
        if !isOver { await analyzer.cancelAndFinishNow() }
        let expected: StenoError.Code? =
            switch state {
            case .finished: nil
            case .failed: .engineFailed
            default: .cancelled
            }
        #expect(await analyzer.finishReason?.error?.code == expected, "\(comment)")
        try await expectConsistency(comment)
    }

    /// All results end as the session did or, of a module that was replaced, well before; and they keep the laws.
    func expectConsistency(_ comment: String) async throws {
        let reason = try #require(await analyzer.finishReason)
        let current = await analyzer.modules
        for module in modules.withLock({ $0 }) {
            var results: [TranscriptionResult] = []
            let found = await code { () async throws(StenoError) in
                for try await result in module.results { results.append(result) }
            }
            let isCurrent = current.contains { $0 === module }
            #expect(found == reason.error?.code || !isCurrent, "\(comment)")
            let finals = results.filter { $0.isFinal && !$0.range.isEmpty }
            #expect(zip(finals, finals.dropFirst()).allSatisfy { $0.range.end <= $1.range.start }, "\(comment)")
            let fed = module.accepted
            #expect(zip(fed, fed.dropFirst()).allSatisfy { $0.end <= $1.start }, "\(comment)")
            if found == nil { #expect(finals.last?.range.end == fed.last?.end, "\(comment)") }
        }
        // Everything that was fed was heard.
        if reason.error == nil, let range = await analyzer.volatileRange {
            #expect(range.isEmpty, "\(comment)")
            #expect(await analyzer.acceptedThrough == range.end, "\(comment)")
        }
    }
}

private func failing(after count: Int) -> ScriptedTranscriber {
    let rest = Atomic(count)
    return dictation { call in
        guard case .accept = call else { return }
        if rest.subtract(1, ordering: .relaxed).oldValue == 0 { throw StenoError(.engineFailed, "broken") }
    }
}

private final class Hold: Sendable {
    let isOn = Atomic(false)
}
