public import StenoAudio
public import StenoConversion

/// Runs modules over one timeline of audio.
///
/// Feeding, reading results and control are separate tasks, tied only by media time (law A1): audio goes in through
/// ``analyzeSequence(_:)`` or ``start(inputSequence:)``, each module's `results` are read wherever it suits, and three
/// verbs end things: *finalize* makes results final and goes on, *finish* drains and ends, *cancel* drops and ends.
///
/// Differences from the framework that gave the names: a finish always returns; an overlap does not end the session;
/// audio that a module does not take is refused with an error that names both formats, and the session goes on; results still
/// waiting when an error ends the session can be read before the error is thrown.
public actor SpeechAnalyzer {
    /// Why a session ended.
    public enum FinishReason: Sendable {
        case finished
        case cancelled
        case failed(StenoError)

        /// What waiting calls and result sequences throw; nil when the session finished.
        public var error: StenoError? {
            switch self {
            case .finished: nil
            case .cancelled: StenoError(.cancelled, "the analysis was cancelled")
            case .failed(let error): error
            }
        }
    }

    /// What becomes of a session when one of its modules fails.
    public enum ModuleFailurePolicy: Sendable {
        /// It ends; every waiter and every result sequence gets the error.
        case failAll
        /// It goes on without the module, whose results end with the error, and which is told by
        /// ``SpeechAnalyzer/moduleFailures``. When the last module fails it ends with that error.
        case dropModule
    }

    /// A module that failed and was dropped.
    public struct ModuleFailure: Sendable {
        public var module: any SpeechModule
        public var error: StenoError
    }

    public struct Options: Sendable {
        /// What happens to audio that overlaps earlier audio.
        public var overlapPolicy: OverlapPolicy
        public var moduleFailurePolicy: ModuleFailurePolicy
        /// Seconds of audio that wait for each module; a feeder waits when they are full.
        public var queueDuration: Double
        /// How long a finish waits for the next buffer of an input sequence that has not ended; then it finishes
        /// through the last one.
        public var inputIdleLimit: Duration

        public init(
            overlapPolicy: OverlapPolicy = .trim, moduleFailurePolicy: ModuleFailurePolicy = .failAll,
            queueDuration: Double = 10, inputIdleLimit: Duration = .seconds(10)
        ) {
            self.overlapPolicy = overlapPolicy
            self.moduleFailurePolicy = moduleFailurePolicy
            self.queueDuration = queueDuration
            self.inputIdleLimit = inputIdleLimit
        }
    }

    public let options: Options
    public private(set) var modules: [any SpeechModule]
    /// The modules that were dropped because they failed; see ``ModuleFailurePolicy/dropModule``.
    public private(set) var moduleFailures: [ModuleFailure] = []
    /// The format of the session: that of the first input, or the one that was prepared for.
    public private(set) var inputFormat: AudioFormat?
    /// Why the session ended; nil while it goes on.
    public private(set) var finishReason: FinishReason?
    /// What happened to the audio so far: gaps and overlaps in the input, results that had to be moved, and what the
    /// recognizers report. A reported event is here as soon as the recognizer's call has returned.
    public var events: [TimelineEvent] { noted.withLock { $0 } }

    private let noted = Lock<[TimelineEvent]>([])
    private let observer: (any AnalysisObserver)?
    private let resampler: (any ResamplerFactory)?
    private var runners: [any ModuleRunning] = []
    /// Of modules that were replaced and are being finished.
    private var leaving: [any ModuleRunning] = []
    private var timeline = Timeline(sampleRate: 1)
    private var hasInput = false
    private var isFinishing = false
    /// Counts input sequences; a sequence that is not the newest is ignored.
    private var sequence = 0
    private var isSequenceRunning = false
    private var isPushing = false
    private var pushWaiterCount = 0
    private var feeder: Task<Void, Never>?
    /// The thread on which an input sequence is read.
    package nonisolated let feederExecutor = BlockingExecutor(label: "steno.feeder")
    /// The thread of all analyzers, which never blocks. On the cooperative pool each buffer would allocate.
    private static let executor = BlockingExecutor(label: "steno.analyzer")

    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe Self.executor.asUnownedSerialExecutor() }
    private var lastInputInstant = ContinuousClock.now
    private var inputError: StenoError?
    private var waiters: [CheckedContinuation<Void, Never>] = []

    /// - Parameters:
    ///   - modules: at least one, each new; a module belongs to one analyzer.
    ///   - resampler: brings the audio into the format of each module that does not take the session's; nil demands
    ///     that all of them take it.
    public init(
        modules: [any SpeechModule], options: Options = Options(), resampler: (any ResamplerFactory)? = nil
    ) {
        self.modules = modules
        self.options = options
        self.resampler = resampler
        observer = nil
    }

    package init(module: any SpeechModule, options: Options, observer: any AnalysisObserver) {
        modules = [module]
        self.options = options
        resampler = nil
        self.observer = observer
    }

    deinit {
        feeder?.cancel()
        for runner in runners + leaving { runner.end(.cancelled) }
        for module in modules { module.endUnused(.cancelled) }
    }

    // MARK: Before

    /// The best format that every module takes; nil when there is none.
    ///
    /// - Parameter natural: the format of the source. Among the formats in common, one with its sample rate comes first,
    ///   then the order of the first module.
    public static func bestAvailableAudioFormat(
        compatibleWith modules: [any SpeechModule], considering natural: AudioFormat? = nil
    ) -> AudioFormat? {
        guard let first = modules.first else { return nil }
        let common = first.compatibleAudioFormats.filter { format in
            modules.allSatisfy { $0.compatibleAudioFormats.contains(format) }
        }
        return common.first { $0.sampleRate == natural?.sampleRate } ?? common.first
    }

    /// Loads models and makes recognizers ahead of the first audio.
    ///
    /// - Throws: `unexpectedAudioFormat`, or what a module could not do.
    public func prepareToAnalyze(in format: AudioFormat) async throws(StenoError) {
        try checkOpen()
        try await open(format)
        for runner in runners {
            do { try await runner.prepare() } catch { try failed(runner.module, error) }
        }
    }

    private func open(_ format: AudioFormat) async throws(StenoError) {
        if let inputFormat {
            guard inputFormat == format else {
                throw StenoError(
                    .unexpectedAudioFormat, "the session is in \(inputFormat), not \(format); a converter keeps it so")
            }
            return
        }
        guard !modules.isEmpty else {
            throw StenoError(.incompatibleAudioFormats, "the analyzer has no module to feed")
        }
        for module in modules { _ = try self.format(for: module, in: format) }
        inputFormat = format
        timeline = Timeline(sampleRate: format.sampleRate)
        for module in modules {
            do { runners.append(try makeRunner(module, format)) } catch { throw fail(error) }
        }
    }

    /// What the module is given in a session in `format`.
    private func format(for module: any SpeechModule, in format: AudioFormat) throws(StenoError) -> AudioFormat {
        if module.compatibleAudioFormats.contains(format) { return format }
        if resampler != nil,
            let own = SpeechAnalyzer.bestAvailableAudioFormat(compatibleWith: [module], considering: format)
        {
            return own
        }
        let accepted = module.compatibleAudioFormats.map { "\($0)" }.joined(separator: "; ")
        throw StenoError(.unexpectedAudioFormat, "\(type(of: module)) takes \(accepted), not \(format)")
    }

    private func makeRunner(
        _ module: some SpeechModule, _ format: AudioFormat
    ) throws(StenoError) -> any ModuleRunning {
        let own = try self.format(for: module, in: format)
        guard module.output.attach() else {
            throw StenoError(.moduleInUse, "this \(type(of: module)) belongs to another session; make a new one")
        }
        return ModuleRunner(
            module, format: own, sessionFormat: format, resampler: resampler, start: timeline.end,
            frameCapacity: max(1, Int(options.queueDuration * Double(format.sampleRate))),
            report: { [weak self] event in self?.note(event) },
            accepted: { [observer] time in observer?.accepted(through: time) },
            failed: { [weak self] error in Task { try await self?.failed(module, error) } })
    }

    /// Replaces the modules. Those that go are finished first; those that come see only later audio.
    public func setModules(_ newModules: [any SpeechModule]) async throws(StenoError) {
        await waitForPush()
        try checkOpen()
        if let inputFormat {
            for module in newModules { _ = try format(for: module, in: inputFormat) }
        }
        var joining: [any ModuleRunning] = []
        if let inputFormat {
            for module in newModules where !runners.contains(where: { $0.module === module }) {
                do {
                    joining.append(try makeRunner(module, inputFormat))
                } catch {
                    for runner in joining { runner.end(.failed(error)) }
                    throw error
                }
            }
        }
        func leaves(_ module: any SpeechModule) -> Bool { !newModules.contains { $0 === module } }
        let replaced = runners.filter { leaves($0.module) }
        for module in modules where leaves(module) { module.endUnused(.finished) }
        runners = runners.filter { !leaves($0.module) } + joining
        modules = newModules
        leaving += replaced
        for runner in replaced {
            do { try await runner.finish() } catch { try failed(runner.module, error) }
            runner.end(.finished)
            leaving.removeAll { $0 === runner }
        }
    }

    // MARK: Feeding

    /// Feeds a sequence, and returns when it has ended and all of it waits for the modules; finalize or finish next.
    ///
    /// A sequence that is started later replaces this one. The timeline goes on over sequences.
    ///
    /// - Returns: the end of the audio fed so far; nil when there was none.
    /// - Throws: an error of the sequence, `unexpectedAudioFormat`, or (policy `reject`) `audioDisordered`, after which
    ///   the session goes on and can be finished; or the error that ended the session.
    @discardableResult
    public func analyzeSequence<S: AsyncSequence & Sendable>(
        _ inputs: S
    ) async throws(StenoError) -> MediaTime? where S.Element == AnalyzerInput {
        let number = try startFeeding(inputs)
        await waitUntil { $0.finishReason != nil || $0.sequence != number || !$0.isSequenceRunning }
        if let error = finishReason?.error { throw error }
        if sequence == number, let error = inputError {
            inputError = nil
            throw error
        }
        return hasInput ? fedThrough : nil
    }

    /// Feeds a sequence by itself and returns at once. An error of the sequence is thrown by the finish that follows,
    /// and by the results after the last of them.
    public func start<S: AsyncSequence & Sendable>(
        inputSequence: S
    ) async throws(StenoError) where S.Element == AnalyzerInput {
        _ = try startFeeding(inputSequence)
    }

    private func startFeeding<S: AsyncSequence & Sendable>(
        _ inputs: S
    ) throws(StenoError) -> Int where S.Element == AnalyzerInput {
        try checkOpen()
        feeder?.cancel()
        sequence += 1
        isSequenceRunning = true
        inputError = nil
        let number = sequence
        resumeWaiters()
        // The task holds the analyzer only while it hands a buffer over, so that an abandoned analyzer goes away.
        feeder = Task(executorPreference: feederExecutor) { [weak self] in
            do {
                for try await input in inputs {
                    guard let self, try await self.take(input, of: number) else { return }
                }
                await self?.endInput(of: number, nil)
            } catch {
                let failure =
                    error as? StenoError ?? StenoError(.inputFailed, "the input failed: \(error)", underlying: error)
                await self?.endInput(of: number, failure)
            }
        }
        return number
    }

    /// Feeds one buffer; false when the sequence was replaced or the session ended.
    private func take(_ input: AnalyzerInput, of number: Int) async throws(StenoError) -> Bool {
        // A sequence that was replaced in the middle of a buffer hands that buffer over first.
        await waitForPush()
        guard sequence == number, finishReason == nil else { return false }
        isPushing = true
        defer {
            isPushing = false
            lastInputInstant = .now
            // All others would be woken for each buffer.
            if pushWaiterCount > 0 { resumeWaiters() }
        }
        try await open(input.bufferFormat)
        let placement = try timeline.place(
            at: input.bufferStartTime, frameCount: input.buffer.frameCount, policy: options.overlapPolicy)
        if let event = placement.event { note(event) }
        hasInput = true
        guard placement.skippedFrames < input.buffer.frameCount else { return true }
        let runners = runners
        for index in runners.indices {
            do {
                try await runners[index].push(input.buffer, from: placement.skippedFrames, start: placement.start)
            } catch {
                try failed(runners[index].module, error)
            }
        }
        return sequence == number && finishReason == nil
    }

    /// Returns between buffers, when each of them is with all modules or with none.
    private func waitForPush() async {
        pushWaiterCount += 1
        defer { pushWaiterCount -= 1 }
        await waitUntil { !$0.isPushing || $0.finishReason != nil }
    }

    private func endInput(of number: Int, _ error: StenoError?) {
        guard sequence == number, finishReason == nil else { return }
        inputError = error
        isSequenceRunning = false
        resumeWaiters()
    }

    // MARK: Results

    /// From the earliest audio whose results are not all final to the end of the audio fed; nil before any input.
    public var volatileRange: MediaTimeRange? {
        guard hasInput else { return nil }
        let start = runners.map(\.finalizedThrough).min() ?? fedThrough
        return MediaTimeRange(start: min(start, fedThrough), end: fedThrough)
    }

    /// The end of the audio that every module's recognizer was given; nil before any input. What lies between it and the
    /// end of the audio fed waits in a queue.
    public var acceptedThrough: MediaTime? {
        hasInput ? runners.map(\.acceptedThrough).min() ?? fedThrough : nil
    }

    private var fedThrough: MediaTime { MediaTime(frames: timeline.end, sampleRate: timeline.sampleRate) }

    /// Makes all results up to `time` final and goes on. When it returns they are published, though perhaps not read.
    ///
    /// - Parameter time: nil, or a time beyond the audio fed so far, means through the last audio fed.
    public func finalize(through time: MediaTime? = nil) async throws(StenoError) {
        await waitForPush()
        try checkOpen()
        guard hasInput else { return }
        let frame = min(time?.frames(at: timeline.sampleRate) ?? timeline.end, timeline.end)
        try await onEach(runners) { runner throws(StenoError) in try await runner.finalize(through: frame) }
    }

    // MARK: Ending

    /// Waits for the current input to end, drains everything, publishes the last results as final, and ends.
    ///
    /// Always returns: without input at once; with an input that neither ends nor delivers, after
    /// ``Options/inputIdleLimit`` and through the last audio fed. Called again, or while another finish is at work, it
    /// waits for the same end.
    ///
    /// - Throws: what ended the session otherwise; or, after everything was drained, the error that ended the input.
    public func finalizeAndFinishThroughEndOfInput() async throws(StenoError) {
        try await finish(waitingForInput: true)
    }

    /// Takes no more input, makes the results of all audio fed so far final, and ends.
    public func finalizeAndFinish() async throws(StenoError) {
        try await finish(waitingForInput: false)
    }

    private func finish(waitingForInput: Bool) async throws(StenoError) {
        if isFinishing || finishReason != nil {
            await waitUntil { $0.finishReason != nil }
        } else {
            isFinishing = true
            if waitingForInput { await waitForEndOfInput() }
            sequence += 1
            feeder?.cancel()
            await waitForPush()
            if finishReason == nil {
                try await onEach(runners + leaving) { runner throws(StenoError) in try await runner.finish() }
                end(inputError.map(FinishReason.failed) ?? .finished)
            }
        }
        if let error = finishReason?.error { throw error }
    }

    private func waitForEndOfInput() async {
        guard isSequenceRunning else { return }
        lastInputInstant = .now
        let watchdog = Task { [weak self, limit = options.inputIdleLimit] in
            while !Task.isCancelled, let idle = await self?.inputIdleTime {
                if idle >= limit { return await self?.abandonInput() ?? () }
                try? await Task.sleep(for: limit - idle)
            }
        }
        await waitUntil { $0.finishReason != nil || !$0.isSequenceRunning }
        watchdog.cancel()
    }

    private var inputIdleTime: Duration { .now - lastInputInstant }

    private func abandonInput() {
        isSequenceRunning = false
        resumeWaiters()
    }

    /// Drops audio before `time` that waits to be analyzed, to catch up; what was dropped is an event.
    public func cancelAnalysis(before time: MediaTime) {
        guard finishReason == nil, hasInput else { return }
        for runner in runners {
            guard let dropped = runner.discard(before: time.frames(at: timeline.sampleRate)) else { continue }
            note(
                TimelineEvent(
                    .dropped,
                    range: MediaTimeRange(
                        start: MediaTime(frames: dropped.lowerBound, sampleRate: timeline.sampleRate),
                        end: MediaTime(frames: dropped.upperBound, sampleRate: timeline.sampleRate))))
        }
    }

    /// Drops everything and ends. Waiting calls and the result sequences throw `cancelled`; a decode that is running
    /// stops by itself soon after (law A9).
    public func cancelAndFinishNow() { end(.cancelled) }

    /// Ends the session with `error`, unless it has ended; returns the error that it ended with.
    @discardableResult
    private func fail(_ error: StenoError) -> StenoError {
        end(.failed(error))
        return finishReason?.error ?? error
    }

    /// Goes on without a module that failed, where the policy is that and a module is left; else ends the session.
    private func failed(_ module: any SpeechModule, _ error: StenoError) throws(StenoError) {
        guard options.moduleFailurePolicy == .dropModule, finishReason == nil else { throw fail(error) }
        // Whoever waits for the module and its own thread tell of the same failure.
        guard !moduleFailures.contains(where: { $0.module === module }) else { return }
        moduleFailures.append(ModuleFailure(module: module, error: error))
        module.endResults(.failed(error))
        let isOfUse = runners.contains { $0.module === module }
        runners.removeAll { $0.module === module }
        leaving.removeAll { $0.module === module }
        modules.removeAll { $0 === module }
        if isOfUse && runners.isEmpty { throw fail(error) }
    }

    private func end(_ reason: FinishReason) {
        guard finishReason == nil else { return }
        finishReason = reason
        sequence += 1
        feeder?.cancel()
        for runner in runners + leaving { runner.end(reason) }
        for module in modules { module.endUnused(reason) }
        resumeWaiters()
    }

    private func checkOpen() throws(StenoError) {
        if let error = finishReason?.error { throw error }
        if finishReason != nil || isFinishing {
            throw StenoError(.sessionFinished, "the session has finished; make a new analyzer")
        }
    }

    private func onEach(
        _ runners: [any ModuleRunning],
        _ body: @escaping @Sendable (any ModuleRunning) async throws(StenoError) -> Void
    ) async throws(StenoError) {
        let failures = await withTaskGroup(of: ModuleFailure?.self) { group in
            for runner in runners {
                group.addTask {
                    do throws(StenoError) { try await body(runner) } catch {
                        return ModuleFailure(module: runner.module, error: error)
                    }
                    return nil
                }
            }
            return await group.reduce(into: [ModuleFailure]()) { if let failure = $1 { $0.append(failure) } }
        }
        for failure in failures { try failed(failure.module, failure.error) }
    }

    private nonisolated func note(_ event: TimelineEvent) {
        noted.withLock { $0.note(event) }
        observer?.noted(event)
    }

    // MARK: Waiting

    private func waitUntil(_ condition: (isolated SpeechAnalyzer) -> Bool) async {
        while !condition(self) {
            await withCheckedContinuation { continuation in
                // Others may have had their turn on the actor since the look above.
                if condition(self) { continuation.resume() } else { waiters.append(continuation) }
            }
        }
    }

    private func resumeWaiters() {
        guard !waiters.isEmpty else { return }
        let waiting = waiters
        waiters.removeAll()
        for waiter in waiting { waiter.resume() }
    }
}

