/// Joins pieces of UTF-8 that may be cut in the middle of a character (law F4).
///
/// Byte-pair tokens cut characters in two. Each piece gives the text that is complete by then; the rest waits. What can
/// never become a character turns into U+FFFD, so that the text is valid always.
public struct UTF8Assembler: Sendable {
    private var waiting: [UInt8] = []

    public init() {}

    /// Whether no character waits for more bytes.
    public var isEmpty: Bool { waiting.isEmpty }

    /// Takes more bytes; returns the text that they complete.
    public mutating func append(_ bytes: some Sequence<UInt8>) -> String {
        waiting.append(contentsOf: bytes)
        let complete = waiting.count - Self.lengthOfOpenCharacter(at: waiting)
        defer { waiting.removeFirst(complete) }
        return String(decoding: waiting[..<complete], as: UTF8.self)
    }

    /// Ends the text: one U+FFFD for a character that never came whole, else nothing.
    public mutating func finish() -> String {
        defer { waiting.removeAll() }
        return String(decoding: waiting, as: UTF8.self)
    }

    /// Bytes at the end that begin a character and need more to finish it.
    private static func lengthOfOpenCharacter(at bytes: [UInt8]) -> Int {
        for (count, byte) in bytes.suffix(3).reversed().enumerated() where byte & 0xC0 != 0x80 {
            let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
            return length > count + 1 && byte < 0xF8 ? count + 1 : 0
        }
        return 0
    }
}
