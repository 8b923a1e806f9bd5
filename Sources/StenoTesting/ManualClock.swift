import Synchronization

/// A clock that stands still until a test moves it.
public final class ManualClock: Sendable {
    private let origin = ContinuousClock.now
    private let nanoseconds = Atomic<Int64>(0)

    public init() {}

    public var now: ContinuousClock.Instant { origin + .nanoseconds(nanoseconds.load(ordering: .acquiring)) }

    public func advance(by duration: Duration) {
        let (seconds, attoseconds) = duration.components
        nanoseconds.add(seconds * 1_000_000_000 + attoseconds / 1_000_000_000, ordering: .acquiringAndReleasing)
    }
}
