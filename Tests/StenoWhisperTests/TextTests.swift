import StenoWhisper
import Testing

@Suite struct UTF8AssemblerTests {
    /// The text after each piece, and at the end.
    func assemble(_ pieces: [[UInt8]]) -> [String] {
        var assembler = UTF8Assembler()
        return pieces.map { assembler.append($0) } + [assembler.finish()]
    }

    @Test func waitsForTheRestOfACharacter() {
        #expect(assemble([[0xE3, 0x83], [0xB3]]) == ["", "ン", ""])
        #expect(assemble([[0x61, 0xF0], [0x9F], [0x99], [0x82, 0x62]]) == ["a", "", "", "🙂b", ""])
    }

    @Test func replacesWhatNeverCame() {
        #expect(assemble([[0x61, 0xC3]]) == ["a", "\u{FFFD}"])
        #expect(assemble([[0xE3, 0x83]]) == ["", "\u{FFFD}"])
        #expect(assemble([[0xE3, 0x83], [0x61]]) == ["", "\u{FFFD}a", ""])
    }

    @Test func keepsNoInvalidBytes() {
        #expect(assemble([[0xFF], [0x80, 0x80], [0x62]]) == ["\u{FFFD}", "\u{FFFD}\u{FFFD}", "b", ""])
    }

    @Test func cutAnywhereItIsTheSame() {
        let text = "Grüße, 日本語 🙂 — ça va?"
        let bytes = Array(text.utf8)
        for cut in 0...bytes.count {
            #expect(assemble([Array(bytes[..<cut]), Array(bytes[cut...])]).joined() == text)
        }
    }
}
