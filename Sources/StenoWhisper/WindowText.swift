/// A word of a window.
struct WindowWord {
    /// With the space before it, where the language writes one.
    var text: String
    /// Frames of the window.
    var range: Range<Int>
    /// The mean of the probabilities of its tokens.
    var confidence: Float
}

extension DecodedWindow.Segment {
    /// The words in order, with times that are in order and within `bounds`. Their texts joined are the segment's.
    ///
    /// A word begins with a token that begins with a space; where a language writes none, with every whole character
    /// that is no punctuation.
    func words(within bounds: Range<Int>, language: String?) -> [WindowWord] {
        let writesSpaces = !["zh", "yue", "ja", "th", "lo", "my", "km", "bo"].contains(language)
        var words: [WindowWord] = []
        var assembler = UTF8Assembler()
        var tokenCount: Float = 0
        for token in tokens {
            let beginsWord =
                writesSpaces
                ? token.bytes.first == UInt8(ascii: " ")
                : assembler.isEmpty && String(decoding: token.bytes, as: UTF8.self).first?.isPunctuation == false
            if beginsWord || words.isEmpty {
                if !words.isEmpty { words[words.count - 1].text += assembler.finish() }
                let start = min(max(token.start, words.last?.range.upperBound ?? bounds.lowerBound), bounds.upperBound)
                words.append(WindowWord(text: "", range: start..<start, confidence: 0))
                tokenCount = 0
            }
            let last = words.count - 1
            let end = min(max(token.end, words[last].range.upperBound), bounds.upperBound)
            words[last].text += assembler.append(token.bytes)
            words[last].range = words[last].range.lowerBound..<end
            words[last].confidence = (words[last].confidence * tokenCount + token.probability) / (tokenCount + 1)
            tokenCount += 1
        }
        if !words.isEmpty { words[words.count - 1].text += assembler.finish() }
        return words
    }
}

extension StringProtocol {
    /// Without white space around it.
    var trimmed: String {
        String(drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
    }
}
