import ChildProcesses
import Foundation
import Steno
import Testing

/// `transcribe` that is killed goes on where it was, and what it writes equals what one writes that is not killed.
extension TranscribeTests {
    @Test(.timeLimit(.minutes(10))) func killsAtRandomMoments() throws {
        let folder = try Folder()
        // Twenty minutes: the sample every 200 s, and silence, which is quick to hear.
        let audio = try folder.file("long.flac") { ["sox", "-D", jfk, $0, "pad", "0", "189", "repeat", "5"] }
        let format = ["--format", "json"]
        let whole = try run(arguments(format + ["--resume", folder.path("whole"), audio]))
        try #require(whole.status == 0, "\(whole.errors)")
        #expect(!FileManager.default.fileExists(atPath: folder.path("whole")))
        #expect(try JSONReader.read(whole.output).segments.count >= 6)

        let output = folder.path("texts/long.json")
        let checkpoint = folder.path("texts/.long.json.checkpoint")
        let command = arguments(format + ["--output-dir", folder.path("texts"), audio])
        var sizes = [0]
        var status: Int32 = 0
        // Twice at any moment; then as soon as a section more is kept.
        for round in 0..<5 {
            let process = try start(command, in: folder)
            let deadline = ContinuousClock.now + .milliseconds(.random(in: 0...3000))
            while round < 2 ? .now < deadline : size(of: checkpoint) <= sizes.last ?? 0 {
                guard !FileManager.default.fileExists(atPath: output) else { break }
                usleep(5000)
            }
            process.signal(SIGKILL)
            status = process.wait().status
            sizes.append(size(of: checkpoint))
        }
        #expect(sizes == sizes.sorted() && Set(sizes).count >= 4, "\(sizes)")
        let rest = try run(command)
        #expect(rest.status == 0 && rest.errors.contains("1 done"), "\(rest.errors), \(status)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: output)) == whole.output)
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
