import StenoAnalysis
import StenoAudio
import Testing

@Suite struct WordTimesTests {
    private func word(_ text: String, _ start: Int64? = nil, _ end: Int64? = nil) -> TranscribedWord {
        guard let start, let end else { return TranscribedWord(text) }
        return TranscribedWord(text, range: range(start, end), confidence: 0.5)
    }

    private func filled(_ words: [TranscribedWord], _ start: Int64, _ end: Int64) -> [MediaTimeRange?] {
        words.withTimesFilled(in: range(start, end)).map(\.range)
    }

    @Test("Case 091: words without a time lie between their neighbours")
    func betweenNeighbours() {
        let words = [word("It", 1000, 1200), word("cost"), word("$4.5"), word("today", 2000, 2400)]
        let filled = words.withTimesFilled(in: range(0, 3000))
        #expect(filled.map(\.range) == [range(1000, 1200), range(1200, 1600), range(1600, 2000), range(2000, 2400)])
        #expect(filled.map(\.isTimeEstimated) == [false, true, true, false])
        #expect(filled.map(\.text) == words.map(\.text))
        #expect(filled.map(\.confidence) == [0.5, nil, nil, 0.5])
    }

    @Test("Case 091: the first and last words lie between the segment's edges")
    func atTheEdges() {
        #expect(
            filled([word("a"), word("b", 1000, 2000), word("c")], 500, 2600)
                == [range(500, 1000), range(1000, 2000), range(2000, 2600)])
        #expect(filled([word("abc"), word("d")], 0, 4000) == [range(0, 3000), range(3000, 4000)])
    }

    @Test("Case 091: times that run backwards are no times")
    func backwards() {
        let words = [word("a", 0, 1000), word("b", 3000, 3500), word("c", 1000, 2000), word("d", 4000, 5000)]
        #expect(filled(words, 0, 6000) == [range(0, 1000), range(3000, 3500), range(3500, 4000), range(4000, 5000)])
    }

    @Test("Case 009: a word in padding ends with the audio")
    func padding() {
        let words = [word("a", 0, 1500), word("b", 1900, 30_000), word("c", 25_000, 30_000)]
        let result = TranscriptionResult(range: range(0, 30_000), text: "a b c", words: words, isFinal: true)
            .clamped(to: range(0, 2000))
        #expect(result.range == range(0, 2000))
        #expect(result.words.map(\.range) == [range(0, 1500), range(1900, 2000), range(2000, 2000)])
        #expect(result.words.map(\.isTimeEstimated) == [false, false, true])
        let outside = result.clamped(to: range(9000, 9500))
        #expect(outside.range == range(9000, 9000))
        #expect(outside.text == "a b c")
    }

    @Test func overlappingWordsAreCutAtTheNextStart() {
        #expect(filled([word("a", 0, 900), word("b", 500, 700)], 0, 1000) == [range(0, 500), range(500, 700)])
    }

    @Test func anyWordsComeOutInOrderAndTwiceIsOnce() {
        var random = SeededGenerator(state: 91)
        for _ in 0..<2000 {
            let bounds = random.range(from: 20_000)
            let words = (0..<Int.random(in: 0...8, using: &random)).map { _ in
                TranscribedWord(random.text(), range: Bool.random(using: &random) ? random.range(from: 0) : nil)
            }
            let filled = words.withTimesFilled(in: bounds)
            #expect(filled.map(\.text) == words.map(\.text))
            #expect(filled.withTimesFilled(in: bounds) == filled)
            var latest = bounds.start
            for range in filled.map(\.range) {
                guard let range else {
                    Issue.record("a word has no time")
                    break
                }
                #expect(latest <= range.start && range.end <= bounds.end)
                latest = range.end
            }
        }
    }
}
