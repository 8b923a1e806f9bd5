public import StenoAnalysis
public import StenoAudio
public import StenoTranscript

/// Several sources at once, such as a microphone and what the computer plays, on one time base and in one transcript.
///
/// Each source has a ``LiveSession`` of its own: its recording, its transcriber, its status. The common time is that of
/// the source that started first, the *reference*, so that its transcript fits its file to the frame. Of the others the
/// late start is added and the drift between the two clocks taken off (``SourceAlignment``).
///
/// Results and segments carry the name of their source. Those of one source are in order and never overlap, as ever;
/// two sources may well speak at once.
public actor SessionGroup {
    public struct Member: Sendable {
        /// The mark of the source; each its own.
        public var name: String
        /// A new one; it is started and stopped by the group, and otherwise controlled and looked at where it is.
        public var session: LiveSession

        public init(name: String, session: LiveSession) {
            self.name = name
            self.session = session
        }
    }

    /// What a group leaves.
    public struct Draft: Sendable {
        /// All text and all events on the common time base. The detail of an event begins with the name of its source.
        public var transcript: Transcript
        /// What each member left, in its own time.
        public var drafts: [LiveSession.Draft]
        /// Where each member's own time lies in the common one; nil for a source that never delivered anything.
        public var alignments: [SourceAlignment?]
    }

    public nonisolated let members: [Member]
    private let output = ModuleOutput<TranscriptionResult>()
    private var clocks: [SourceClock]
    /// The end of each member's last final result.
    private var finalEnds: [MediaTime]
    private var transcript = Transcript()
    private var work: [Task<StenoError?, Never>] = []
    private var isStarted = false

    public init(_ members: [Member]) {
        self.members = members
        clocks = members.map { _ in SourceClock() }
        finalEnds = members.map { _ in .zero }
    }

    deinit { output.finish(.cancelled) }

    /// The results of all members on the common time base, for one reader. Ends when all have ended, and then throws
    /// the first reason for which a transcription ended before its session.
    public nonisolated var results: ModuleOutput<TranscriptionResult>.Results { output.results }

    /// Starts all sources; returns when each has delivered its first audio, and so the common zero is known.
    ///
    /// - Throws: what the first member that cannot start throws; the others are stopped then.
    public func start() async throws(StenoError) {
        guard !isStarted else { throw StenoError(.invalidArgument, "the group was started before; make a new one") }
        isStarted = true
        do throws(StenoError) {
            for member in members { try await member.session.start() }
        } catch {
            for member in members { _ = await member.session.stop() }
            output.finish(.failed(error))
            throw error
        }
        for (index, member) in members.enumerated() {
            var status = await member.session.status
            while status.timing == nil, status.phase == .capturing || status.phase == .paused {
                try? await Task.sleep(for: .milliseconds(5))
                status = await member.session.status
            }
            if let timing = status.timing { clocks[index].note(timing) }
        }
        for index in members.indices {
            work.append(Task { await self.takeResults(of: index) })
        }
        Task {
            var failure: StenoError?
            for task in work {
                let error = await task.value
                failure = failure ?? error
            }
            output.finish(failure.map { .failed($0) } ?? .finished)
        }
    }

    private func takeResults(of index: Int) async -> StenoError? {
        do throws(StenoError) {
            for try await result in members[index].session.results { await take(result, from: index) }
        } catch {
            return error
        }
        return nil
    }

    private func take(_ result: TranscriptionResult, from index: Int) async {
        for (index, member) in members.enumerated() {
            if let timing = await member.session.status.timing { clocks[index].note(timing) }
        }
        guard let alignment = alignment(of: index) else { return }
        var result = result
        result.source = members[index].name
        result.range = alignment.range(result.range)
        for word in result.words.indices {
            result.words[word].range = result.words[word].range.map { alignment.range($0) }
        }
        result.resultsFinalizationTime = alignment.time(result.resultsFinalizationTime)
        // The drift is measured anew for each result, and must not make two of them overlap.
        let end = finalEnds[index]
        if result.range.start < end {
            result = result.clamped(to: MediaTimeRange(start: end, end: max(end, result.range.end)))
        }
        if result.isFinal { finalEnds[index] = result.range.end }
        transcript.apply(result)
        output.publish(result)
    }

    /// Where the own time of a member lies in the common one, as well as it is known now; nil before its first audio.
    public func alignment(of index: Int) -> SourceAlignment? {
        let started = clocks.filter { $0.zero != nil }
        guard let own = clocks[index].zero, let reference = started.min(by: { $0.startsBefore($1) }),
            let zero = reference.zero
        else { return nil }
        // With its own clock the reference is off by nothing.
        return SourceAlignment(
            offset: MediaTime(value: (own - zero).nanoseconds, timescale: 1_000_000_000),
            partsPerBillion: clocks[index].partsPerBillion - reference.partsPerBillion)
    }

    /// Stops all members at once and waits for all transcripts, as ``LiveSession/stop()`` does.
    public func stop() async -> Draft {
        let stopping = members.map { member in Task { await member.session.stop() } }
        var drafts: [LiveSession.Draft] = []
        for task in stopping { drafts.append(await task.value) }
        for task in work { _ = await task.value }
        output.finish(.finished)
        let alignments = members.indices.map { alignment(of: $0) }
        var transcript = transcript
        for (index, draft) in drafts.enumerated() {
            guard let alignment = alignments[index] else { continue }
            transcript.duration = max(transcript.duration, alignment.time(draft.duration))
            for event in draft.transcript.events {
                let detail = members[index].name + (event.detail.isEmpty ? "" : ": \(event.detail)")
                transcript.events.append(
                    TimelineEvent(event.kind, range: alignment.range(event.range), detail: detail))
            }
        }
        transcript.events.sort { $0.range.start < $1.range.start }
        return Draft(transcript: transcript, drafts: drafts, alignments: alignments)
    }
}

