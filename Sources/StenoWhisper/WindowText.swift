/// A word of a window.
struct WindowWord {
    /// With the space before it, where the language writes one.
    var text: String
    /// Frames of the window.
    var range: Range<Int>
    /// The mean of the probabilities of its tokens.
    var confidence: Float
    /// What the engine made it of.
    var tokens: [Int32] = []
}

extension DecodedWindow.Segment {
    /// Whether the whole is no speech but a mark for what else is heard, such as `[BLANK_AUDIO]`, `(music)`, `*sighs*` or
    /// `♪`.
    var isMark: Bool {
        let text = String(decoding: tokens.flatMap(\.bytes), as: UTF8.self).trimmed
        guard text.contains(where: { $0.isLetter || $0.isNumber }) else { return true }
        guard let first = text.first, let last = text.last else { return true }
        return ["[]", "()", "**"].contains("\(first)\(last)") && !text.dropFirst().dropLast().contains(first)
    }

    /// The words in order, with times that are in order and within `bounds`. Their texts joined are the segment's.
    ///
    /// A word begins with a token that begins with a space; where a language writes none, with every whole character
    /// that is no punctuation. Where the engine was sure enough of the time of a token, that is its start; between such
    /// tokens, the frames that are loud enough for speech are shared by the length of the text.
    func words(in loudness: Loudness, within bounds: Range<Int>, language: String?) -> [WindowWord] {
        let writesSpaces = !["zh", "yue", "ja", "th", "lo", "my", "km", "bo"].contains(language)
        let starts = starts(in: loudness, within: bounds)
        var words: [WindowWord] = []
        var assembler = UTF8Assembler()
        var tokenCount: Float = 0
        for (index, token) in tokens.enumerated() {
            let beginsWord =
                writesSpaces
                ? token.bytes.first == UInt8(ascii: " ")
                : assembler.isEmpty && String(decoding: token.bytes, as: UTF8.self).first?.isPunctuation == false
            if beginsWord || words.isEmpty {
                if !words.isEmpty { words[words.count - 1].text += assembler.finish() }
                words.append(WindowWord(text: "", range: starts[index]..<starts[index], confidence: 0))
                tokenCount = 0
            }
            let last = words.count - 1
            words[last].text += assembler.append(token.bytes)
            words[last].range = words[last].range.lowerBound..<starts[index + 1]
            words[last].confidence = (words[last].confidence * tokenCount + token.probability) / (tokenCount + 1)
            tokenCount += 1
            words[last].tokens.append(token.id)
        }
        if !words.isEmpty { words[words.count - 1].text += assembler.finish() }
        for index in words.indices { words[index].range = loudness.loudPart(of: words[index].range) }
        return words
    }

    /// Where each token starts, and the end.
    private func starts(in loudness: Loudness, within bounds: Range<Int>) -> [Int] {
        var starts: [Int] = []
        var from = bounds.lowerBound
        var waiting: [Int] = []
        func fill(to end: Int) {
            let total = waiting.reduce(0, +)
            var sum = 0
            for weight in waiting {
                starts.append(loudness.place(sum, of: total, in: from..<end))
                sum += weight
            }
            (from, waiting) = (end, [])
        }
        for token in tokens {
            if let start = token.start, start > from, start < bounds.upperBound, !waiting.isEmpty { fill(to: start) }
            waiting.append(token.weight)
        }
        fill(to: bounds.upperBound)
        return starts + [bounds.upperBound]
    }
}

extension DecodedWindow.Token {
    /// How long it takes to say, more or less.
    fileprivate var weight: Int {
        String(decoding: bytes, as: UTF8.self).reduce(1) { $0 + ($1.isNumber ? 6 : $1.isLetter ? 2 : 0) }
    }
}

/// Which stretches of 20 ms of a window are loud enough for speech.
struct Loudness {
    private static let length = 320
    /// Loud stretches before each stretch, and at the end.
    private var loudBefore: [Int] = [0]

    init(_ samples: [Float]) {
        let powers = stride(from: 0, to: samples.count, by: Self.length).map { first in
            samples[first..<min(first + Self.length, samples.count)].reduce(0) { $0 + $1 * $1 } / Float(Self.length)
        }
        // 18 dB below the loud parts.
        let threshold = powers.isEmpty ? 0 : powers.sorted()[powers.count * 9 / 10] / 64
        for power in powers { loudBefore.append((loudBefore.last ?? 0) + (power > threshold ? 1 : 0)) }
    }

    private func index(_ frame: Int) -> Int { min(frame / Self.length, loudBefore.count - 1) }

    /// The frame at which so much of what is loud in `range` has passed; of its length where nothing is.
    func place(_ part: Int, of total: Int, in range: Range<Int>) -> Int {
        let (first, last) = (index(range.lowerBound), index(range.upperBound))
        let loud = loudBefore[last] - loudBefore[first]
        guard loud > 0, total > 0 else { return range.lowerBound + range.count * part / max(total, 1) }
        let wanted = loudBefore[first] + loud * part / total
        let found = (first..<last).first { loudBefore[$0 + 1] > wanted } ?? last
        return min(max(found * Self.length, range.lowerBound), range.upperBound)
    }

    /// `range` without what is too quiet at its ends; all of it when nothing is loud enough.
    func loudPart(of range: Range<Int>) -> Range<Int> {
        let (first, last) = (index(range.lowerBound), index(range.upperBound))
        let loud = (first..<max(first, last)).filter { loudBefore[$0 + 1] > loudBefore[$0] }
        guard let begin = loud.first, let end = loud.last else { return range }
        return max(range.lowerBound, begin * Self.length)..<min(range.upperBound, (end + 1) * Self.length)
    }
}

extension StringProtocol {
    /// Without white space around it.
    var trimmed: String {
        String(drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
    }
}
