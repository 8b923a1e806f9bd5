import Synchronization

/// Live capture from any ``CaptureStream``: thread, ring, counters, clock, reconnection and the sequence of events.
///
/// ```swift
/// let source = CaptureSource { () throws(StenoError) in try ALSACaptureStream(device: "default") }
/// let format = try await source.start()
/// for try await event in source.events { … }
/// ```
///
/// The capture thread writes into a ring that holds several seconds, and waits for nobody. A consumer that is slower
/// loses audio only when the ring is full, and then finds a gap of kind `overrun` at the right place. Releasing the
/// source stops it.
public final class CaptureSource: Sendable {
    public struct Configuration: Sendable {
        /// How much the ring holds while the consumer is busy; at least 2 s (law K1).
        public var ringDuration: Duration = .seconds(4)
        /// How a lost device or server is got back; nil ends the capture with the error.
        public var reconnection: Reconnection? = Reconnection()
        /// How long a device may take to open.
        public var openTimeout: Duration = .seconds(10)
        /// How long a device that should deliver may deliver nothing; and, with at least 1 s, how long a read may block.
        public var stallTimeout: Duration = .seconds(3)
        /// After how long of nothing but digital zeros a notice comes.
        public var silenceNotice: Duration = .seconds(10)
        /// False makes the source wait for its consumer instead of dropping frames. Only for a source that can wait,
        /// such as a file; never for a device.
        public var dropsWhenFull = true
        /// The clock of the timeline; another one serves tests.
        public var now: @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }

        public init() {}
    }

    /// Waits before each try to reopen, doubling from the first to the longest; without an end.
    public struct Reconnection: Sendable {
        public var firstDelay: Duration = .milliseconds(50)
        public var longestDelay: Duration = .seconds(2)
        public init() {}
    }

    let core: CaptureCore

    /// - Parameter open: Opens the device. Called on the capture thread, again at each reconnection; it may block.
    public init(
        configuration: Configuration = Configuration(),
        open: @escaping @Sendable () throws(StenoError) -> any CaptureStream
    ) {
        core = CaptureCore(configuration: configuration, open: open)
    }

    deinit { core.stop() }

    /// Opens the device and starts. Returns the format that was granted.
    ///
    /// Works once; a source that has stopped does not start again.
    ///
    /// - Throws: ``StenoError`` with a code of the back end (see Documentation/Capture.md), `capture.timeout`, `cancelled`
    ///   when the task was cancelled or the source stopped meanwhile, `invalidArgument` when it was started before.
    public func start() async throws(StenoError) -> AudioFormat {
        try await core.start()
    }

    /// Ends the capture; what was captured stays in ``events``. From any thread, any number of times.
    ///
    /// Blocks until the device is closed, as a rule below 0.1 s and never 1 s: a device that hangs is left behind.
    public func stop() { core.stop() }

    /// What was captured, for one reader. Ends after ``stop()`` or the source's end, when all is read; throws
    /// ``StenoError`` when the capture failed. A cancelled reader gets `cancelled`; another one can go on.
    ///
    /// A buffer that the reader has let go is filled again; one that it keeps costs an allocation. Suspending the reader's
    /// task allocates in the runtime; where that matters, use ``nextEvent()``.
    public var events: Events { Events(source: self) }

    /// The next event, for a reader on a thread of its own that may block; the same reader as that of ``events``.
    ///
    /// Blocks until there is one; a cancelled task gets `cancelled` within 0.1 s. In the steady state nothing allocates as
    /// long as the reader keeps fewer than 8 buffers.
    public func nextEvent() throws(StenoError) -> CaptureEvent? { try core.nextBlocking() }

    public struct Events: AsyncSequence, Sendable {
        public typealias Element = CaptureEvent
        public typealias Failure = StenoError
        let source: CaptureSource

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source: source) }

        public struct AsyncIterator: AsyncIteratorProtocol {
            let source: CaptureSource

            public mutating func next() async throws(StenoError) -> CaptureEvent? {
                try await source.core.next(isolation: #isolation)
            }

            public mutating func next(
                isolation: isolated (any Actor)?
            ) async throws(StenoError) -> CaptureEvent? {
                try await source.core.next(isolation: isolation)
            }
        }
    }

    /// Readable at any time from any thread, without a lock.
    public var statistics: CaptureStatistics { core.gauges.read().statistics }

    /// Nil until the first frames came. Readable at any time from any thread, without a lock.
    public var timing: CaptureTiming? {
        let values = core.gauges.read()
        return values.zero.map { zero in
            CaptureTiming(
                zero: core.origin + .nanoseconds(zero), elapsed: .nanoseconds(values.arrival - zero),
                position: values.position)
        }
    }

    /// The level of each channel, up to 64. Readable at any time from any thread, without a lock.
    public var levels: [ChannelLevel] { core.meter.levels }
}
