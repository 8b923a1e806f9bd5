/// The capture thread's side (law K1): reads the device, writes ring, marks and gauges.
///
/// In the steady state nothing here allocates, takes a lock or waits for anything but the device. Opening a device,
/// losing it and a change of format are no steady state.
struct CaptureReader: ~Copyable {
    private let core: CaptureCore
    private let signals: CaptureCore.Signals
    private var stream: any CaptureStream
    private var scratch: AudioBuffer
    private var ring: AudioRing
    /// Marks that wait for room in the queue. No frame goes into the ring before them.
    private var pending: [CaptureCore.Mark.Content] = []
    private var clock: ArrivalClock
    private var levels = LevelAccumulator()
    private var gauges = CaptureGauges.Values()
    /// Where the current format began on the timeline, and the frames since, offered or missing.
    private var base = MediaTime.zero
    private var count: Int64 = 0
    private var hasReceived = false
    /// Since when nothing has come although it should.
    private var quietSince: Int64
    private var zeroCount: Int64 = 0
    private var reconnectionDelay: Duration

    /// The whole life of the capture thread.
    static func run(_ core: CaptureCore, _ signals: CaptureCore.Signals) {
        do throws(StenoError) {
            // No variable of its own for the stream: it would keep a lost device open while that is opened again.
            var reader = CaptureReader(core, stream: try core.open(), signals)
            if core.isStopping { return reader.end(nil) }
            core.opened(reader.stream.format)
            reader.run()
        } catch {
            core.conclude(error)
        }
    }

    private init(_ core: CaptureCore, stream: any CaptureStream, _ signals: CaptureCore.Signals) {
        self.core = core
        self.stream = stream
        self.signals = signals
        scratch = Self.makeScratch(stream.format)
        ring = Self.makeRing(stream.format, core.configuration)
        pending.reserveCapacity(Self.pendingLimit)
        reconnectionDelay = core.configuration.reconnection?.firstDelay ?? .zero
        quietSince = core.now
        clock = ArrivalClock(openedAt: quietSince)
        mark(.ring(ring))
    }

    /// One read brings at most 20 ms, so that a wait for a full buffer cannot add more.
    private static func makeScratch(_ format: AudioFormat) -> AudioBuffer {
        AudioBuffer(format: format, frameCapacity: max(1, format.sampleRate / 50))
    }

    private static func makeRing(_ format: AudioFormat, _ configuration: CaptureSource.Configuration) -> AudioRing {
        let seconds = max(configuration.ringDuration, .seconds(2)) / .seconds(1)
        return AudioRing(format: format, capacity: Int(seconds * Double(format.sampleRate)))
    }

    private mutating func run() {
        let readLimit = max(core.configuration.stallTimeout, .seconds(1))
        while !core.isStopping {
            core.arm(readLimit)
            do throws(StenoError) {
                let read = try stream.read(into: &scratch)
                if core.isEnded { return }
                guard try handle(read) else { break }
            } catch {
                if core.isEnded { return }
                guard recover(from: error) else { return end(error) }
            }
        }
        end(nil)
    }

    /// Closes the device, then tells: who sees the end may open the device again.
    private mutating func end(_ error: StenoError?) {
        core.arm(core.configuration.openTimeout)
        stream = NoStream(format: stream.format)
        core.conclude(error, leftOver: leftOver())
    }

    /// Returns false at the end of the source.
    private mutating func handle(_ read: CaptureRead) throws(StenoError) -> Bool {
        switch read {
        case .frames:
            if scratch.frameCount > 0 { frames() }
        case .gap(let frameCount, let kind):
            guard frameCount > 0 else { break }
            clock.noteGap(frameCount)
            gap(kind, frameCount)
        case .notice(let kind, let detail):
            mark(.notice(kind, detail, frameCount: 0))
        case .nothing:
            try nothing()
        case .end:
            return false
        }
        core.gauges.publish(gauges)
        return true
    }

    private mutating func frames() {
        let now = core.now
        let frameCount = scratch.frameCount
        if !core.configuration.dropsWhenFull { waitForRoom() }
        let canWrite = scratch.format == ring.format || changeFormat()
        let rate = ring.format.sampleRate
        gap(clock.cause ?? .gap, clock.arrived(frameCount, at: now, sampleRate: rate))
        if gauges.zero == nil { gauges.zero = now - Int64(frameCount) * 1_000_000_000 / Int64(rate) }

        // While the ring is full, the gap grows where it is instead of becoming many.
        let accepted = canWrite && ring.room > 0 && flush() ? ring.write(scratch) : 0
        count += Int64(accepted)
        gauges.statistics.offered += Int64(frameCount)
        gauges.statistics.accepted += Int64(accepted)
        if accepted < frameCount {
            gauges.statistics.dropped += Int64(frameCount - accepted)
            // In a rate that the ring does not have yet, if need be.
            gap(.overrun, Int64((frameCount - accepted) * rate / scratch.format.sampleRate), isDrop: true)
        }
        gauges.arrival = now
        gauges.position = position
        hasReceived = true
        quietSince = now
        if let policy = core.configuration.reconnection { reconnectionDelay = policy.firstDelay }
        noteSilence(levels.add(scratch, to: core.meter))
        core.publish(signals)
    }

    private mutating func waitForRoom() {
        while ring.room < scratch.frameCount || !flush() || !core.marks.hasRoom, !core.isStopping {
            core.arm(core.configuration.openTimeout)
            _ = signals.capture.wait(atMost: .milliseconds(1))
        }
    }

