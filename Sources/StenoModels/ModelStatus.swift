/// How far an installation is.
public struct ModelProgress: Sendable, Hashable {
    public enum Phase: String, Sendable, Comparable {
        /// Another process installs the same model.
        case waiting
        case downloading
        case verifying
        case unpacking

        public static func < (a: Phase, b: Phase) -> Bool { a.order < b.order }

        private var order: Int {
            switch self {
            case .waiting: 0
            case .downloading: 1
            case .verifying: 2
            case .unpacking: 3
            }
        }
    }

    public var phase: Phase
    /// Bytes that are there, what an earlier attempt left included. Never less than before.
    public var received: Int64
    /// Bytes in all; nil where nobody knows.
    public var total: Int64?
    /// Over the last seconds; nil at first.
    public var bytesPerSecond: Double?

    public init(phase: Phase, received: Int64, total: Int64? = nil, bytesPerSecond: Double? = nil) {
        self.phase = phase
        self.received = received
        self.total = total
        self.bytesPerSecond = bytesPerSecond
    }

    /// The time that is left at this rate.
    public var remaining: Duration? {
        guard let total, let bytesPerSecond, bytesPerSecond > 0 else { return nil }
        return .seconds(Double(max(0, total - received)) / bytesPerSecond)
    }

    /// 0 to 1.
    public var fraction: Double? {
        total.map { $0 > 0 ? min(1, Double(received) / Double($0)) : 0 }
    }
}

/// What a store knows of a model, and one sentence that says why.
public struct ModelStatus: Sendable, Hashable {
    public enum State: String, Sendable {
        /// It cannot be had.
        case unsupported
        /// It can be installed.
        case supported
        case downloading
        case installed
    }

    public var state: State
    public var reason: String
    /// While ``State/downloading``.
    public var progress: ModelProgress?
}

/// Turns counts of bytes into what is told of them: never going back, not too often, with a rate.
struct ProgressMeter {
    private var last: ModelProgress?
    private var told: ContinuousClock.Instant?
    private var samples: [(time: ContinuousClock.Instant, received: Int64)] = []

    /// What is to be told; nil when it is too early.
    mutating func update(
        _ phase: ModelProgress.Phase, received: Int64, total: Int64?, now: ContinuousClock.Instant = .now
    ) -> ModelProgress? {
        let isNew = last?.phase != phase || received == total
        if !isNew, let told, now - told < .milliseconds(100) { return nil }
        // A download that began anew counts up from nothing; its rate does, what is told does not.
        if let earlier = samples.last, earlier.received > received { samples.removeAll() }
        if phase == .downloading { samples.append((now, received)) }
        while samples.count > 2, now - samples[1].time > .seconds(5) { samples.removeFirst() }
        var rate: Double?
        if let first = samples.first, now - first.time > .milliseconds(200) {
            rate = Double(received - first.received) / ((now - first.time) / .seconds(1))
        }
        let progress = ModelProgress(
            phase: max(phase, last?.phase ?? phase), received: max(received, last?.received ?? 0),
            total: total ?? last?.total,
            bytesPerSecond: phase == .downloading ? rate : nil)
        guard progress != last else { return nil }
        (last, told) = (progress, now)
        return progress
    }
}
