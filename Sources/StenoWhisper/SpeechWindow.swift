/// Audio that waits to be decoded, packed without the pauses that were left out, and where it came from.
///
/// One mapping for segments and words alike (case 005).
struct SpeechWindow {
    private(set) var samples: [Float] = []
    /// Stretches without a hole: where each begins in `samples`, and at which frame of the session.
    private var pieces: [(index: Int, frame: Int64)] = []

    var count: Int { samples.count }

    /// The frame of the session behind the last sample; nil where there is none.
    var end: Int64? { pieces.last.map { $0.frame + Int64(samples.count - $0.index) } }

    mutating func append(_ new: ArraySlice<Float>, at frame: Int64) {
        if new.isEmpty { return }
        if end != frame {
            pieces.append((samples.count, frame))
        }
        samples += new
    }

    /// Removes the first samples, and makes a window of them.
    mutating func takeFirst(_ count: Int) -> SpeechWindow {
        var first = self
        first.samples.removeLast(samples.count - count)
        first.pieces.removeAll { $0.index >= count }
        removeFirst(count)
        return first
    }

    mutating func removeFirst(_ count: Int) {
        samples.removeFirst(count)
        let gone = pieces.prefix { $0.index < count }.last
        pieces.removeAll { $0.index < count }
        for index in pieces.indices { pieces[index].index -= count }
        if let gone, pieces.first?.index != 0, !samples.isEmpty {
            pieces.insert((0, gone.frame + Int64(count - gone.index)), at: 0)
        }
    }

    /// The frames of the session under a range of `samples` that is not empty. Over a hole, it includes the hole.
    func sessionFrames(_ range: Range<Int>) -> Range<Int64> {
        let (first, last) = (piece(at: range.lowerBound), piece(at: range.upperBound - 1))
        let start = pieces[first].frame + Int64(range.lowerBound - pieces[first].index)
        return start..<pieces[last].frame + Int64(range.upperBound - pieces[last].index)
    }

    /// The stretch without a hole in which most of `range` lies, which is not empty.
    func mainPiece(of range: Range<Int>) -> Range<Int> {
        let stretches = (piece(at: range.lowerBound)...piece(at: range.upperBound - 1)).map {
            pieces[$0].index..<($0 + 1 < pieces.count ? pieces[$0 + 1].index : samples.count)
        }
        return stretches.max { $0.clamped(to: range).count < $1.clamped(to: range).count } ?? range
    }

    private func piece(at index: Int) -> Int { (pieces.lastIndex { $0.index <= index }) ?? 0 }
}
