public import StenoAudio

extension [TranscribedWord] {
    /// The same words, each with a time inside `bounds` and in order: starts never decrease, and no word ends after the
    /// next one starts.
    ///
    /// A known time is cut to what is left of `bounds` after the word before. A word without a time, or with one that
    /// lies wholly outside or runs backwards, gets its share of the space between its neighbours (or the edge) and is
    /// marked ``TranscribedWord/isTimeEstimated``. Texts and confidences stay. Doing it twice changes nothing.
    public func withTimesFilled(in bounds: MediaTimeRange) -> [TranscribedWord] {
        var words = self
        var earliest = bounds.start
        for index in words.indices {
            guard let range = words[index].range else { continue }
            if range.end < earliest || range.start > bounds.end {
                words[index].range = nil
            } else {
                let inside = range.clamped(to: MediaTimeRange(start: earliest, end: bounds.end))
                words[index].range = inside
                earliest = inside.start
            }
        }
        var latest = bounds.end
        for index in words.indices.reversed() {
            guard let range = words[index].range else { continue }
            words[index].range = MediaTimeRange(start: range.start, end: Swift.min(range.end, latest))
            latest = range.start
        }
        words.fillUnknown(in: bounds)
        return words
    }

    private mutating func fillUnknown(in bounds: MediaTimeRange) {
        var known = bounds.start
        var index = startIndex
        while index < endIndex {
            if let range = self[index].range {
                known = range.end
                index += 1
                continue
            }
            let run = index..<(self[index...].firstIndex { $0.range != nil } ?? endIndex)
            let next = run.upperBound < endIndex ? self[run.upperBound].range : nil
            let space = MediaTimeRange(start: known, end: next?.start ?? bounds.end)
            for (word, part) in zip(run, space.divided(by: self[run].map(\.text.count))) {
                self[word].range = part
                self[word].isTimeEstimated = true
            }
            index = run.upperBound
        }
    }
}

extension MediaTimeRange {
    /// The range cut into adjoining parts in proportion to `weights`; a weight below 1 counts as 1.
    ///
    /// Inner cuts lie on multiples of 100 ns, so that a transcript's JSON holds them exactly.
    package func divided(by weights: [Int]) -> [MediaTimeRange] {
        let timescale: Int32 = 10_000_000
        let first = start.converted(to: timescale).value
        let length = Int128(end.converted(to: timescale).value) - Int128(first)
        let total = weights.reduce(0) { $0 + Int128(max($1, 1)) }
        var (sum, parts, cut): (Int128, [MediaTimeRange], MediaTime) = (0, [], start)
        for (index, weight) in weights.enumerated() {
            sum += Int128(max(weight, 1))
            let offset = divide(length * sum, by: total, rounding: .toNearestOrAwayFromZero)
            let next = MediaTime(value: Int64(Int128(first) + offset), timescale: timescale)
            let partEnd = index == weights.count - 1 ? end : min(max(next, start), end)
            parts.append(MediaTimeRange(start: cut, end: partEnd))
            cut = partEnd
        }
        return parts
    }
}

extension TranscriptionResult {
    /// The result within `bounds`, its words within it and in order. Of a result wholly outside the text is kept, at
    /// the nearer edge.
    public func clamped(to bounds: MediaTimeRange) -> TranscriptionResult {
        var result = self
        result.range = range.clamped(to: bounds)
        result.words = words.withTimesFilled(in: result.range)
        return result
    }
}