    private mutating func nothing() throws(StenoError) {
        let now = core.now
        let quiet = now - quietSince
        let silence = stream.silence
        let isIdle = silence == .suspended || silence == .idle && quiet > 2_000_000_000
        if clock.cause == nil, isIdle { clock.interrupt(.idle) }
        reportMissing(at: now)
        if !pending.isEmpty, flush() { core.publish(signals) }
        if silence != .fault {
            if clock.cause != nil { quietSince = now }
        } else if quiet > core.configuration.stallTimeout.nanoseconds {
            throw StenoError(
                .deviceTimeout, "The device delivers nothing. Is it in use elsewhere, muted in hardware, or asleep?")
        }
    }

    // MARK: Timeline

    private var position: MediaTime { base + MediaTime(frames: count, sampleRate: ring.format.sampleRate) }

    private mutating func reportMissing(at now: Int64) {
        guard let kind = clock.cause else { return }
        if gauges.zero == nil { gauges.zero = quietSince }
        core.meter.clear()
        let missing = clock.missing(at: now, sampleRate: ring.format.sampleRate)
        guard missing > 0 else { return }
        gap(kind, missing)
        gauges.arrival = now - ArrivalClock.margin
    }

    private mutating func gap(_ kind: TimelineEvent.Kind, _ frameCount: Int64, isDrop: Bool = false) {
        guard frameCount > 0 else { return }
        count += frameCount
        if !isDrop { gauges.statistics.missing += frameCount }
        gauges.position = position
        mark(.gap(kind, frameCount: frameCount), waits: isDrop)
    }

    /// Goes on in a new ring, so that no frame has to be understood in two ways. False when the consumer has fallen
    /// so far behind that there is no room to tell it.
    private mutating func changeFormat() -> Bool {
        guard flush(), core.marks.hasRoom else { return false }
        base = position
        count = 0
        let next = Self.makeRing(scratch.format, core.configuration)
        mark(.ring(next))
        ring = next
        return true
    }

    private mutating func noteSilence(_ isSilent: Bool) {
        let limit = Int64(core.configuration.silenceNotice / .seconds(1) * Double(ring.format.sampleRate))
        let before = zeroCount
        zeroCount = isSilent ? zeroCount + Int64(scratch.frameCount) : 0
        if before < limit, zeroCount >= limit {
            mark(.notice(.digitalSilence, "Nothing but digital zeros: is the microphone muted?", frameCount: zeroCount))
        }
    }

    // MARK: Marks

    private static let pendingLimit = 16

    private mutating func mark(_ content: CaptureCore.Mark.Content, waits: Bool = false) {
        if !merge(content) {
            // Too many: what tells of missing audio stays, what only informs goes.
            if case .notice = content, pending.count >= Self.pendingLimit { return }
            pending.append(content)
        }
        if !waits, flush() { core.publish(signals) }
    }

    /// Adds a gap to the one that waits last: always when they are of one kind, else only when too many wait.
    private mutating func merge(_ content: CaptureCore.Mark.Content) -> Bool {
        let last = pending.count - 1
        guard last >= 0, case .gap(let newKind, let more) = content,
            case .gap(let kind, let count) = pending[last], kind == newKind || pending.count >= Self.pendingLimit
        else { return false }
        pending[last] = .gap(kind, frameCount: count + more)
        return true
    }

    /// Moves pending marks into the queue; false when some are left.
    @discardableResult
    private mutating func flush() -> Bool {
        // By index: `first` and its like are generic, and allocate in a debug build.
        while !pending.isEmpty {
            let content = pending[0]
            guard core.marks.push(CaptureCore.Mark(position: ring.writtenCount, content: content)) else { return false }
            pending.remove(at: 0)
        }
        return true
    }

    private func leftOver() -> [CaptureCore.Mark] {
        pending.map { CaptureCore.Mark(position: ring.writtenCount, content: $0) }
    }

    // MARK: Loss

    /// Opens the source again until it succeeds; false when the error ends the capture.
    private mutating func recover(from error: StenoError) -> Bool {
        guard let policy = core.configuration.reconnection, hasReceived,
            [.deviceLost, .serverLost, .deviceTimeout].contains(error.code)
        else { return false }
        reportMissing(at: core.now)
        if clock.cause != .deviceLost { mark(.interrupted(error)) }
        clock.interrupt(.deviceLost)
        core.arm(core.configuration.openTimeout)
        stream = NoStream(format: stream.format)
        while !core.isStopping {
            let retry = SuspendingClock.now + reconnectionDelay
            reconnectionDelay = min(reconnectionDelay * 2, policy.longestDelay)
            while SuspendingClock.now < retry, !core.isStopping {
                core.arm(core.configuration.openTimeout)
                _ = signals.capture.wait(atMost: min(retry - SuspendingClock.now, .milliseconds(250)))
                reportMissing(at: core.now)
                core.gauges.publish(gauges)
            }
            if core.isStopping { break }
            core.arm(core.configuration.openTimeout)
            if let reopened = try? core.open() {
                stream = reopened
                gauges.statistics.reconnections += 1
                quietSince = core.now
                break
            }
        }
        return true
    }
}

/// Stands where a device was, so that it is closed before the end is told or a new one opens.
private final class NoStream: CaptureStream {
    let format: AudioFormat
    init(format: AudioFormat) { self.format = format }
    func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead { .end }
}
