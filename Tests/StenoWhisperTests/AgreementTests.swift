import Testing

@testable import StenoWhisper

/// What is decided about words, without an engine.
@Suite struct AgreementTests {
    /// Words of 1000 frames each, from `start`.
    func words(_ text: String, from start: Int = 0) -> [WindowWord] {
        text.split(separator: " ").enumerated().map { index, word in
            WindowWord(
                text: " \(word)", range: start + index * 1000..<start + (index + 1) * 1000, confidence: 1, tokens: [])
        }
    }

    func said(_ words: [WindowWord]) -> String { words.map(\.key).joined(separator: " ") }

    @Test func twoDecodesCommitWhatBothSay() {
        var agreement = Agreement()
        #expect(agreement.take(words("so my fell"), isTrusted: true).isEmpty)
        #expect(said(agreement.take(words("So, my fellow Amer"), isTrusted: true)) == "so my")
        #expect(said(agreement.pending) == "fellow amer")
        #expect(said(agreement.take(words("So my fellow Americans ask"), isTrusted: true)) == "fellow")
    }

    @Test func whatIsNotTrustedConfirmsNothing() {
        var agreement = Agreement()
        #expect(agreement.take(words("the"), isTrusted: false).isEmpty)
        #expect(agreement.take(words("the block"), isTrusted: true).isEmpty)
        #expect(said(agreement.take(words("the block books"), isTrusted: true)) == "the block")
    }

    /// Case 075: words that were committed are found again whatever the next decode makes of them, and their times.
    @Test(
        arguments: [
            "ask not what your country can do", "ask not what you're country can do",
            "ask now what your country can do",
            "not what your country can do", "and ask not what your country can do",
            "ask not what what your country can do",
        ],
        [0, 300, 6000])
    func committedWordsAreNotSaidAgain(hypothesis: String, shift: Int) {
        var agreement = Agreement()
        _ = agreement.take(words("ask not what your country"), isTrusted: true)
        #expect(agreement.take(words("ask not what your country"), isTrusted: true).count == 5)
        _ = agreement.take(words(hypothesis, from: shift), isTrusted: true)
        #expect(said(agreement.take(words(hypothesis, from: shift), isTrusted: true)) == "can do")
    }

    /// Cases 077 and 079: what was heard does not vanish when the last decode says nothing.
    @Test func theEndSaysWhatWasHeard() {
        var agreement = Agreement()
        _ = agreement.take(words("ask not"), isTrusted: true)
        _ = agreement.take(words("ask not what your"), isTrusted: true)
        #expect(said(agreement.rest(after: words("ask not what you're country"))) == "what youre country")
        #expect(said(agreement.rest(after: words("ask not"))) == "what your")
        #expect(said(agreement.rest(after: [])) == "what your")
        var noise = Agreement()
        let guess = words("you").map { WindowWord(text: $0.text, range: $0.range, confidence: 0.2, tokens: []) }
        _ = noise.take(guess, isTrusted: false)
        #expect(noise.rest(after: []).isEmpty)
    }

    @Test func whatIsCommittedStaysInOrderWhenTheWindowIsCut() {
        var agreement = Agreement()
        _ = agreement.take(words("a b c d e"), isTrusted: true)
        _ = agreement.take(words("a b c d e f"), isTrusted: true)
        #expect(said(agreement.removeFirst(3, frames: 3000)) == "a b c")
        #expect(agreement.committed.map(\.range.lowerBound) == [0, 1000])
        #expect(agreement.pending.map(\.range.lowerBound) == [2000])
        #expect(said(agreement.take(words("d e f g"), isTrusted: true)) == "f")
    }

    @Test(arguments: [
        ("no no no no no no no", 1), ("the tesch mehmehmehmehmehmeh", 2), ("ah aaaaaaaaah aaaaaaaaaa", 2),
        ("it is a it is a it is a it is a", 3),
        ("well the end the end the end the end", 3),
    ])
    func loopsAreFound(text: String, expected: Int) { #expect(words(text).loop == expected) }

    @Test(arguments: [
        "", "no no no no", "that that is is that that is not is not", "row row row your boat gently",
        "hahaha 10000000000",
    ])
    func speechIsNoLoop(text: String) { #expect(words(text).loop == nil) }
}

@Suite struct MarkTests {
    func isMark(_ text: String) -> Bool {
        let token = DecodedWindow.Token(id: 0, bytes: Array(text.utf8), probability: 1, start: nil)
        return DecodedWindow.Segment(range: 0..<1, tokens: [token]).isMark
    }

    @Test(arguments: [" [BLANK_AUDIO]", " (upbeat music)", "*sighs*", " ♪ ♪", " ...", ""])
    func marksAreNoText(text: String) { #expect(isMark(text)) }

    @Test(arguments: [" yes", " (one) or (two)", " well (sighs)", " [Anna] Hello.", " ♪ Happy birthday ♪", " 42"])
    func textIsNoMark(text: String) { #expect(!isMark(text)) }
}

@Suite struct LoudnessTests {
    /// Loud for a second, silent for a second, loud for a second.
    let loudness = Loudness((0..<48_000).map { 16_000..<32_000 ~= $0 ? 0 : Float($0 % 2) - 0.5 })

    @Test func placesAreInTheLoudPart() {
        #expect(loudness.place(1, of: 4, in: 0..<48_000) == 8000)
        #expect(loudness.place(3, of: 4, in: 0..<48_000) == 40_000)
        // At the boundary the text goes on where it is loud again.
        #expect(loudness.place(1, of: 2, in: 0..<48_000) == 32_000)
    }

    @Test func silenceAtTheEndsIsNoPartOfAWord() {
        #expect(loudness.loudPart(of: 8000..<24_000) == 8000..<16_000)
        #expect(loudness.loudPart(of: 20_000..<40_000) == 32_000..<40_000)
        #expect(loudness.loudPart(of: 18_000..<20_000) == 18_000..<20_000)
        #expect(Loudness([]).place(1, of: 2, in: 0..<0) == 0)
    }
}

@Suite struct ThreadChoiceTests {
    @Test func aQuietMachineUsesAllProcessors() {
        var choice = ThreadChoice(fixed: nil, processors: 2)
        #expect(choice.count == 1)
        for _ in 0..<20 { choice.note(cost: choice.count == 2 ? 0.6 : 1) }
        #expect(choice.count == 2)
    }

    /// With all threads a decode beside another busy process takes many times as long.
    @Test func aBusyMachineIsTriedMoreAndMoreSeldom() {
        var choice = ThreadChoice(fixed: nil, processors: 2)
        var tries: [Int] = []
        for decode in 0..<1000 {
            if choice.count == 2 { tries.append(decode) }
            choice.note(cost: choice.count == 2 ? 10 : 1)
        }
        #expect((3...12).contains(tries.count), "\(tries)")
        // It is left at the first bad decode, and quiet is noticed.
        for _ in 0..<300 { choice.note(cost: choice.count == 2 ? 0.6 : 1) }
        #expect(choice.count == 2)
    }

    @Test func aNumberThatWasAskedForStays() {
        var choice = ThreadChoice(fixed: 3, processors: 8)
        for _ in 0..<50 { choice.note(cost: 1) }
        #expect(choice.count == 3)
    }
}
