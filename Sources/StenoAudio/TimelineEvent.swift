/// Something that happened to the audio at a known place on the timeline (law T6): lost, missing or altered audio is
/// never spliced silently.
public struct TimelineEvent: Sendable, Hashable {
    /// A stable name; open for sources and modules of your own.
    public struct Kind: RawRepresentable, Sendable, Hashable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
    }

    public let kind: Kind
    /// Where, and how long. Of an event without length, an empty range.
    public let range: MediaTimeRange
    /// One sentence for people; may be empty.
    public let detail: String

    public init(_ kind: Kind, range: MediaTimeRange, detail: String = "") {
        self.kind = kind
        self.range = range
        self.detail = detail
    }
}

extension TimelineEvent.Kind {
    /// The device or the source lost frames because nobody fetched them in time.
    public static let overrun = Self(rawValue: "overrun")
    /// The device went away, or its server did.
    public static let deviceLost = Self(rawValue: "deviceLost")
    /// The source had nothing to deliver: a monitor with nothing playing.
    public static let idle = Self(rawValue: "idle")
    /// Capture was paused on purpose.
    public static let pause = Self(rawValue: "pause")
    /// The source's clock jumped forward with no reason given.
    public static let gap = Self(rawValue: "gap")
    /// Audio that overlapped earlier audio was cut off.
    public static let overlapTrimmed = Self(rawValue: "overlapTrimmed")
    /// A start time that overlapped earlier audio was ignored and the audio was placed behind it.
    public static let overlapIgnored = Self(rawValue: "overlapIgnored")
    /// Audio was dropped before it was analyzed.
    public static let dropped = Self(rawValue: "dropped")
    /// The source's format changed.
    public static let formatChanged = Self(rawValue: "formatChanged")
    /// A file's structure is damaged or odd; what could be read was read.
    public static let fileWarning = Self(rawValue: "fileWarning")
    /// A module's result had no audio under it, or lay in audio that was final already.
    public static let resultMisplaced = Self(rawValue: "resultMisplaced")
    /// Speech was heard and a recognizer made no text of it.
    public static let speechWithoutText = Self(rawValue: "speechWithoutText")
    /// A recognizer repeated itself over this audio, as no speaker does; what it said was cut.
    public static let loopCut = Self(rawValue: "loopCut")
    /// How channels were mixed changed: one in opposite phase or without signal was left out.
    public static let channels = Self(rawValue: "channels")
}

extension [TimelineEvent] {
    /// Appends an event. One that touches the last, with the same kind and detail, extends it; and so does, after 10,000
    /// events, any of the same kind as the last, so that a fault in every buffer of a day does not grow without bound.
    public mutating func note(_ event: TimelineEvent) {
        guard let last, last.kind == event.kind, last.range.start <= event.range.start,
            count >= 10_000 || (event.range.start <= last.range.end && last.detail == event.detail)
        else { return append(event) }
        let range = MediaTimeRange(start: last.range.start, end: Swift.max(last.range.end, event.range.end))
        self[count - 1] = TimelineEvent(event.kind, range: range, detail: event.detail)
    }
}
