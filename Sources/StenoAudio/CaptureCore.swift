import Glibc
import Synchronization

/// What the capture thread, the supervisor and the consumer share.
///
/// Three parties: the capture thread (``CaptureReader``) reads the device and writes ring, marks and gauges; the
/// consumer calls ``next(isolation:)`` or ``nextBlocking()``; the supervisor, a thread too, resumes a suspended
/// consumer, so that the capture thread need not touch its lock, and ends the capture when a call into the device does
/// not come back.
final class CaptureCore: Sendable {
    /// What lies between frames, at a place in the ring that was current when it was made.
    struct Mark: Sendable {
        enum Content: Sendable {
            case gap(TimelineEvent.Kind, frameCount: Int64)
            case notice(TimelineEvent.Kind, String, frameCount: Int64)
            case interrupted(StenoError)
            /// The frames that follow are in this ring.
            case ring(AudioRing)
        }
        var position: Int
        var content: Content
    }

    /// One for each thread that waits.
    struct Signals: Sendable {
        let capture, supervisor, consumer: WakeSignal

        init() throws(StenoError) {
            capture = try WakeSignal()
            supervisor = try WakeSignal()
            consumer = try WakeSignal()
        }
    }

    private struct Control {
        enum Phase {
            case idle
            case started
            case ended(StenoError?, leftOver: [Mark])
        }
        var phase = Phase.idle
        var starting: CheckedContinuation<Result<AudioFormat, StenoError>, Never>?
        /// Resumed with true: look again. With false: another reader waits already.
        var waiting: CheckedContinuation<Bool, Never>?
    }

    let configuration: CaptureSource.Configuration
    let open: @Sendable () throws(StenoError) -> any CaptureStream
    /// The zero of ``now``.
    let origin: ContinuousClock.Instant
    let marks = BoundedQueue<Mark>(capacity: 256)
    let gauges = CaptureGauges()
    let meter = LevelMeter()

    private let control = Lock(Control())
    private let consumer = Lock(CaptureConsumer())
    /// Made with the source, thrown by its start.
    private let signals: Result<Signals, StenoError>
    private let stopping = Atomic<Bool>(false)
    private let ended = Atomic<Bool>(false)
    /// The device is closed, or was left behind.
    private let closed = Atomic<Bool>(false)
    /// Whether the consumer waits on a thread of its own, which the capture thread wakes itself.
    private let consumerBlocks = Atomic<Bool>(false)
    /// Grows with everything that the consumer may want to see.
    private let published = Atomic<Int>(0)
    /// When the running call into the device is overdue, in nanoseconds on a clock that stands still while the machine
    /// sleeps.
    private let deadline = Atomic<Int64>(.max)
    private let deadlineOrigin = SuspendingClock.now

    init(
        configuration: CaptureSource.Configuration, open: @escaping @Sendable () throws(StenoError) -> any CaptureStream
    ) {
        self.configuration = configuration
        self.open = open
        do throws(StenoError) { signals = .success(try Signals()) } catch { signals = .failure(error) }
        origin = configuration.now()
    }

    /// Nanoseconds on the clock of the timeline.
    var now: Int64 { (configuration.now() - origin).nanoseconds }
    var isStopping: Bool { stopping.load(ordering: .acquiring) }
    /// Also true for a capture thread that was given up: it may not touch the shared parts any more.
    var isEnded: Bool { ended.load(ordering: .acquiring) }

    // MARK: Start and stop