/// Where a source's own time lies on the time base of a ``SessionGroup``.
public struct SourceAlignment: Sendable, Hashable {
    /// When the source started, in common time. Known to about the length of a read of the device, 20 ms.
    public var offset: MediaTime
    /// How much faster the source's clock runs than the reference's, in billionths: 20 000 is 20 ppm, or 72 ms an hour.
    /// Measured from the start on, so that a time that follows from it is as good as ``offset``, however long it runs.
    public var partsPerBillion: Int64

    public init(offset: MediaTime, partsPerBillion: Int64 = 0) {
        self.offset = offset
        self.partsPerBillion = partsPerBillion
    }

    /// A time of the source in common time: the reference's exactly, others rounded to 100 ns.
    public func time(_ own: MediaTime) -> MediaTime {
        if offset == .zero && partsPerBillion == 0 { return own }
        let timescale: Int32 = 10_000_000
        let value = own.converted(to: timescale).value
        let drift = divide(
            Int128(value) * Int128(partsPerBillion), by: 1_000_000_000, rounding: .toNearestOrAwayFromZero)
        return MediaTime(value: value - Int64(drift) + offset.converted(to: timescale).value, timescale: timescale)
    }

    public func range(_ own: MediaTimeRange) -> MediaTimeRange {
        MediaTimeRange(start: time(own.start), end: time(own.end))
    }
}

/// A source's clock against the monotonic one.
struct SourceClock {
    private(set) var zero: ContinuousClock.Instant?
    private var readings: [CaptureTiming] = []

    mutating func note(_ timing: CaptureTiming) {
        zero = timing.zero
        guard timing != readings.last else { return }
        if readings.count == 16 { readings.removeFirst() }
        readings.append(timing)
    }

    func startsBefore(_ other: SourceClock) -> Bool {
        guard let zero, let otherZero = other.zero else { return zero != nil }
        return zero < otherZero
    }

    /// How far the source runs ahead, in billionths. Audio never arrives early, so of some readings the one that is
    /// least late is the best.
    var partsPerBillion: Int64 {
        guard let best = readings.max(by: { $0.drift < $1.drift }) else { return 0 }
        let (drift, elapsed) = (Int128(best.drift.nanoseconds), Int128(best.elapsed.nanoseconds))
        // What is off by a hundredth is no clock: a file that is read as fast as it comes.
        guard elapsed > 0, drift.magnitude < elapsed.magnitude / 100 else { return 0 }
        return Int64(divide(drift * 1_000_000_000, by: elapsed, rounding: .toNearestOrAwayFromZero))
    }
}
