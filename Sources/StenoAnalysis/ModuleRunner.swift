import Dispatch
import StenoAudio
import StenoConversion
import Synchronization

/// One module at work in one session, as the analyzer sees it.
protocol ModuleRunning: AnyObject, Sendable {
    var module: any SpeechModule { get }
    /// Results are final up to here.
    var finalizedThrough: MediaTime { get }
    /// The end of the audio that the recognizer was given.
    var acceptedThrough: MediaTime { get }
    /// Returns when the recognizer is made.
    func prepare() async throws(StenoError)
    /// Returns when all frames are in the module's queue.
    func push(_ buffer: AudioBuffer, from first: Int, start: Int64) async throws(StenoError)
    func finalize(through frame: Int64) async throws(StenoError)
    /// Returns when the last result was published.
    func finish() async throws(StenoError)
    func discard(before frame: Int64) -> Range<Int64>?
    /// Ends the result sequence with `reason`, and the work as soon as the recognizer notices.
    func end(_ reason: SpeechAnalyzer.FinishReason)
}

/// Owns the thread of one module: feeds its recognizer from the queue, passes its results through the gate.
final class ModuleRunner<Module: SpeechModule>: ModuleRunning {
    private struct State {
        var gate: ResultGate<Module.Result>
        var isPrepared = false
        var hasEnded = false
        var failure: StenoError?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let owned: Module
    private let queue: AudioQueue
    private let format: AudioFormat
    private let resampler: (any ResamplerFactory)?
    private let state: Lock<State>
    private let isCancelled = Atomic(false)
    private let report: @Sendable (TimelineEvent) -> Void
    private let accepted: @Sendable (MediaTime) -> Void
    private let failed: @Sendable (StenoError) -> Void

    /// - Parameters:
    ///   - format: what the module is given; one of its own.
    ///   - sessionFormat: what comes; where it is another format, `resampler` is not nil.
    ///   - start: the frame at which the module joins the timeline.
    ///   - accepted: called with the end of each buffer before the recognizer gets it.
    ///   - failed: called once if the module fails; the analyzer then ends the session.
    init(
        _ module: Module, format: AudioFormat, sessionFormat: AudioFormat, resampler: (any ResamplerFactory)?,
        start: Int64, frameCapacity: Int,
        report: @escaping @Sendable (TimelineEvent) -> Void, accepted: @escaping @Sendable (MediaTime) -> Void,
        failed: @escaping @Sendable (StenoError) -> Void
    ) {
        owned = module
        self.format = format
        self.resampler = resampler
        queue = AudioQueue(format: sessionFormat, frameCapacity: frameCapacity)
        state = Lock(State(gate: ResultGate(start: MediaTime(frames: start, sampleRate: sessionFormat.sampleRate))))
        self.report = report
        self.accepted = accepted
        self.failed = failed
        // A thread that may block, for as long as the session lasts.
        DispatchQueue(label: "steno.module").async { self.run() }
    }

    var module: any SpeechModule { owned }
    var finalizedThrough: MediaTime { state.withLock { $0.gate.finalizedThrough } }

    var acceptedThrough: MediaTime { state.withLock { $0.gate.fedThrough } }

    func prepare() async throws(StenoError) {
        await wait { $0.isPrepared || $0.hasEnded }
        try check()
    }

    func push(_ buffer: AudioBuffer, from first: Int, start: Int64) async throws(StenoError) {
        await queue.push(buffer, from: first, start: start)
        try check()
    }

    func finalize(through frame: Int64) async throws(StenoError) {
        await queue.finalize(through: frame)
        try check()
    }

    func finish() async throws(StenoError) {
        queue.finish()
        await wait { $0.hasEnded }
        try check()
    }

    func discard(before frame: Int64) -> Range<Int64>? { queue.discard(before: frame) }

    func end(_ reason: SpeechAnalyzer.FinishReason) {
        isCancelled.store(true, ordering: .relaxed)
        owned.output.finish(reason)
        stop(reason.error)
    }

    private func check() throws(StenoError) {
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Lets everybody who waits for this module go on. The first failure stays.
    private func stop(_ failure: StenoError?) {
        update { state in
            state.failure = state.failure ?? failure
            state.hasEnded = true
        }
        queue.stop()
    }

    // MARK: The module's thread

    private func run() {
        var order: CheckedContinuation<Void, Never>?
        do {
            let session = RecognizerSession<Module.Result>(
                format: format, sink: { self.publish($0) },
                reporter: { event in self.report(self.state.withLock { $0.gate.admit(event) }) },
                cancelled: { self.isCancelled.load(ordering: .relaxed) })
            let feed = ModuleFeed(from: queue.format, to: format, resampler: resampler)
            let recognizer = try owned.makeRecognizer(session)
            update { $0.isPrepared = true }
            var buffer = AudioBuffer(format: queue.format, frameCapacity: queue.frameCapacity)
            while true {
                switch queue.next(into: &buffer) {
                case .audio(let start):
                    let end = time(start + Int64(buffer.frameCount))
                    state.withLock { $0.gate.feed(through: end) }
                    accepted(end)
                    try feed.accept(buffer, start: start, by: recognizer)
                case .finalize(let frame, let continuation):
                    order = continuation
                    // What lies before it may have been dropped.
                    let end = min(time(frame), acceptedThrough)
                    try recognizer.finalize(through: feed.flush(through: end, into: recognizer))
                    takeBack(through: end)
                    order = nil
                    continuation.resume()
                case .finish:
                    _ = try feed.flush(through: time(0), into: recognizer)
                    try recognizer.finish()
                    takeBack(through: state.withLock { $0.gate.fedThrough })
                    update { $0.hasEnded = true }
                    return
                case .stop:
                    return
                }
            }
        } catch {
            let failure =
                error as? StenoError ?? StenoError(.moduleFailed, "a module failed: \(error)", underlying: error)
            stop(failure)
            order?.resume()
            if !isCancelled.load(ordering: .relaxed) { failed(failure) }
        }
    }

    private func publish(_ result: Module.Result) {
        // Publishing inside the lock keeps the order of the gate for results from several threads.
        let event = state.withLock { state -> TimelineEvent? in
            let (result, event) = state.gate.admit(result)
            if let result { owned.output.publish(result) }
            return event
        }
        if let event { report(event) }
    }

    private func takeBack(through time: MediaTime) {
        state.withLock { state in
            if let revocation = state.gate.finalize(through: time) { owned.output.publish(revocation) }
        }
    }

    private func time(_ frame: Int64) -> MediaTime { MediaTime(frames: frame, sampleRate: queue.format.sampleRate) }

    // MARK: Waiting

    private func update(_ change: (inout State) -> Void) {
        let waiters = state.withLock { state in
            change(&state)
            defer { state.waiters.removeAll() }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    private func wait(until condition: (borrowing State) -> Bool) async {
        while !state.withLock({ condition($0) }) {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    if condition(state) { return true }
                    state.waiters.append(continuation)
                    return false
                }
                if isDone { continuation.resume() }
            }
        }
    }
}