    func start() async throws(StenoError) -> AudioFormat {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let refusal = control.withLock { control -> StenoError? in
                    if case .idle = control.phase {
                        control.starting = continuation
                        control.phase = .started
                        return nil
                    }
                    return StenoError(.invalidArgument, "A capture source starts once; make a new one.")
                }
                if let refusal {
                    continuation.resume(returning: .failure(refusal))
                    return
                }
                do throws(StenoError) {
                    try startThreads()
                } catch {
                    conclude(error)
                    closed.store(true, ordering: .releasing)
                }
            }
        } onCancel: {
            requestStop()
        }
        return try result.get()
    }

    private func startThreads() throws(StenoError) {
        let signals = try signals.get()
        arm(configuration.openTimeout)
        try startThread { self.supervise(signals.supervisor) }
        try startThread {
            CaptureReader.run(self, signals)
            self.closed.store(true, ordering: .releasing)
        }
    }

    /// The device is open.
    func opened(_ format: AudioFormat) { resumeStart(.success(format)) }

    private func resumeStart(_ result: Result<AudioFormat, StenoError>) {
        let starting = control.withLock { control in
            defer { control.starting = nil }
            return control.starting
        }
        starting?.resume(returning: result)
    }

    private func requestStop() {
        stopping.store(true, ordering: .releasing)
        try? signals.get().capture.ring()
    }

    func stop() {
        requestStop()
        let wasIdle = control.withLock { control in
            if case .idle = control.phase { return true }
            return false
        }
        if wasIdle {
            conclude(nil)
            return
        }
        let giveUp = SuspendingClock.now + .milliseconds(500)
        while !closed.load(ordering: .acquiring), SuspendingClock.now < giveUp { usleep(2000) }
        closed.store(true, ordering: .releasing)
        conclude(nil)
    }

    /// Ends the capture; the first call decides how. `leftOver` are marks that found the queue full.
    func conclude(_ error: StenoError?, leftOver: [Mark] = []) {
        let isFirst = control.withLock { control in
            if case .ended = control.phase { return false }
            control.phase = .ended(error, leftOver: leftOver)
            return true
        }
        guard isFirst else { return }
        stopping.store(true, ordering: .releasing)
        ended.store(true, ordering: .releasing)
        resumeStart(.failure(error ?? StenoError(.cancelled, "The capture was stopped before the device was open.")))
        resumeConsumer()
        guard let signals = try? signals.get() else { return }
        signals.supervisor.ring()
        signals.consumer.ring()
    }

    // MARK: Supervisor

    /// Before each call into the device: how long it may take.
    func arm(_ limit: Duration) {
        deadline.store((SuspendingClock.now - deadlineOrigin + limit).nanoseconds, ordering: .relaxed)
    }

    private func supervise(_ signal: WakeSignal) {
        var last = SuspendingClock.now
        while !isEnded {
            if signal.wait(atMost: .milliseconds(100)) { resumeConsumer() }
            let now = SuspendingClock.now
            // Where this thread stood still, so did the one that calls the device: stopped by a signal, say.
            if now - last > .seconds(1) { deadline.wrappingAdd((now - last).nanoseconds, ordering: .relaxed) }
            last = now
            if (now - deadlineOrigin).nanoseconds > deadline.load(ordering: .relaxed) {
                closed.store(true, ordering: .releasing)
                conclude(StenoError(.deviceTimeout, "The device does not answer: a call into it did not come back."))
            }
        }
    }

    /// Something new is there for the consumer.
    func publish(_ signals: Signals) {
        published.add(1, ordering: .sequentiallyConsistent)
        let signal = consumerBlocks.load(ordering: .sequentiallyConsistent) ? signals.consumer : signals.supervisor
        signal.ring()
    }

    private func resumeConsumer() {
        let waiting = control.withLock { control in
            defer { control.waiting = nil }
            return control.waiting
        }
        waiting?.resume(returning: true)
    }

    // MARK: Consumer

    func next(isolation: isolated (any Actor)?) async throws(StenoError) -> CaptureEvent? {
        consumerBlocks.store(false, ordering: .sequentiallyConsistent)
        while true {
            try checkCancellation()
            let seen = published.load(ordering: .sequentiallyConsistent)
            switch try poll() {
            case .event(let event): return event
            case .end: return nil
            case .nothing:
                guard await waitForMore(than: seen, isolation: isolation) else {
                    throw StenoError(.invalidArgument, "Captured audio is for one reader; another one waits already.")
                }
            }
        }
    }

    func nextBlocking() throws(StenoError) -> CaptureEvent? {
        let signal = try signals.get().consumer
        consumerBlocks.store(true, ordering: .sequentiallyConsistent)
        while true {
            try checkCancellation()
            switch try poll() {
            case .event(let event): return event
            case .end: return nil
            // A ring between the look and the wait is kept by the signal.
            case .nothing: _ = signal.wait(atMost: .milliseconds(100))
            }
        }
    }

    private func checkCancellation() throws(StenoError) {
        if Task.isCancelled { throw StenoError(.cancelled, "Reading the captured audio was cancelled.") }
    }

    /// The next event if one is there. Neither waits nor, in the steady state, allocates.
    func poll() throws(StenoError) -> CaptureConsumer.Step {
        // Before the ring is looked at: what was captured before the end comes before the end.
        let isEnded = isEnded
        let step = consumer.withLock { $0.poll(marks) }
        guard isEnded, case .nothing = step else { return step }
        let end = control.withLock { control -> (StenoError?, Mark?) in
            guard case .ended(let error, var leftOver) = control.phase else { return (nil, nil) }
            let mark = leftOver.isEmpty ? nil : leftOver.removeFirst()
            control.phase = .ended(mark == nil ? nil : error, leftOver: leftOver)
            return (mark == nil ? error : nil, mark)
        }
        if let mark = end.1 { return consumer.withLock { $0.apply(mark.content) } }
        if let error = end.0 { throw error }
        return .end
    }

    /// False when another reader waits already.
    private func waitForMore(than seen: Int, isolation: isolated (any Actor)?) async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation(isolation: isolation) { continuation in
                let isAlone = control.withLock { control in
                    guard control.waiting == nil else { return false }
                    control.waiting = continuation
                    return true
                }
                guard isAlone else { return continuation.resume(returning: false) }
                // What came between the look into the ring and here has rung in vain.
                let isLate = published.load(ordering: .sequentiallyConsistent) != seen || isEnded || Task.isCancelled
                if isLate { resumeConsumer() }
            }
        } onCancel: {
            resumeConsumer()
        }
    }
}

