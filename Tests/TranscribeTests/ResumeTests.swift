import ChildProcesses
import Foundation
import Steno
import TestSupport
import Testing

/// `transcribe` that is killed goes on where it was, and what it writes equals what one writes that is not killed.
extension TranscribeTests {
    /// Twenty minutes and five kills; an hour and twenty with STENO_SOAK.
    @Test(.timeLimit(.minutes(15))) func killsAtRandomMoments() throws {
        let folder = try Folder()
        let isSoak = ProcessInfo.processInfo.environment["STENO_SOAK"] != nil
        let (count, kills) = isSoak ? (18, 20) : (6, 5)
        // The sample every 200 s, and silence, which is quick to hear.
        let audio = try folder.file("long.flac") {
            ["sox", "-D", jfk, $0, "pad", "0", "189", "repeat", "\(count - 1)"]
        }
        let format = ["--format", "json"]
        let whole = try run(arguments(format + ["--resume", folder.path("whole"), audio]))
        try #require(whole.status == 0, "\(whole.errors)")
        #expect(!FileManager.default.fileExists(atPath: folder.path("whole")))
        #expect(try JSONReader.read(whole.output).segments.count >= count)

        let output = folder.path("texts/long.json")
        let checkpoint = folder.path("texts/.long.json.checkpoint")
        let command = arguments(format + ["--output-dir", folder.path("texts"), audio])
        var sizes = [0]
        var kept = Data()
        // At any moment; the last three as soon as a section more is kept.
        for round in 0..<kills {
            let process = try start(command, in: folder)
            let deadline = ContinuousClock.now + .milliseconds(.random(in: 0...3000))
            while round < kills - 3 ? .now < deadline : size(of: checkpoint) <= sizes.last ?? 0 {
                guard !FileManager.default.fileExists(atPath: output) else { break }
                usleep(5000)
            }
            process.signal(SIGKILL)
            _ = process.wait()
            if let data = FileManager.default.contents(atPath: checkpoint) { kept = data }
            sizes.append(size(of: checkpoint))
        }
        #expect(sizes == sizes.sorted() && Set(sizes).count >= 4, "\(sizes)")
        let rest = try run(command)
        #expect(rest.status == 0 && rest.errors.contains("1 done"), "\(rest.errors)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: output)) == whole.output)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("texts")) == ["long.json"])
        // A kill behind the text and before the end of the checkpoint.
        try kept.write(to: URL(fileURLWithPath: checkpoint))
        #expect(try run(command).errors.contains("1 up to date"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("texts")) == ["long.json"])
    }

    private func size(of path: String) -> Int {
        (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
    }

    @Test func resumeUsage() throws {
        let folder = try Folder()
        let kept = folder.path("kept")
        for wrong in [[jfk, jfk], ["-"], ["--output-dir", folder.path("o"), jfk]] {
            #expect(try run(arguments(["--resume", kept] + wrong)).status == 64, "\(wrong)")
        }
        // What is there already is not overwritten, and not in the way.
        let notes = try folder.file("notes", "mine\n".utf8)
        let result = try transcribe("--resume", notes, jfk)
        #expect(result.status == 0 && result.errors.contains("is no checkpoint"))
        #expect(try String(contentsOfFile: notes, encoding: .utf8) == "mine\n")
    }
}