/// Who wants to know at once what a module does. Called on any thread, and must not block.
package protocol AnalysisObserver: AnyObject, Sendable {
    func noted(_ event: TimelineEvent)
    /// The module is being given the audio up to here.
    func accepted(through time: MediaTime)
}

extension StenoError.Code {
    /// A module does not take audio in this format; the message names both.
    public static let unexpectedAudioFormat = StenoError.Code(rawValue: "analyzer.unexpectedAudioFormat")
    /// The modules have no format in common.
    public static let incompatibleAudioFormats = StenoError.Code(rawValue: "analyzer.incompatibleAudioFormats")
    /// Audio overlaps or precedes earlier audio, and the policy is to reject it.
    public static let audioDisordered = StenoError.Code(rawValue: "analyzer.audioDisordered")
    /// A module instance was given to a second session.
    public static let moduleInUse = StenoError.Code(rawValue: "analyzer.moduleInUse")
    /// A module failed with an error that is not a ``StenoError``; see `underlying`.
    public static let moduleFailed = StenoError.Code(rawValue: "analyzer.moduleFailed")
    /// The input sequence failed; see `underlying`.
    public static let inputFailed = StenoError.Code(rawValue: "analyzer.inputFailed")
    /// The session had ended before the call.
    public static let sessionFinished = StenoError.Code(rawValue: "analyzer.sessionFinished")
}
