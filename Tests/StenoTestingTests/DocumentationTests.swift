import Foundation
import Testing

/// The pages of Documentation/ say what is so: their code is that of files which are compiled, their links lead somewhere,
/// and each law has its place and its test.
struct DocumentationTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
    }

    @Test(arguments: [
        (
            "RecognizerBackEnd",
            [
                "Package.swift", "Sources/ToneSpotter/ToneSpotter.swift", "Sources/dtmf/DTMF.swift",
                "Tests/ToneSpotterTests/ToneSpotterTests.swift",
            ].map { "Examples/custom-recognizer/" + $0 }
        ),
        ("CaptureBackEnd", ["Tests/StenoTestingTests/ProgramStream.swift"]),
    ])
    func codeIsThatOfCompiledFiles(page: String, files: [String]) throws {
        let sources = try files.map(text)
        let blocks = try text("Documentation/\(page).md").components(separatedBy: "```swift\n").dropFirst()
        #expect(blocks.count >= 4)
        for block in blocks {
            let code = try #require(block.components(separatedBy: "```").first)
            #expect(sources.contains { $0.contains(code) }, "\(code)")
        }
    }

    @Test(arguments: ["RecognizerBackEnd", "CaptureBackEnd", "Laws", "Design", "Capture", "Channels", "Time"])
    func linksLeadSomewhere(page: String) throws {
        for match in try text("Documentation/\(page).md").matches(of: /\]\(([^)#:]+)\)/) {
            let target = Self.root.appending(path: "Documentation/\(match.1)").standardized.path
            #expect(FileManager.default.fileExists(atPath: target), "\(match.1)")
        }
    }

    @Test func eachLawIsShownByATest() throws {
        let rows = try text("Documentation/Laws.md").matches(
            of: /(?m)^\| ([TCAKF]\d+) \| .+ \| \[\w+\]\(.+\) \| \[(\w+)\]\(\.\.\/(.+)\) \|$/)
        let laws = ["T": 6, "C": 5, "A": 11, "K": 4, "F": 4].flatMap { letter, count in
            (1...count).map { "\(letter)\($0)" }
        }
        #expect(rows.map { String($0.1) }.sorted() == laws.sorted())
        for row in rows { #expect(try text(String(row.3)).contains("func \(row.2)("), "\(row.1)") }
        // The laws that a check names are among them.
        for match in try text("Sources/StenoTesting/CheckTranscriber.swift").matches(of: /"([TCAKF]\d+)"/) {
            #expect(laws.contains(String(match.1)))
        }
    }
}
