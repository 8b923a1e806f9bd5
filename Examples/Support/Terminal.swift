import Foundation

/// Standard error, which may be a terminal.
package enum Terminal {
    package static let isInteractive = isatty(STDERR_FILENO) == 1

    /// Failures are ignored: there is nobody left to tell.
    package static func say(_ text: String) { _ = writeAll(text, to: STDERR_FILENO) }

    /// Columns; 80 where it is not known.
    package static var width: Int {
        var size = winsize()
        let status = unsafe ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size)
        return status == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
    }

    /// Columns that a character takes: two for those of East Asia and for emoji.
    package static func columns(of character: Character) -> Int {
        switch character.unicodeScalars.first?.value ?? 0 {
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE4F, 0xFF00...0xFF60,
            0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
            2
        default: 1
        }
    }

    package static func columns(of text: some StringProtocol) -> Int { text.reduce(0) { $0 + columns(of: $1) } }

    /// The text in lines of at most `width` columns, broken at spaces where it has some; without control characters.
    package static func lines(of text: String, width: Int) -> [String] {
        var lines: [String] = []
        var (line, length): (String, Int) = ("", 0)
        func flush() {
            lines.append(line)
            (line, length) = ("", 0)
        }
        for word in text.split(whereSeparator: { $0.isWhitespace || $0.unicodeScalars.contains(where: isControl) }) {
            let columns = columns(of: word)
            if length > 0, length + 1 + columns > width { flush() }
            if length > 0 { (line, length) = (line + " ", length + 1) }
            for character in word {
                let columns = Self.columns(of: character)
                if length + columns > width { flush() }
                line.append(character)
                length += columns
            }
        }
        if length > 0 { flush() }
        return lines
    }

    /// The beginning of the text that fits.
    static func cut(_ text: String, width: Int) -> String {
        var columns = 0
        return String(
            text.prefix { character in
                columns += Self.columns(of: character)
                return columns <= width
            })
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.generalCategory == .control }
}

/// The lines at the bottom of the terminal that are drawn anew in place. What is said meanwhile goes above them, once
/// they are cleared.
package struct LiveArea {
    private var drawn: [String] = []

    package init() {}

    /// Does nothing where there is no terminal. What does not fit into a line is cut off.
    package mutating func show(_ lines: [String]) {
        guard Terminal.isInteractive else { return }
        let width = Terminal.width - 1
        let lines = lines.map { Terminal.cut($0, width: width) }
        guard lines != drawn else { return }
        Terminal.say(erasure + lines.joined(separator: "\n"))
        drawn = lines
    }

    package mutating func clear() {
        guard !drawn.isEmpty else { return }
        Terminal.say(erasure)
        drawn = []
    }

    /// Moves to the start of the area and clears from there. Lines may have wrapped if the terminal became narrower.
    private var erasure: String {
        let width = Terminal.width
        let rows = drawn.reduce(0) { $0 + max(1, (Terminal.columns(of: $1) + width - 1) / width) }
        return (rows > 1 ? "\u{1B}[\(rows - 1)A" : "") + "\r\u{1B}[J"
    }
}
