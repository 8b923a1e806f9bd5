import Synchronization

/// Everything countable of a source, written by the capture thread and read by anyone as one consistent set.
///
/// A sequence lock: the writer never waits; a reader that met a write in progress reads again.
final class CaptureGauges: Sendable {
    struct Values: Sendable {
        var statistics = CaptureStatistics()
        var zero: Int64?
        var arrival: Int64 = 0
        var position = MediaTime.zero
    }

    private let sequence = Atomic<Int>(0)
    private let words = InlineArray<10, Atomic<Int64>> { _ in Atomic(0) }

    /// For the capture thread alone.
    func publish(_ values: Values) {
        let counts = values.statistics
        let next = sequence.load(ordering: .relaxed) + 1
        sequence.store(next, ordering: .relaxed)
        atomicMemoryFence(ordering: .releasing)
        words[0].store(counts.offered, ordering: .relaxed)
        words[1].store(counts.accepted, ordering: .relaxed)
        words[2].store(counts.dropped, ordering: .relaxed)
        words[3].store(counts.missing, ordering: .relaxed)
        words[4].store(counts.reconnections, ordering: .relaxed)
        words[5].store(values.zero == nil ? 0 : 1, ordering: .relaxed)
        words[6].store(values.zero ?? 0, ordering: .relaxed)
        words[7].store(values.arrival, ordering: .relaxed)
        words[8].store(values.position.value, ordering: .relaxed)
        words[9].store(Int64(values.position.timescale), ordering: .relaxed)
        sequence.store(next + 1, ordering: .releasing)
    }

    func read() -> Values {
        while true {
            let before = sequence.load(ordering: .acquiring)
            if before == 0 { return Values() }
            let counts = CaptureStatistics(
                offered: word(0), accepted: word(1), dropped: word(2), missing: word(3), reconnections: word(4))
            let zero = word(5) == 0 ? nil : word(6)
            let (arrival, position, timescale) = (word(7), word(8), word(9))
            atomicMemoryFence(ordering: .acquiring)
            if before.isMultiple(of: 2), sequence.load(ordering: .relaxed) == before {
                return Values(
                    statistics: counts, zero: zero, arrival: arrival,
                    position: MediaTime(value: position, timescale: Int32(timescale)))
            }
        }
    }

    private func word(_ index: Int) -> Int64 { words[index].load(ordering: .relaxed) }
}
