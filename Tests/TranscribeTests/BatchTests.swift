import ChildProcesses
import Foundation
import Steno
import TestSupport
import Testing

/// `transcribe --output-dir`: many files, with real decodes of the sample.
extension TranscribeTests {
    /// A folder of short files: x/one.wav, x/two.flac, x/deep/three.m4a, and what is no audio.
    private func inputs(_ folder: Folder) throws -> String {
        let root = folder.path("in")
        try FileManager.default.createDirectory(atPath: root + "/deep", withIntermediateDirectories: true)
        for (name, codec) in [("one.wav", "pcm_s16le"), ("two.flac", "flac"), ("deep/three.m4a", "aac")] {
            _ = try folder.file("in/" + name) { ["ffmpeg", "-v", "error", "-i", jfk, "-t", "3", "-c:a", codec, $0] }
        }
        _ = try folder.file("in/notes.txt", "no audio\n".utf8)
        _ = try folder.file("in/.hidden.wav", "hidden\n".utf8)
        return root
    }

    private func names(_ path: String) -> [String] {
        (FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []).sorted()
    }

    @Test func aFolder() throws {
        let folder = try Folder()
        let (input, output) = (try inputs(folder), folder.path("out"))
        let flat = try transcribe("--output-dir", output, "--format", "vtt", input)
        #expect(flat.status == 0, "\(flat.errors)")
        #expect(names(output) == ["one.vtt", "two.vtt"])
        #expect(flat.errors.contains("2 done, 1 not audio"))
        let all = try transcribe("--output-dir", output, "--format", "vtt", "--recursive", "--jobs", "2", input)
        #expect(all.status == 0 && all.errors.contains("1 done, 2 up to date, 1 not audio"), "\(all.errors)")
        #expect(names(output) == ["deep", "deep/three.vtt", "one.vtt", "two.vtt"])
        for name in ["one", "two", "deep/three"] {
            let text = try String(contentsOfFile: output + "/\(name).vtt", encoding: .utf8)
            #expect(text.hasPrefix("WEBVTT") && text.contains("American"), "\(name): \(text)")
        }
        let again = try transcribe("--output-dir", output, "--format", "vtt", "--recursive", "--force", input)
        #expect(again.status == 0 && again.errors.contains("3 done"))
    }

    /// One that fails does not stop the rest, and leaves nothing; the exit code tells.
    @Test func aFileThatFails() throws {
        let folder = try Folder()
        let (input, output) = (try inputs(folder), folder.path("out"))
        let text = input + "/notes.txt"
        let result = try transcribe("--output-dir", output, text, input + "/one.wav", folder.path("missing.wav"))
        #expect(result.status == 70 && result.errors.contains("1 done, 2 failed"), "\(result.errors)")
        #expect(result.errors.contains("notes.txt") && result.errors.contains("missing.wav"))
        #expect(names(output) == ["one.txt"])
        #expect(try transcribe("--output-dir", folder.path("o2"), text).status == 65)
    }

    /// The parts of the work are the whole, each file in one.
    @Test func shards() throws {
        let folder = try Folder()
        let (input, whole) = (try inputs(folder), folder.path("whole"))
        // The same stem twice: both keep their whole names.
        _ = try folder.file("in/one.flac") { ["ffmpeg", "-v", "error", "-i", input + "/one.wav", $0] }
        #expect(try transcribe("--output-dir", whole, "--recursive", input).status == 0)
        #expect(names(whole) == ["deep", "deep/three.txt", "one.flac.txt", "one.wav.txt", "two.txt"])
        var parts: [String] = []
        for shard in 1...2 {
            let part = folder.path("part\(shard)")
            #expect(try transcribe("--output-dir", part, "--recursive", "--shard", "\(shard)/2", input).status == 0)
            for name in names(part) where name.hasSuffix("txt") {
                parts.append(name)
                #expect(FileManager.default.contentsEqual(atPath: part + "/" + name, andPath: whole + "/" + name))
            }
        }
        #expect(parts.sorted() == names(whole).filter { $0.hasSuffix("txt") })
    }

    @Test func batchUsage() throws {
        let folder = try Folder()
        for wrong in [
            ["--jobs", "2", jfk], ["--recursive", jfk], ["--output-dir", folder.path("o"), "-"],
            ["--output-dir", folder.path("o"), "--output", "x", jfk], ["--output-dir", "o", "--shard", "3/2", jfk],
            ["--output-dir", "o", "--shard", "0/2", jfk], ["--output-dir", "o", "--jobs", "0", jfk],
        ] {
            #expect(try run(arguments(wrong)).status == 64, "\(wrong)")
        }
        let file = try folder.file("file", [])
        #expect(try transcribe("--output-dir", file + "/below", jfk).status == 74)
    }
}
