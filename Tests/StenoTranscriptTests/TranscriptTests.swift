import StenoAnalysis
import StenoAudio
import StenoTranscript
import Testing

private func result(_ start: Int64, _ end: Int64, _ text: String, isFinal: Bool = false) -> TranscriptionResult {
    TranscriptionResult(range: range(start, end), text: text, language: "en", isFinal: isFinal)
}

@Suite struct TranscriptTests {
    @Test("Case 075: growing hypotheses leave one text for each range")
    func growingHypotheses() {
        var transcript = Transcript()
        for (end, text) in [(500, "and"), (900, "and so"), (1500, "and so my")] as [(Int64, String)] {
            transcript.apply(result(0, end, text))
            #expect(transcript.volatile.map(\.text) == [text])
        }
        transcript.apply(result(0, 1000, "And so", isFinal: true))
        #expect(transcript.volatile.isEmpty)
        transcript.apply(result(1000, 1500, "my"))
        transcript.apply(result(1000, 1600, "my fellow.", isFinal: true))
        #expect(transcript.text == "And so my fellow.")
        #expect(transcript.volatile.isEmpty)
        #expect(transcript.language == "en")
        #expect(transcript.duration == ms(1600))
    }

    @Test func volatileResultsStayInOrderAndApart() {
        var transcript = Transcript()
        transcript.apply(result(2000, 3000, "c"))
        transcript.apply(result(0, 1000, "a"))
        transcript.apply(result(1000, 2000, "b"))
        #expect(transcript.volatile.map(\.text) == ["a", "b", "c"])
        transcript.apply(result(500, 1500, "ab"))
        #expect(transcript.volatile.map(\.text) == ["ab", "c"])
    }

    @Test func anEmptyResultTakesBackVolatileTextOnly() {
        var transcript = Transcript()
        transcript.apply(result(0, 1000, "said", isFinal: true))
        transcript.apply(result(1000, 2000, "maybe"))
        transcript.apply(.revocation(of: range(1000, 2000)))
        #expect(transcript.volatile.isEmpty)
        transcript.apply(result(1000, 2000, "maybe"))
        transcript.apply(result(0, 2000, "", isFinal: true))
        #expect(transcript.volatile.isEmpty)
        #expect(transcript.text == "said")
        #expect(transcript.segments.count == 1)
        #expect(transcript.duration == ms(2000))
    }

    @Test func anEmptyRangeIsRevokedToo() {
        var transcript = Transcript()
        transcript.apply(result(1000, 1000, "oh"))
        transcript.apply(.revocation(of: range(1000, 1000)))
        #expect(transcript.volatile.isEmpty)
    }

    @Test func aVolatileResultThatComesLateIsIgnored() {
        var transcript = Transcript()
        transcript.apply(result(0, 1000, "final", isFinal: true))
        transcript.apply(result(200, 900, "late"))
        #expect(transcript.volatile.isEmpty)
    }

    @Test func finalsKeepTheOrderOfTime() {
        var transcript = Transcript()
        for start in [0, 3000, 1000, 2000] as [Int64] {
            transcript.apply(result(start, start + 500, "\(start)", isFinal: true))
        }
        #expect(transcript.text == "0 1000 2000 3000")
        #expect(Transcript(segments: transcript.segments.reversed()).segments == transcript.segments)
    }

    /// Case 107. Were a result to cost as much as the transcript is long, this would take hours.
    @Test(.timeLimit(.minutes(1))) func aDayCostsNoMoreForEachResultThanAMinute() {
        var transcript = Transcript()
        for second in 0..<86_400 as Range<Int64> {
            let start = second * 1000
            transcript.apply(result(start, start + 500, "word"))
            transcript.apply(result(start, start + 1000, "word word", isFinal: true))
        }
        #expect(transcript.segments.count == 86_400)
        #expect(transcript.volatile.isEmpty)
    }
}
