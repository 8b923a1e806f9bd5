import Testing

@testable import StenoWhisper

@Suite struct SpeechGateTests {
    static let longestPause = 32

    /// How much passes with each chunk.
    func passes(_ probabilities: [Float], longestPause: Int = longestPause) -> [Int] {
        var gate = SpeechGate(longestPause: longestPause)
        return probabilities.map { gate.chunksToPass($0) }
    }

    @Test func aClickDoesNotOpenIt() {
        #expect(passes([0.1, 0.9, 0.1, 0.9, 0.1]).allSatisfy { $0 == 0 })
    }

    @Test func speechBringsWhatCameBefore() {
        #expect(passes([0, 0, 0.9, 0.9, 0.9]) == [0, 0, 0, 2 + SpeechGate().before, 1])
    }

    @Test func aShortPausePassesWholeAndALongOneDoesNot() {
        for silence in [1, SpeechGate().after, SpeechGate().after + 5, SpeechGate().after + Self.longestPause + 1] {
            let speech = [Float](repeating: 1, count: 20)
            let all = passes(speech + [Float](repeating: 0, count: silence) + speech)
            let passed = all.reduce(0, +) - SpeechGate().before
            let kept = silence <= SpeechGate().after + 5 ? silence : SpeechGate().after + SpeechGate().before
            #expect(passed == 40 + kept)
        }
    }

    /// Whatever the pause, no chunk passes twice, and no more than is wanted passes before the speech.
    @Test(arguments: 1...60) func noChunkPassesTwice(silence: Int) {
        let speech = [Float](repeating: 1, count: 20)
        let all = passes(speech + [Float](repeating: 0, count: silence) + speech, longestPause: 0)
        let kept = min(silence, SpeechGate().after + SpeechGate().before)
        #expect(all.reduce(0, +) - SpeechGate().before == 40 + kept)
    }
}

@Suite struct SpeechWindowTests {
    /// Three stretches of 100 frames, from frames 1000, 2000 and 2100 of the session.
    let window = {
        var window = SpeechWindow()
        for start in [1000, 2000, 2100] { window.append([Float](repeating: 0, count: 100)[...], at: Int64(start)) }
        return window
    }()

    @Test func mapsSegmentsAndWordsAlike() {
        #expect(window.sessionFrames(0..<100) == 1000..<1100)
        #expect(window.sessionFrames(100..<101) == 2000..<2001)
        #expect(window.sessionFrames(99..<101) == 1099..<2001)
        #expect(window.sessionFrames(150..<250) == 2050..<2150)
    }

    @Test func placesAWordWhereMostOfItIs() {
        #expect(window.mainPiece(of: 90..<105) == 0..<100)
        #expect(window.mainPiece(of: 95..<110) == 100..<300)
        #expect(window.mainPiece(of: 99..<100) == 0..<100)
    }

    @Test(arguments: [0, 1, 99, 100, 101, 299, 300])
    func isTheSameInTwo(count: Int) {
        var rest = window
        let first = rest.takeFirst(count)
        #expect(first.count == count && rest.count == 300 - count)
        let frames = [first, rest].flatMap { part in
            (0..<part.count).map { part.sessionFrames($0..<$0 + 1) }
        }
        #expect(frames == (0..<300).map { window.sessionFrames($0..<$0 + 1) })
        #expect(first.end == (count > 0 ? window.sessionFrames(0..<count).upperBound : nil))
    }

    @Test func isCutInTheLastPauseOrWhereItIsQuietest() {
        func window(_ parts: (seconds: Double, amplitude: Float)...) -> SpeechWindow {
            var window = SpeechWindow()
            for (seconds, amplitude) in parts {
                let sound = (0..<Int(seconds * 16_000)).map { $0.isMultiple(of: 2) ? amplitude : -amplitude }
                window.append(sound[...], at: window.end ?? 0)
            }
            return window
        }
        let pauses = window((2, 0.5), (0.4, 0), (1, 0.5), (0.4, 0.001), (1, 0.5))
        #expect(abs(Double(pauses.quietFrame(inLast: 3 * 16_000)) / 16_000 - 3.65) < 0.06)
        let dense = window((3, 0.5), (0.4, 0.2), (1, 0.5), (0.4, 0.3), (1, 0.5))
        #expect(abs(Double(dense.quietFrame(inLast: 3 * 16_000)) / 16_000 - 3.2) < 0.06)
        // Before the zone nothing counts.
        #expect(pauses.quietFrame(inLast: 16_000) >= Int(3.8 * 16_000))
    }

    @Test(arguments: [1, 99, 100, 101, 299])
    func mapsTheSameAfterRemoving(count: Int) {
        var shorter = window
        shorter.removeFirst(count)
        for index in count..<300 {
            #expect(shorter.sessionFrames(index - count..<index - count + 1) == window.sessionFrames(index..<index + 1))
        }
    }
}

@Suite struct OpenEndTests {
    /// Where the engine gives text without an end in time, it is kept; where it says only that a text begins, that is not
    /// taken for heard.
    @Test func theTextWithoutAnEndIsKept() throws {
        let long = try RecognizerTests.long.get().map { Float($0) / 32768 }
        let transcriber = try makeTranscriber()
        func decode(_ seconds: ClosedRange<Double>, keepsOpenEnd: Bool) throws -> DecodedWindow {
            let samples = Array(long[Int(seconds.lowerBound * 16_000)..<Int(seconds.upperBound * 16_000)])
            return try WindowDecoder(transcriber) { false }.decode(
                DecodeRequest(
                    samples: samples, keepsOpenEnd: keepsOpenEnd, beamSize: 5, bestOf: 5, temperatureIncrement: 0.2,
                    threads: 1))
        }
        var open = 0
        for seconds in [0...22.7, 14...34.9, 14...35.8, 0...25.4] {
            let (closed, kept) = (
                try decode(seconds, keepsOpenEnd: false), try decode(seconds, keepsOpenEnd: true)
            )
            let words = [closed, kept].map {
                plainWords($0.segments.map { String(decoding: $0.tokens.flatMap(\.bytes), as: UTF8.self) })
            }
            #expect(words[1].starts(with: words[0]))
            #expect(kept.consumed >= closed.consumed - 1600)
            if words[1].count > words[0].count { open += 1 }
            var end = 0
            for segment in kept.segments {
                #expect(segment.range.lowerBound >= end)
                end = segment.range.upperBound
            }
        }
        #expect((1...3).contains(open))
    }
}
