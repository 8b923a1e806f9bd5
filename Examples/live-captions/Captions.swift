import ExampleCapture
import ExampleSupport
import Foundation
import Steno

enum CaptionFormat: String, CaseIterable { case text, jsonl }

/// Where the captions go: finished phrases to standard output and to a WebVTT file, the rest to the bottom of a terminal.
actor Captions {
    /// Why captions could not be written.
    private(set) var failure: StenoError?

    private let format: CaptionFormat
    private var lines = TextWriter(showsTimes: true)
    private var vtt: TextOutput?
    private var cues = WebVTTWriter()
    private let output: TextOutput
    private var area = LiveArea()
    private var status: LiveSession.Status?
    private var transcript = Transcript()
    private var phrases = PhraseJoiner()
    private var zero: ContinuousClock.Instant?
    private var events = EventLog()
    private var saidTranscriptionError = false
    private var saidBehind = false

    /// - Parameter vtt: The path of a WebVTT file.
    init(format: CaptionFormat, vtt: String?) throws(StenoError) {
        self.format = format
        output = try TextOutput(path: "-")
        guard let vtt else { return }
        let file = try TextOutput(path: vtt)
        try file.write(cues.begin())
        self.vtt = consume file
    }

    func take(_ result: TranscriptionResult, of session: LiveSession) async {
        if zero == nil { zero = await session.status.timing?.zero }
        transcript.apply(result)
        if result.isFinal, !result.isEmpty { for phrase in phrases.append(TranscriptSegment(result)) { show(phrase) } }
        if format == .jsonl { write(jsonLine(ResultLine(result, emitted: emitted))) }
        draw()
    }

    func show(_ status: LiveSession.Status) {
        self.status = status
        zero = zero ?? status.timing?.zero
        if let error = status.transcriptionError, !saidTranscriptionError {
            saidTranscriptionError = true
            report("transcriptionFailed", at: status.duration, error.message)
        }
        // At once, and with its end when it has one.
        if let event = status.behind, !saidBehind { report(event) }
        saidBehind = status.behind != nil
        for event in events.settled(status.events) { report(event) }
        draw()
    }

    private func show(_ phrase: TranscriptSegment) {
        // The file first: it holds whatever was printed.
        let cues = cues.append(phrase)
        attempt { () throws(StenoError) in try vtt?.write(cues) }
        if format == .text { write(lines.append(phrase)) }
    }

    /// Says what is left to say. Returns the exit code of the whole.
    func end(_ draft: LiveSession.Draft) -> ExitCode {
        show(draft.status)
        if let phrase = phrases.finish() { show(phrase) }
        for event in events.rest(of: draft.transcript.events) { report(event) }
        area.clear()
        let status = draft.status
        for error in [status.captureError, status.recordingError, failure].compactMap({ $0 })
        where error.code != .cancelled {
            Terminal.say("live-captions: \(error.message)\n")
        }
        if let error = status.recordingError { return ExitCode(ofRecording: error) }
        // Stopped before the device was open.
        if status.captureError?.code == .cancelled { return .interrupted }
        return (status.captureError ?? failure ?? status.transcriptionError).map { ExitCode($0) } ?? .done
    }

    /// Seconds since the start on the session's clock.
    private var emitted: Double {
        zero.map { ((ContinuousClock.now - $0) / .milliseconds(1)).rounded() / 1000 } ?? 0
    }

    private func report(_ event: TimelineEvent) {
        report(event.kind.rawValue, from: event.range.start, at: event.range.end, event.detail)
    }

    private func report(_ kind: String, from start: MediaTime? = nil, at end: MediaTime, _ detail: String) {
        let line = EventLine(
            emitted: emitted, event: kind, start: seconds(start ?? end), end: seconds(end), detail: detail)
        if format == .jsonl { write(jsonLine(line)) }
        area.clear()
        Terminal.say("live-captions: \(kind) at \(line.start) to \(line.end) s \(detail)\n")
    }

    private func write(_ text: String) {
        area.clear()
        attempt { () throws(StenoError) in try output.write(text) }
    }

    private func attempt(_ body: () throws(StenoError) -> Void) {
        do throws(StenoError) { if failure == nil { try body() } } catch { failure = error }
    }

    /// The phrase that is not finished and what may still change, its last lines, and the state below it.
    private func draw() {
        let unfinished = [phrases.open?.text].compactMap { $0 } + transcript.volatile.map(\.text)
        let text = Terminal.lines(of: unfinished.joined(separator: " "), width: Terminal.width - 1).suffix(4)
        area.show(text + (status.map { [statusLine($0)] } ?? []))
    }
}

/// Which events were told. The last one may still grow, and waits until it does not.
private struct EventLog {
    private var told = 0
    private var last: TimelineEvent?
    private var calls = 0

    /// Called ten times a second; looks once a second.
    mutating func settled(_ events: [TimelineEvent]) -> ArraySlice<TimelineEvent> {
        calls += 1
        guard calls.isMultiple(of: 10), let newest = events.last, told < events.count else { return [] }
        defer { last = newest }
        let end = newest == last ? events.count : events.count - 1
        defer { told = max(told, end) }
        return events[told..<max(told, end)]
    }

    /// - Parameter events: Those of the recording, in the order in which they were told, and all others behind them.
    func rest(of events: [TimelineEvent]) -> ArraySlice<TimelineEvent> { events.dropFirst(told) }
}

// MARK: JSON Lines

private struct ResultLine: Encodable {
    struct Word: Encodable {
        var text: String
        var start, end: Double?
        var confidence: Float?
    }

    var emitted, start, end: Double
    var text: String
    var isFinal: Bool
    var words: [Word]

    init(_ result: TranscriptionResult, emitted: Double) {
        self.emitted = emitted
        start = seconds(result.range.start)
        end = seconds(result.range.end)
        text = result.text
        isFinal = result.isFinal
        words = result.words.map { word in
            Word(
                text: word.text, start: word.range.map { seconds($0.start) }, end: word.range.map { seconds($0.end) },
                confidence: word.confidence.flatMap { $0.isFinite ? $0 : nil })
        }
    }
}

private struct EventLine: Encodable {
    var emitted: Double
    var event: String
    var start, end: Double
    var detail: String
}

/// To the millisecond.
private func seconds(_ time: MediaTime) -> Double { Double(time.converted(to: 1000).value) / 1000 }

private func jsonLine(_ line: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Strings and finite numbers always encode.
    return ((try? encoder.encode(line)).map { String(decoding: $0, as: UTF8.self) } ?? "{}") + "\n"
}
