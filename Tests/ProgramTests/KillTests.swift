import Foundation
import PulseTestServer
import Steno
import Synchronization
import TestSupport
import Testing

/// Law F1, with the programs themselves and `kill -9`. Ten random moments each; fifty with STENO_SOAK.
@Suite("A program that is killed leaves whole files", .serialized, .timeLimit(.minutes(15)))
struct KillTests {
    private let kills = ProcessInfo.processInfo.environment["STENO_SOAK"] == nil ? 10 : 50

    @Test func recording() async throws {
        let folder = try Folder()
        let original = (0..<48000 * 10).flatMap { frame in [Int16(truncatingIfNeeded: frame), .random(in: -99...99)] }
        let played = folder.path("played.wav")
        try write(original, to: played, sampleRate: 48000, channelLayout: .stereo)
        try await several(kills, atOnce: 5) { index in
            let type = ["wav", "flac", "opus", "m4a"][index % 4]
            let (file, messages) = (folder.path("\(index).\(type)"), folder.path("\(index).txt"))
            let program = try Program("record", ["--source", "file:\(played)", file], errors: messages)
            try await program.wait(for: "recording", in: messages)
            let start = ContinuousClock.now
            // An Ogg file without a page of audio is no audio file, nor is an MP4 file without a packet.
            let isExact = type == "wav" || type == "flac"
            try await Task.sleep(for: .milliseconds(.random(in: (isExact ? 50 : 1000)...3000)))
            let seconds = (ContinuousClock.now - start) / .seconds(1)
            program.killNow()
            let samples = try samples(of: file)
            #expect(Double(samples.count / 2) >= (seconds - 1) * 48000, "\(type) killed after \(seconds) s")
            if isExact { #expect(samples == Array(original.prefix(samples.count))) }
        }
    }

    @Test func captioning() async throws {
        let folder = try Folder()
        let jfk = try samples(of: root.appending(path: ".steno/samples/jfk.wav").path)
        let played = folder.path("played.wav")
        let printedFinals = Atomic(0)
        try write((0..<40).flatMap { _ in jfk }, to: played, sampleRate: 16000, channelLayout: .mono)
        try await several(kills, atOnce: 2) { index in
            let (lines, vtt, wav) = (
                folder.path("\(index).jsonl"), folder.path("\(index).vtt"), folder.path("\(index).wav")
            )
            let program = try Program(
                "live-captions",
                ["--replay", played, "--speed", "10", "--format", "jsonl", "--vtt", vtt, "--record", wav],
                output: lines, errors: folder.path("\(index).txt"))
            // Every other one at its first captions, which come late where the machine is busy.
            let isAtCaptions = index.isMultiple(of: 2)
            try await program.wait(for: isAtCaptions ? #""isFinal":true"# : "WEBVTT", in: isAtCaptions ? lines : vtt)
            try await Task.sleep(for: .milliseconds(.random(in: 0...(isAtCaptions ? 2000 : 9000))))
            program.killNow()

            let printed = try text(of: lines).split(separator: "\n").map { line in
                try JSONDecoder().decode(Line.self, from: Data(line.utf8))
            }
            #expect(text(of: lines).isEmpty || text(of: lines).hasSuffix("\n"))
            let finals = printed.filter { $0.isFinal == true && $0.text?.isEmpty == false }
            printedFinals.add(finals.count, ordering: .relaxed)
            let cues = try WebVTTReader.read(text(of: vtt).utf8)
            #expect(text(of: vtt).hasSuffix("\n\n"))
            #expect(zip(cues, cues.dropFirst()).allSatisfy { $0.range.end <= $1.range.start })
            // The file lacks at most the phrase that was not finished.
            let (shown, said) = (words(cues.map(\.text)), words(finals.compactMap(\.text)))
            #expect(said.starts(with: shown) || shown.starts(with: said))
            #expect(said.dropFirst(shown.count).joined(separator: " ").count <= 84)
            let recorded = try samples(of: wav)
            #expect(recorded == (0..<recorded.count).map { jfk[$0 % jfk.count] })
            let end = finals.map(\.end).max() ?? 0
            #expect(Double(recorded.count) / 16000 >= end - 1)
        }
        #expect(printedFinals.load(ordering: .relaxed) > 0)
    }

    private struct Line: Decodable {
        var emitted, start, end: Double
        var text: String?
        var isFinal: Bool?
    }

    private func words(_ texts: [String]) -> [Substring] { texts.flatMap { $0.split(whereSeparator: \.isWhitespace) } }

    /// Runs `body` with 0, 1 and so on, some at a time.
    private func several(
        _ count: Int, atOnce limit: Int, _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<count {
                if index >= limit { try await group.next() }
                group.addTask { try await body(index) }
            }
            try await group.waitForAll()
        }
    }
}
