import StenoAnalysis
import StenoAudio
import StenoTranscript
import Testing

@Suite struct PhraseTests {
    func segment(_ start: Double, _ end: Double, _ text: String, source: String? = nil) -> TranscriptSegment {
        let range = MediaTimeRange(
            start: MediaTime(value: Int64(start * 1000), timescale: 1000),
            end: MediaTime(value: Int64(end * 1000), timescale: 1000))
        return TranscriptSegment(
            range: range, text: text, words: [TranscribedWord(text, range: range)], source: source)
    }

    func phrases(_ segments: [TranscriptSegment]) -> [String] { Transcript(segments: segments).phrases.map(\.text) }

    @Test func wordsBecomePhrases() {
        let said = [segment(0, 1, "so"), segment(1, 2, "my fellow"), segment(2, 3, "Americans."), segment(3, 4, "ask")]
        let phrases = Transcript(segments: said).phrases
        #expect(phrases.map(\.text) == ["so my fellow Americans.", "ask"])
        #expect(phrases[0].range == MediaTimeRange(start: said[0].range.start, end: said[2].range.end))
        #expect(phrases.flatMap(\.words) == said.flatMap(\.words))
    }

    @Test func aPhraseEndsAtAPauseAndBeforeItIsTooLong() {
        #expect(phrases([segment(0, 1, "a"), segment(1.9, 2, "b"), segment(3, 4, "c")]) == ["a b", "c"])
        #expect(phrases([segment(0, 5, "a"), segment(5, 8, "b")]) == ["a", "b"])
        let long = String(repeating: "x", count: 41)
        #expect(phrases([segment(0, 1, long), segment(1, 2, long), segment(2, 3, "y")]) == ["\(long) \(long)", "y"])
        #expect(phrases([segment(0, 1, "a", source: "1"), segment(1, 2, "b", source: "2")]) == ["a", "b"])
        #expect(phrases([]) == [])
    }

    @Test func whatIsOpenCanBeShown() {
        var joiner = PhraseJoiner()
        #expect(joiner.append(segment(0, 1, "a")).isEmpty)
        #expect(joiner.open?.text == "a")
        #expect(joiner.append(segment(9, 10, "Well.")).map(\.text) == ["a", "Well."])
        #expect(joiner.open == nil && joiner.finish() == nil)
    }
}
