import StenoAudio

// What WebVTT and SubRip share: lines, and times of a cue.

/// The lines of a file that may begin with a byte order mark and end its lines with CR LF, CR or LF.
func lines(of bytes: some Sequence<UInt8>) -> [ArraySlice<UInt8>] {
    var rest = withoutByteOrderMark(bytes)
    var lines: [ArraySlice<UInt8>] = []
    while let end = rest.firstIndex(where: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
        lines.append(rest[..<end])
        rest = rest[end...].dropFirst(rest[end...].starts(with: [13, 10]) ? 2 : 1)
    }
    return lines + [rest]
}

func withoutByteOrderMark(_ bytes: some Sequence<UInt8>) -> ArraySlice<UInt8> {
    let bytes = Array(bytes)[...]
    return bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes
}

func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

private let arrow = "-->"

func indexOfArrow(_ line: ArraySlice<UInt8>) -> Int? {
    line.indices.first { line[$0...].starts(with: arrow.utf8) }
}

/// `start --> end` and whatever settings follow; nil when it is no timing. A cue that ends before its start is empty.
func cueTiming(_ line: ArraySlice<UInt8>) -> MediaTimeRange? {
    func firstWord(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        text.drop(while: isBlank).prefix { !isBlank($0) }
    }
    guard let at = indexOfArrow(line),
        let start = milliseconds(firstWord(line[..<at])),
        let end = milliseconds(firstWord(line[at...].dropFirst(arrow.utf8.count)))
    else { return nil }
    return MediaTimeRange(
        start: MediaTime(value: start, timescale: 1000), end: MediaTime(value: max(start, end), timescale: 1000))
}

/// `[hours:]minutes:seconds[.fraction]` with a point or a comma, in milliseconds; nil for anything else and for what
/// is too far away to calculate with.
private func milliseconds(_ text: ArraySlice<UInt8>) -> Int64? {
    let parts = text.split(maxSplits: 1, omittingEmptySubsequences: false) {
        $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: ",")
    }
    let thousandths = (Array(parts.dropFirst().joined()) + "000".utf8).prefix(3)
    guard let fraction = number(thousandths) else { return nil }
    let fields = parts[0].split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard (2...3).contains(fields.count) else { return nil }
    var total: Int64 = 0
    for field in fields {
        guard let number = number(field) else { return nil }
        total = total * 60 + number
    }
    return total * 1000 + fraction
}

private func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    // Seven digits are a thousand years of hours, and far from an overflow even when counted in 100 ns.
    guard (1...7).contains(digits.count) else { return nil }
    var value: Int64 = 0
    for digit in digits {
        guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
        value = value * 10 + Int64(digit - UInt8(ascii: "0"))
    }
    return value
}

/// `start --> end`, each rounded once to whole milliseconds and only then split, so that carries go all the way up.
func cueTiming(_ range: MediaTimeRange, decimalSeparator: String) -> String {
    func clock(_ time: MediaTime) -> String {
        let milliseconds = time.converted(to: 1000).value
        let (seconds, minutes, hours) = (milliseconds / 1000, milliseconds / 60_000, milliseconds / 3_600_000)
        return padded(hours, 2) + ":" + padded(minutes % 60, 2) + ":" + padded(seconds % 60, 2) + decimalSeparator
            + padded(milliseconds % 1000, 3)
    }
    return "\(clock(range.start)) \(arrow) \(clock(range.end))"
}

private func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(width - digits.count, 0)) + digits
}
