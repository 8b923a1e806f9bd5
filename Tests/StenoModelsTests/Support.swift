import Foundation
import StenoAudio
import StenoModels
import TestSupport

/// The content of a file; nil where there is none.
func existing(_ path: String) -> [UInt8]? { FileManager.default.contents(atPath: path).map { [UInt8]($0) } }

/// Bytes that differ, and are the same every time.
func noise(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed
    return (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 33)
    }
}

func sha256(_ path: String) throws -> String { try String(tool("sha256sum", path).prefix(64)) }

/// Tests/BadServer, which serves the files of a folder.
final class BadServer: Sendable {
    let port: Int
    let folder: Folder
    private let log: String
    private let process: Process

    init() throws {
        folder = try Folder()
        log = folder.path(".log")
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        let script = root.appending(path: "Tests/BadServer/server.py").path
        process.arguments = ["python3", script, folder.path(""), log]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        self.process = process
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        guard let port = Int(line.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw StenoError(.invalidArgument, "the server says \(line)")
        }
        self.port = port
    }

    deinit { process.terminate() }

    func address(_ behaviour: String, _ name: String) -> String { "http://127.0.0.1:\(port)/\(behaviour)/\(name)" }

    /// The ranges that were asked for, in order.
    func requests(_ behaviour: String) -> [String] {
        String(decoding: existing(log) ?? [], as: UTF8.self).split(separator: "\n").map { $0.split(separator: " ") }
            .filter { $0[0] == behaviour }.map { String($0[1]) }
    }
}

/// A catalogue of one model, and a store for it.
func store(
    _ address: String, in folder: Folder, name: String = "m", kind: ModelEntry.Kind = .whisper, size: Int64? = nil,
    digests: [ModelDigest] = [], _ change: (inout ModelStore.Options) -> Void = { _ in }
) throws -> ModelStore {
    var options = ModelStore.Options(folder: folder.path("models"))
    options.catalog = try ModelCatalog(entries: [
        ModelEntry(
            name: name, kind: kind, address: address, fileName: kind == .vosk ? "folder" : "m.bin", size: size,
            digests: digests, licence: "none", languages: ["en"], source: "this test")
    ])
    options.stallSeconds = 1
    options.retryDelay = .milliseconds(10)
    change(&options)
    return ModelStore(options)
}

/// What a store told while it worked.
final class Log: Sendable {
    private let progress = Lock<[ModelProgress]>([])
    var all: [ModelProgress] { progress.withLock { $0 } }

    func add(_ next: ModelProgress) { progress.withLock { $0.append(next) } }

    /// Whether nothing ever went back.
    var isMonotone: Bool {
        zip(all, all.dropFirst()).allSatisfy { $0.received <= $1.received && $0.phase <= $1.phase }
    }
}
