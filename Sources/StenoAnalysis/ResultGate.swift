import StenoAudio

/// What stands between a recognizer and the readers of its results: keeps law A4 whatever the recognizer sends.
///
/// A final result starts where the last one ended or later, and ends inside the audio that was fed. At the end no
/// volatile range is left: what did not become final is taken back.
struct ResultGate<Result: SpeechModuleResult> {
    private let start: MediaTime
    /// The end of the audio that the recognizer was given.
    private(set) var fedThrough: MediaTime
    /// Results are final up to here.
    private(set) var finalizedThrough: MediaTime
    /// Where volatile text stands that was neither replaced nor taken back.
    private var volatileRange: MediaTimeRange?

    init(start: MediaTime) {
        self.start = start
        fedThrough = start
        finalizedThrough = start
    }

    mutating func feed(through time: MediaTime) { fedThrough = max(fedThrough, time) }

    /// The result as it may be published, or nil; and what had to be done to it, if that is worth telling.
    mutating func admit(_ result: Result) -> (result: Result?, event: TimelineEvent?) {
        let bounds = MediaTimeRange(start: finalizedThrough, end: max(finalizedThrough, fedThrough))
        if result.range.start >= fedThrough && !result.isEmpty {
            // The engine heard its own padding.
            let event = TimelineEvent(
                .resultMisplaced, range: MediaTimeRange(start: fedThrough, end: fedThrough),
                detail: "a result at \(result.range.start.seconds) s was dropped: the audio ends before it")
            return (nil, event)
        }
        var clamped = result.clamped(to: bounds)
        if result.isFinal {
            let isLate = result.range.end <= finalizedThrough && !result.isEmpty
            finalizedThrough = max(finalizedThrough, clamped.range.end)
            clamped.resultsFinalizationTime = finalizedThrough
            settle()
            let event =
                isLate
                ? TimelineEvent(
                    .resultMisplaced, range: clamped.range,
                    detail: "final text for \(result.range.start.seconds) s came after that time was final")
                : nil
            return (clamped, event)
        }
        guard !clamped.range.isEmpty else { return (nil, nil) }
        if let standing = volatileRange {
            volatileRange = MediaTimeRange(
                start: min(standing.start, clamped.range.start), end: max(standing.end, clamped.range.end))
        } else {
            volatileRange = clamped.range
        }
        if result.isEmpty && volatileRange == clamped.range { volatileRange = nil }
        clamped.resultsFinalizationTime = finalizedThrough
        return (clamped, nil)
    }

    /// An event of the recognizer as it may be told.
    func admit(_ event: TimelineEvent) -> TimelineEvent {
        let range = event.range.clamped(to: MediaTimeRange(start: start, end: fedThrough))
        return TimelineEvent(event.kind, range: range, detail: event.detail)
    }

    /// Makes everything up to `time` final and takes back what is still volatile there.
    mutating func finalize(through time: MediaTime) -> Result? {
        finalizedThrough = max(finalizedThrough, min(time, fedThrough))
        guard let standing = volatileRange, standing.start < finalizedThrough else { return nil }
        var revocation = Result.revocation(
            of: MediaTimeRange(start: standing.start, end: min(standing.end, finalizedThrough)))
        settle()
        revocation.resultsFinalizationTime = finalizedThrough
        return revocation
    }

    private mutating func settle() {
        guard let standing = volatileRange else { return }
        volatileRange =
            standing.end <= finalizedThrough
            ? nil : MediaTimeRange(start: max(standing.start, finalizedThrough), end: standing.end)
    }
}
