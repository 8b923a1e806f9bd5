import ChildProcesses
import Foundation
import StenoModels
import TestSupport
import Testing

/// The program `models`, and what is left of it when it is killed.
@Suite(.serialized, .timeLimit(.minutes(10))) struct ModelsProgramTests {
    let server: BadServer
    let folder: Folder

    init() throws {
        server = try BadServer()
        folder = try Folder()
    }

    private func program(_ arguments: String..., output: String? = nil, errors: String? = nil) throws -> ChildProcess {
        try program(arguments, output: output, errors: errors)
    }

    private func program(_ arguments: [String], output: String? = nil, errors: String? = nil) throws -> ChildProcess {
        try ChildProcess(
            [productPath("models"), "--folder", folder.path("models")] + arguments, output: output ?? "/dev/null",
            errors: errors ?? "/dev/null")
    }

    private func text(_ name: String) -> String {
        String(decoding: existing(folder.path(name)) ?? [], as: UTF8.self)
    }

    @Test func commands() throws {
        let (output, errors) = (folder.path("out"), folder.path("err"))
        let silero = root.appending(path: ".steno/models").path
        #expect(
            try program("--mirror", "file://" + silero, "install", "silero-v6.2.0", output: output, errors: errors)
                .wait().status == 0)
        #expect(text("out") == folder.path("models/ggml-silero-v6.2.0.bin") + "\n" && text("err").contains("verifying"))
        #expect(!text("err").contains("\u{1B}"))
        #expect(try program("verify", output: output).wait().status == 0)
        #expect(text("out") == "silero-v6.2.0: right\n")
        #expect(try program("list", "--language", "de", output: output).wait().status == 0)
        #expect(text("out").contains("vosk-small-de-0.15") && !text("out").contains("tiny.en"))
        #expect(try program("list", output: output).wait().status == 0)
        #expect(
            text("out").contains { _ in true }
                && text("out").split(separator: "\n").first { $0.hasPrefix("silero-v6.2.0") }?.contains("installed")
                    == true
        )
        let path = folder.path("models/ggml-silero-v6.2.0.bin")
        var bytes = try #require(existing(path))
        bytes[5000] ^= 1
        try Data(bytes).write(to: URL(filePath: path))
        #expect(try program("verify", errors: errors).wait().status == 65)
        #expect(text("err").contains("damaged"))
        // What is cut off is not installed, but it is there.
        try Data(bytes.prefix(1000)).write(to: URL(filePath: path))
        for arguments in [["verify"], ["verify", "silero-v6.2.0"]] {
            #expect(try program(arguments, errors: errors).wait().status == 65)
            #expect(text("err").hasSuffix("is damaged: it has 1000 bytes, not 885098.\n"))
        }
        #expect(try program("remove", "silero-v6.2.0").wait().status == 0)
        #expect(existing(path) == nil)
        for command in ["remove", "verify"] {
            #expect(try program(command, "silero-v6.2.0", errors: errors).wait().status == 69)
            #expect(text("err") == "models: silero-v6.2.0: The model silero-v6.2.0 is not installed.\n")
        }
        #expect(try program("verify", errors: errors).wait().status == 0)
        #expect(text("err") == "models: no model is installed in \(folder.path("models"))\n")
        #expect(try program("--offline", "install", "tiny", errors: errors).wait().status == 69)
        #expect(try program("install", "no-such").wait().status == 69)
        #expect(try program("--help").wait().status == 0 && program("install").wait().status == 64)
        #expect(try program("fetch").wait().status == 64 && program("list", "x").wait().status == 64)
        #expect(
            try program("--mirror", "http://127.0.0.1:\(server.port)/missing", "install", "silero-v6.2.0").wait().status
                == 69)
    }

    @Test func outputThatCannotBeWritten() throws {
        let errors = folder.path("err")
        let mirror = ["--mirror", "file://" + root.appending(path: ".steno/models").path]
        for command in [["--help"], ["list"], mirror + ["install", "silero-v6.2.0"], ["verify"]] {
            let arguments = [productPath("models"), "--folder", folder.path("models")] + command
            #expect(try ChildProcess(arguments, output: "/dev/full", errors: errors).wait().status == 74, "\(command)")
            #expect(text("err").contains("cannot write to standard output: No space left on device"))
        }
    }

    /// Killed at 100 random moments: the model is whole or not there, what came stays, and in the end it is right.
    @Test func kills() async throws {
        let model = root.appending(path: ".steno/models/ggml-silero-v6.2.0.bin").path
        let content = try #require(existing(model))
        try server.folder.write(content, "ggml-silero-v6.2.0.bin")
        let (whole, partial) = (
            folder.path("models/ggml-silero-v6.2.0.bin"), folder.path("models/.store/silero-v6.2.0.partial")
        )
        var (most, kills, completed) = (0, 0, 0)
        while kills < 100 {
            let process = try program("--mirror", "http://127.0.0.1:\(server.port)/slow", "install", "silero-v6.2.0")
            try await Task.sleep(for: .milliseconds(.random(in: 1...250)))
            process.signal(SIGKILL)
            if process.wait().status == 128 + SIGKILL { kills += 1 }
            if let found = existing(whole) {
                #expect(found == content)
                completed += 1
                try FileManager.default.removeItem(atPath: whole)
                most = 0
            } else {
                let size = existing(partial)?.count ?? 0
                #expect(size >= most, "what was there already is gone")
                most = size
            }
        }
        #expect(
            try program("--mirror", "http://127.0.0.1:\(server.port)/slow", "install", "silero-v6.2.0").wait().status
                == 0)
        #expect(existing(whole) == content)
        #expect(server.requests("slow").contains { $0 != "-" })
    }

    /// The same for a model that is a folder: it appears with all its files.
    @Test func killsWhileUnpacking() async throws {
        let script = """
            import sys, zipfile
            with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as file:
                for at in range(300):
                    file.writestr(f"v/{at % 10}/{at}", bytes(range(256)) * 100)
            """
        // One of which no digest is known.
        try tool("python3", "-c", script, folder.path("vosk-model-small-nl-0.22.zip"))
        let model = folder.path("models/vosk-model-small-nl-0.22")
        var (kills, completed) = (0, 0)
        while kills < 30 {
            let process = try program("--mirror", "file://" + folder.path(""), "install", "vosk-small-nl-0.22")
            // Some are left to their end, so that both are seen.
            if kills % 10 != 9 || completed > kills / 10 {
                try await Task.sleep(for: .milliseconds(.random(in: 1...500)))
                process.signal(SIGKILL)
            }
            if process.wait().status == 128 + SIGKILL { kills += 1 }
            guard FileManager.default.fileExists(atPath: model) else { continue }
            completed += 1
            #expect(try program("verify", "vosk-small-nl-0.22").wait().status == 0)
            let files = FileManager.default.enumerator(atPath: model)?.compactMap { $0 as? String } ?? []
            #expect(files.count == 310)
            try FileManager.default.removeItem(atPath: model)
        }
        #expect(
            try program("--mirror", "file://" + folder.path(""), "install", "vosk-small-nl-0.22").wait().status == 0)
        #expect(try program("verify").wait().status == 0)
        #expect(completed > 0)
    }

    /// Several processes ask for the same model at once.
    @Test func manyProcesses() async throws {
        let model = root.appending(path: ".steno/models/ggml-silero-v6.2.0.bin").path
        try server.folder.write(try #require(existing(model)), "ggml-silero-v6.2.0.bin")
        let processes = try (0..<6).map { _ in
            try program("--mirror", "http://127.0.0.1:\(server.port)/slow", "install", "silero-v6.2.0")
        }
        #expect(processes.map { $0.wait().status } == [0, 0, 0, 0, 0, 0])
        #expect(server.requests("slow") == ["-"])
    }
}