/// The consumer's side of the ring: turns it back into events, and knows where on the timeline they lie.
struct CaptureConsumer: Sendable {
    enum Step: Sendable {
        case event(CaptureEvent)
        case nothing
        case end
    }

    private var ring: AudioRing?
    /// Where the frames in `ring` began to count, and how many frames and missing frames have been since.
    private var base = MediaTime.zero
    private var count: Int64 = 0
    /// Filled in turn. A buffer that the reader has let go is filled again without an allocation; one that it still
    /// holds is left to it by copy-on-write.
    private var pool: [AudioBuffer] = []
    private var turn = 0

    mutating func poll(_ marks: BoundedQueue<CaptureCore.Mark>) -> Step {
        // The ring first: marks before these frames are in the queue by now. A mark may be newer than that look into the
        // ring, and the frames before it too, so its own position counts and not what was written.
        let written = ring?.writtenCount ?? 0
        let mark = marks.peek()
        if let ring {
            let available = (mark?.position ?? written) - ring.consumedCount
            if available > 0 { return .event(frames(from: ring, limit: available)) }
        }
        guard let mark else { return .nothing }
        marks.removeFirst()
        let step = apply(mark.content)
        // The first ring makes no event.
        if case .nothing = step { return poll(marks) }
        return step
    }

    private mutating func frames(from ring: AudioRing, limit: Int) -> CaptureEvent {
        turn = (turn + 1) % pool.count
        let frames = ring.read(into: &pool[turn], limit: limit)
        let start = now
        count += Int64(frames)
        return .frames(pool[turn], start: start)
    }

    private var sampleRate: Int { ring?.format.sampleRate ?? 1 }
    private var now: MediaTime { time(count) }
    private func time(_ count: Int64) -> MediaTime { base + MediaTime(frames: count, sampleRate: sampleRate) }

    mutating func apply(_ content: CaptureCore.Mark.Content) -> Step {
        switch content {
        case .gap(let kind, let frameCount):
            let range = MediaTimeRange(start: now, end: time(count + frameCount))
            count += frameCount
            return .event(.gap(TimelineEvent(kind, range: range), frameCount: frameCount))
        case .notice(let kind, let detail, let frameCount):
            let range = MediaTimeRange(start: time(max(0, count - frameCount)), end: now)
            return .event(.notice(TimelineEvent(kind, range: range, detail: detail)))
        case .interrupted(let error):
            return .event(.interrupted(error, at: now))
        case .ring(let next):
            let isFirst = ring == nil
            base = isFirst ? .zero : now
            count = 0
            ring = next
            let capacity = max(1, next.format.sampleRate / 10)
            pool = (0..<8).map { _ in AudioBuffer(format: next.format, frameCapacity: capacity) }
            return isFirst ? .nothing : .event(.formatChanged(next.format, at: base))
        }
    }
}
