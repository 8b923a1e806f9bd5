import Foundation
import StenoAudio
import StenoModels
import TestSupport
import Testing

@Suite struct ArchiveTests {
    let folder: Folder

    init() throws { folder = try Folder() }

    /// A ZIP that Python makes: its names and contents as a Python list of pairs.
    private func archive(_ entries: String, prelude: String = "") throws -> ModelStore {
        let script = """
            import sys, zipfile, stat
            \(prelude)
            with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as file:
                for name, content in \(entries):
                    file.writestr(name, content)
            """
        try tool("python3", "-c", script, folder.path("a.zip"))
        return try store("file://" + folder.path("a.zip"), in: folder, kind: .vosk)
    }

    @Test func voskModel() async throws {
        let store = try archive(
            #"[("v/am/final.mdl", b"x" * 1000), ("v/conf/mfcc.conf", "y"), ("v/README", "z"), ("v/e/", "")]"#)
        let path = try await store.install("m")
        #expect(path == folder.path("models/folder") && store.path(of: "m") == path)
        #expect(existing(path + "/am/final.mdl") == [UInt8](repeating: 0x78, count: 1000))
        #expect(existing(path + "/conf/mfcc.conf") == Array("y".utf8))
        try await store.verify("m")
        try FileManager.default.removeItem(atPath: path + "/README")
        let error = await #expect(throws: StenoError.self) { try await store.verify("m") }
        #expect(error?.code == .modelChecksumMismatch && error?.message.contains("README") == true)
        try store.remove("m")
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    /// Nothing is written outside of the store, and nothing stays in it.
    @Test(arguments: [
        (#"[("../evil", "x")]"#, "elsewhere"), (#"[("a/../../evil", "x")]"#, "elsewhere"),
        (#"[("/tmp/evil", "x")]"#, "elsewhere"), (#"[("a\\..\\evil", "x")]"#, "elsewhere"),
        (#"[("a/x", "1"), ("a/x", "2")]"#, "twice"), (#"[(link, "/etc"), ("l/x", "1")]"#, "neither"),
        (#"[]"#, "empty"), (#"[("a/bomb", b"0" * (200 << 20))]"#, "swells"),
    ])
    func harmful(entries: String, message: String) async throws {
        let link =
            "link = zipfile.ZipInfo('l'); link.create_system = 3; link.external_attr = (stat.S_IFLNK | 0o777) << 16"
        let store = try archive(entries, prelude: link)
        let error = await #expect(throws: StenoError.self) { try await store.install("m") }
        #expect(
            error?.code == .modelArchiveInvalid && error?.message.contains(message) == true, "\(error?.message ?? "")")
        #expect(store.path(of: "m") == nil)
        let everything = FileManager.default.enumerator(atPath: folder.path(""))?.compactMap { $0 as? String } ?? []
        #expect(everything.sorted() == ["a.zip", "models", "models/.store", "models/.store/m.lock"])
    }

    @Test func damaged() async throws {
        _ = try archive(#"[("v/a", bytes(range(256)) * 1000)]"#)
        let whole = try #require(existing(folder.path("a.zip")))
        for (index, bytes) in [Array(whole.prefix(whole.count / 2)), noise(5000), Array("<html>".utf8)].enumerated() {
            try folder.write(bytes, "\(index).zip")
            let store = try store("file://" + folder.path("\(index).zip"), in: folder, kind: .vosk)
            await #expect { try await store.install("m") } throws: { ($0 as? StenoError)?.code == .modelArchiveInvalid }
            #expect(store.path(of: "m") == nil)
        }
    }
}
