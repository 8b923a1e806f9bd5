import Foundation
import StenoAnalysis
import StenoAudio
import StenoTesting
import Synchronization
import Testing

/// The conformance suite must find each broken law, under its own name, and nothing in a sound back end.
@Suite(.timeLimit(.minutes(2)))
struct CheckTranscriberTests {
    /// A second of tone between two halves of silence.
    private static let speech: AudioBuffer = {
        let tone = (0..<16000).map { Float(sin(Double($0) * 0.3)) * 0.5 }
        let silence = [Float](repeating: 0, count: 8000)
        return AudioBuffer(interleaved: silence + tone + silence, sampleRate: 16000)
    }()

    @Test func aSoundBackEndBreaksNothing() async {
        let violations = await checkTranscriber(speech: Self.speech) { SoundSpotter(fault: .none) }
        #expect(violations.isEmpty, "\(violations)")
    }

    @Test(arguments: SoundSpotter.Fault.allCases.dropFirst())
    func eachBrokenLawIsNamed(fault: SoundSpotter.Fault) async {
        let violations = await checkTranscriber(speech: Self.speech) { SoundSpotter(fault: fault) }
        #expect(violations.contains { $0.law == fault.law }, "\(fault): \(violations)")
    }

    @Test func aBackEndThatHangsIsNotWaitedFor() async {
        let release = Atomic(false)
        let violations = await checkTranscriber(speech: Self.speech, limit: .seconds(1)) {
            ScriptedTranscriber { call, _ in
                if case .finish = call {
                    while !release.load(ordering: .relaxed) { Thread.sleep(forTimeInterval: 0.01) }
                }
            }
        }
        release.store(true, ordering: .relaxed)
        #expect(violations.contains { $0.law == "A2" && $0.text.contains("not back") }, "\(violations)")
    }
}

/// Says "sound" for each stretch of audio that is not silent, with one fault to choose.
final class SoundSpotter: TranscriberModule {
    enum Fault: CaseIterable {
        case none, noFormat, windowTimes, chunkText, lostTail, staysVolatile, beyondEnd, wordsBackwards, overlaps
        case volatileWithoutCapability, lateResults, ignoresFinalize, ignoresCancel, sharedText, hearsSilence
        case halfACharacter, throwsOnShortInput, eventBeyondEnd

        var law: String {
            switch self {
            case .none: ""
            case .noFormat: "A6"
            case .windowTimes: "T2"
            case .eventBeyondEnd: "T6"
            case .chunkText: "T3"
            case .lostTail, .lateResults, .ignoresFinalize: "A2"
            case .staysVolatile, .beyondEnd, .wordsBackwards, .overlaps: "A4"
            case .volatileWithoutCapability: "A7"
            case .ignoresCancel: "A9"
            case .sharedText: "A10"
            case .hearsSilence, .throwsOnShortInput: "A11"
            case .halfACharacter: "F4"
            }
        }
    }

    let output = ModuleOutput<TranscriptionResult>()
    let fault: Fault
    init(fault: Fault) { self.fault = fault }

    var compatibleAudioFormats: [AudioFormat] { fault == .noFormat ? [] : [ScriptedTranscriber.usualFormat] }
    var capabilities: TranscriberCapabilities {
        fault == .volatileWithoutCapability ? [.wordTimes] : [.wordTimes, .volatileResults]
    }

    func makeRecognizer(_ session: RecognizerSession<TranscriptionResult>) throws -> any SpeechRecognizer {
        Recognizer(session: session, fault: fault)
    }

    /// The text of all sessions, for those that mix them up.
    private static let shared = Mutex("")

    private final class Recognizer: SpeechRecognizer {
        let session: RecognizerSession<TranscriptionResult>
        let fault: Fault
        var end = MediaTime.zero
        var sound: (first: MediaTime, last: MediaTime)?
        var buffers = 0

        init(session: RecognizerSession<TranscriptionResult>, fault: Fault) {
            self.session = session
            self.fault = fault
        }

        func accept(_ input: AnalyzerInput) throws {
            let start = input.bufferStartTime ?? end
            if fault == .throwsOnShortInput && input.buffer.frameCount < 800 {
                throw StenoError(.engineFailed, "too short")
            }
            if start != end { flush() }
            buffers += 1
            input.buffer.withSamples(of: Float.self) { samples in
                for index in samples.indices {
                    if index.isMultiple(of: 1600), session.isCancelled, fault != .ignoresCancel { return }
                    guard abs(samples[index]) > 0.01 else { continue }
                    let time = start + MediaTime(frames: Int64(index), sampleRate: 16000)
                    sound = (sound?.first ?? time, time + MediaTime(frames: 1, sampleRate: 16000))
                }
            }
            end = start + input.bufferDuration
            if fault == .ignoresCancel { Thread.sleep(forTimeInterval: 0.2 * input.bufferDuration.seconds) }
            if session.isCancelled && fault != .ignoresCancel { throw StenoError(.cancelled, "cancelled") }
            if let sound, fault != .lostTail {
                send("sou", from: sound.first, to: sound.last, isFinal: false)
            }
        }

        func finalize(through time: MediaTime) throws { if fault != .ignoresFinalize { flush() } }

        func finish() throws {
            switch fault {
            case .lostTail: break
            case .staysVolatile:
                if let sound { send("sou", from: sound.first, to: sound.last, isFinal: false) }
                send("end", from: end, to: end, isFinal: true)
            case .hearsSilence:
                send("Thank you.", from: end, to: end, isFinal: true)
                flush()
            case .lateResults:
                let (session, sound) = (session, sound)
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(10)) {
                    guard let sound else { return }
                    session.send(
                        TranscriptionResult(
                            range: MediaTimeRange(start: sound.first, end: sound.last), text: "sound", isFinal: true))
                }
            default: flush()
            }
        }

        private func flush() {
            guard let sound else { return }
            self.sound = nil
            let second = MediaTime(value: 1, timescale: 1)
            if fault == .eventBeyondEnd {
                session.report(TimelineEvent(.dropped, range: MediaTimeRange(start: end, duration: second)))
            }
            switch fault {
            case .windowTimes: send("sound", from: .zero, to: sound.last - sound.first, isFinal: true)
            case .beyondEnd: send("sound", from: sound.first, to: end + second, isFinal: true)
            case .overlaps:
                send("sound", from: sound.first, to: sound.last, isFinal: true)
                send("again", from: sound.first, to: sound.last, isFinal: true)
            case .chunkText: send("sound \(buffers)", from: sound.first, to: sound.last, isFinal: true)
            case .halfACharacter: send("soun\u{FFFD}", from: sound.first, to: sound.last, isFinal: true)
            case .sharedText:
                let text = SoundSpotter.shared.withLock { text in
                    text += "sound"
                    return text
                }
                send(text, from: sound.first, to: sound.last, isFinal: true)
            default: send("sound", from: sound.first, to: sound.last, isFinal: true)
            }
        }

        private func send(_ text: String, from start: MediaTime, to end: MediaTime, isFinal: Bool) {
            let range = MediaTimeRange(start: start, end: max(start, end))
            var words = [TranscribedWord(text, range: range)]
            if fault == .wordsBackwards {
                words.append(
                    TranscribedWord(
                        "back", range: MediaTimeRange(start: start - MediaTime(value: 1, timescale: 1), end: start)))
            }
            session.send(TranscriptionResult(range: range, text: text, words: words, isFinal: isFinal))
        }
    }
}
