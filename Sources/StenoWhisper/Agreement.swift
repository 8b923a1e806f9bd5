/// LocalAgreement-2 over the decodes of a growing window: what two decodes in a row say is committed.
///
/// From: Macháček, Dabre, Bojar, "Turning Whisper into Real-Time Transcription System", 2023. Unlike there, the committed
/// words are found again in the next decode by their text, with the least number of edits: their times wander by some
/// 0.3 s from decode to decode, and going by them says words twice or never.
struct Agreement {
    /// Committed words whose audio is still in the window.
    private(set) var committed: [WindowWord] = []
    /// What the last decode said beyond them.
    private(set) var pending: [WindowWord] = []
    /// The same, if the next decode may confirm it.
    private var candidates: [WindowWord] = []

    /// Takes what the next decode heard in the whole window; returns the words that are committed by it.
    ///
    /// - Parameter isTrusted: Whether the decode confirms anything.
    mutating func take(_ words: [WindowWord], isTrusted: Bool) -> [WindowWord] {
        let rest = words.dropFirst(Self.countOfCommitted(committed, in: words))
        let agreed = zip(rest, candidates).prefix { $0.key == $1.key }.count
        pending = Array(rest)
        candidates = isTrusted ? pending : []
        return commit(agreed)
    }

    /// What is final when no decode follows `words`: what they say beyond the committed words or, where that is nothing,
    /// what the decode before said, if it was rather sure. So text does not vanish at the end of an utterance, and what was
    /// made of a noise does.
    func rest(after words: [WindowWord]) -> [WindowWord] {
        let rest = words.dropFirst(Self.countOfCommitted(committed, in: words))
        let confidence = pending.reduce(0) { $0 + $1.confidence } / Float(max(1, pending.count))
        return rest.isEmpty && confidence > 0.5 ? pending : Array(rest)
    }

    /// Commits the next words although nothing confirmed them.
    mutating func commit(_ count: Int) -> [WindowWord] {
        let words = Array(pending.prefix(count))
        pending.removeFirst(words.count)
        candidates = Array(candidates.dropFirst(words.count))
        committed += words
        return words
    }

    /// The window lost its first frames, and the first committed words with them; returns those.
    mutating func removeFirst(_ count: Int, frames: Int) -> [WindowWord] {
        defer {
            committed = committed.dropFirst(count).map { $0.moved(by: -frames) }
            pending = pending.map { $0.moved(by: -frames) }
        }
        return Array(committed.prefix(count))
    }

    /// How many of the first of `words` are what was committed: the number that takes the fewest edits, and among equals
    /// the one that ends nearest to where the last committed word ended.
    private static func countOfCommitted(_ committed: [WindowWord], in words: [WindowWord]) -> Int {
        guard let last = committed.last else { return 0 }
        let keys = words.map(\.key)
        var row = Array(0...keys.count)
        for (index, word) in committed.map(\.key).enumerated() {
            var corner = row[0]
            row[0] = index + 1
            for column in keys.indices {
                let cost = corner + (word == keys[column] ? 0 : 1)
                corner = row[column + 1]
                row[column + 1] = min(cost, corner + 1, row[column] + 1)
            }
        }
        func distance(_ count: Int) -> Int {
            count == 0 ? last.range.upperBound : abs(words[count - 1].range.upperBound - last.range.upperBound)
        }
        return row.indices.min { (row[$0], distance($0)) < (row[$1], distance($1)) } ?? 0
    }
}

extension WindowWord {
    /// What counts when words are compared: neither case nor punctuation.
    var key: String {
        let letters = text.lowercased().filter { $0.isLetter || $0.isNumber }
        return letters.isEmpty ? text.trimmed : letters
    }

    func moved(by frames: Int) -> WindowWord {
        var word = self
        word.range = max(0, range.lowerBound + frames)..<max(0, range.upperBound + frames)
        return word
    }
}

extension [WindowWord] {
    /// Where a loop begins: behind its first turn where the end repeats one to eight words so often that nobody says it,
    /// or at a word that is a loop in itself; nil where there is none.
    var loop: Int? {
        let keys = map(\.key)
        if let stutter = keys.firstIndex(where: \.isStutter) { return stutter }
        for length in 1...8 {
            let turns = length == 1 ? 6 : length == 2 ? 4 : 3
            guard keys.count >= length * turns else { break }
            var first = keys.count - length
            while first > 0, keys[first - 1] == keys[first - 1 + length] { first -= 1 }
            if keys.count - first >= length * turns { return first + length }
        }
        return nil
    }
}

extension String {
    /// Whether it ends in letters that repeat, such as those of `mehmehmehmehmeh`.
    fileprivate var isStutter: Bool {
        let letters = Array(self)
        return (1...6).contains { length in
            let turns = length == 1 ? 8 : 5
            guard letters.count >= length * turns else { return false }
            let end = letters.suffix(length * turns)
            return end.allSatisfy(\.isLetter) && end.dropFirst(length).elementsEqual(end.dropLast(length))
        }
    }
}
