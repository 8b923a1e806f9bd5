import StenoAnalysis
import StenoAudio
import StenoTranscript
import Testing

@Suite struct CueTests {
    private func cues(_ segment: TranscriptSegment, _ options: CueOptions = CueOptions()) -> [Cue] {
        Transcript(segments: [segment]).cues(options: options)
    }

    @Test("Case 007: a cue has the times of its own words")
    func timesOfWords() {
        let words = (0..<9).map {
            TranscribedWord("word\($0)", range: range(3000 + Int64($0) * 1000, 3400 + Int64($0) * 1000))
        }
        let text = words.map(\.text).joined(separator: " ")
        let cues = cues(
            segment(0, 12_000, text, words: words), CueOptions(charactersPerLine: 17, linesPerCue: 1))
        #expect(cues.map(\.range) == [range(3000, 5400), range(6000, 8400), range(9000, 11_400)])
        #expect(cues.map(\.text) == ["word0 word1 word2", "word3 word4 word5", "word6 word7 word8"])
    }

    @Test("Case 087: three lines share 0.3 s, and nothing at all shares milliseconds")
    func sharedTime() {
        let options = CueOptions(charactersPerLine: 3, linesPerCue: 1)
        #expect(
            cues(segment(1000, 1300, "abc def ghi"), options).map(\.range)
                == [range(1000, 1100), range(1100, 1200), range(1200, 1300)])
        var maker = CueMaker(options: options)
        let first = maker.cues(for: segment(1000, 1000, "abc def ghi"))
        let second = maker.cues(for: segment(1000, 2000, "jkl"))
        #expect(
            (first + second).map(\.range) == [
                range(1000, 1001), range(1001, 1002), range(1002, 1003), range(1003, 2000),
            ])
    }

    @Test func textWithoutWordsSharesTheTimeByLength() {
        let cues = cues(segment(0, 4000, "long-- x"), CueOptions(charactersPerLine: 6, linesPerCue: 1))
        #expect(cues.map(\.range) == [range(0, 3429), range(3429, 4000)])
    }

    @Test func linesAndCuesKeepTheirLimits() {
        let text =
            "And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country."
        let cues = cues(segment(0, 6000, text))
        #expect(
            cues.map(\.lines) == [
                ["And so my fellow Americans, ask not what", "your country can do for you, ask what you"],
                ["can do for your country."],
            ])
    }

    @Test func aCueEndsBeforeItGetsTooLong() {
        let words = [
            TranscribedWord("one", range: range(0, 3000)), TranscribedWord("two", range: range(3000, 7000)),
            TranscribedWord("three", range: range(7000, 7500)), TranscribedWord("forever", range: range(7500, 20_000)),
        ]
        let cues = cues(segment(0, 20_000, "one two three forever", words: words))
        #expect(cues.map(\.text) == ["one two", "three", "forever"])
    }

    @Test func wordsWithoutSpacesBetweenThemKeepTheirTimes() {
        let words = ["日本", "語の", "字幕"].enumerated().map {
            TranscribedWord($1, range: range(Int64($0) * 1000, Int64($0) * 1000 + 900))
        }
        let options = CueOptions(charactersPerLine: 4, linesPerCue: 1)
        let cues = cues(segment(0, 3000, "日本語の字幕", words: words), options)
        #expect(cues.map(\.text) == ["日本語の", "字幕"])
        #expect(cues.map(\.range) == [range(0, 1900), range(2000, 2900)])
    }

    @Test func textWithoutSpacesIsCutBetweenCharacters() {
        let options = CueOptions(charactersPerLine: 2, linesPerCue: 2)
        let cues = cues(segment(0, 5000, "👩‍👩‍👧‍👦🇩🇪e\u{301}日本"), options)
        #expect(cues.map(\.lines) == [["👩‍👩‍👧‍👦🇩🇪", "e\u{301}日"], ["本"]])
        #expect(cues.map(\.range) == [range(0, 4000), range(4000, 5000)])
    }

    @Test func theTextWinsOverWordsThatDoNotSpellIt() {
        let words = [TranscribedWord("other", range: range(500, 900))]
        #expect(cues(segment(0, 1000, "the text", words: words)).map(\.text) == ["the text"])
    }

    @Test func noLimitIsTooSmall() {
        let options = CueOptions(charactersPerLine: 0, linesPerCue: -1, maximumDuration: .zero)
        #expect(cues(segment(0, 1000, "ab c"), options).map(\.text) == ["a", "b", "c"])
    }

    @Test func aCueHasText() {
        #expect(Cue(range: range(0, 1), lines: ["", " \u{A0}", "\u{0}\u{FEFF}"]) == nil)
        #expect(Cue(range: range(0, 1), lines: [" a \r\n b\u{2028}", "", "c\u{A0}d"])?.lines == ["a b", "c\u{A0}d"])
    }
}
