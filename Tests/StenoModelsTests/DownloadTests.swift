import Foundation
import StenoAudio
import StenoModels
import TestSupport
import Testing

/// Against a server that does what servers and networks do.
@Suite("The store downloads whole models or none") struct DownloadTests {
    static let server = Result { try BadServer() }
    let server: BadServer
    let folder: Folder
    let content = noise(300_000)
    let digest: ModelDigest

    init() throws {
        server = try Self.server.get()
        folder = try Folder()
        try server.folder.write(content, "m.bin")
        digest = try ModelDigest(.sha256, sha256(server.folder.path("m.bin")))
    }

    private func address(_ behaviour: String, _ test: String) throws -> String {
        // Behaviours count by path, so each test has its own.
        try server.folder.write(content, "\(test).bin")
        return server.address(behaviour, "\(test).bin")
    }

    @Test(arguments: [
        "plain", "drop", "stall", "chunked", "noranges", "busy", "redirect", "change", "rude", "sly",
    ])
    func succeeds(behaviour: String) async throws {
        let store = try store(
            address(behaviour, #function + behaviour), in: folder, size: Int64(content.count), digests: [digest])
        let log = Log()
        #expect(store.status(of: "m").state == .supported && store.path(of: "m") == nil)
        let path = try await store.install("m") { log.add($0) }
        #expect(existing(path) == content && path == store.path(of: "m"))
        #expect(store.status(of: "m").state == .installed)
        #expect(log.isMonotone && log.all.last?.received == Int64(content.count))
        try await store.verify("m")
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path("models/.store"))
        #expect(left.sorted() == ["m.json", "m.lock"])
        let before = server.requests(behaviour).count
        try await store.install("m")
        #expect(server.requests(behaviour).count == before)
    }

    /// Without a size and a digest in the catalogue as well, and one is recorded.
    @Test(arguments: ["plain", "drop", "chunked", "noranges", "change", "rude"])
    func unknownModel(behaviour: String) async throws {
        let store = try store(address(behaviour, #function + behaviour), in: folder)
        let path = try await store.install("m")
        #expect(existing(path) == content)
        try await store.verify("m")
        var damaged = content
        damaged[1000] ^= 1
        for bytes in [damaged, Array(content.prefix(1000))] {
            try Data(bytes).write(to: URL(filePath: path))
            await #expect { try await store.verify("m") } throws: {
                ($0 as? StenoError)?.code == .modelChecksumMismatch
            }
        }
    }

    @Test(arguments: [
        ("short", "bytes"), ("long", "bytes"), ("endless", "more than"), ("html", "web page"), ("missing", "404"),
        ("loop", "redirect"), ("elsewhere", "rotocol"), ("dead", "Timeout"),
    ])
    func fails(behaviour: String, message: String) async throws {
        let store = try store(
            address(behaviour, #function + behaviour), in: folder, size: Int64(content.count), digests: [digest]
        ) { $0.retries = 1 }
        let log = Log()
        let error = await #expect(throws: StenoError.self) { try await store.install("m") { log.add($0) } }
        #expect(
            error?.code == .modelDownloadFailed && error?.message.contains(message) == true, "\(error?.message ?? "")")
        #expect(store.path(of: "m") == nil && existing(folder.path("models/m.bin")) == nil)
        #expect(log.isMonotone && store.status(of: "m").state == .supported)
    }

    /// A digest finds what the length does not.
    @Test(arguments: ["wrong", "short"]) func mismatch(behaviour: String) async throws {
        let store = try store(address(behaviour, #function + behaviour), in: folder, digests: [digest])
        let error = await #expect(throws: StenoError.self) { try await store.install("m") }
        #expect(error?.code == .modelChecksumMismatch && error?.message.contains(digest.value) == true)
        #expect(store.path(of: "m") == nil && server.requests(behaviour).count >= 2)
    }

    @Test func everyDigestCounts() async throws {
        let wrong = ModelDigest(.md5, String(repeating: "0", count: 32))
        let store = try store(address("plain", #function), in: folder, digests: [digest, wrong])
        await #expect { try await store.install("m") } throws: { ($0 as? StenoError)?.code == .modelChecksumMismatch }
    }

    @Test func goesOnWhereItWas() async throws {
        let store = try store(address("slow", #function), in: folder, size: Int64(content.count), digests: [digest])
        let log = Log()
        let task = Task { try await store.install("m") { log.add($0) } }
        while log.all.last?.received ?? 0 < 50_000 { try await Task.sleep(for: .milliseconds(5)) }
        #expect(store.status(of: "m").state == .downloading && store.status(of: "m").progress?.fraction ?? 0 > 0)
        let start = ContinuousClock.now
        task.cancel()
        await #expect { try await task.value } throws: { ($0 as? StenoError)?.code == .cancelled }
        #expect(ContinuousClock.now - start < .seconds(1))
        while store.status(of: "m").state == .downloading { try await Task.sleep(for: .milliseconds(5)) }
        #expect(store.status(of: "m").reason.contains("are there already"))
        let second = Log()
        let path = try await store.install("m") { second.add($0) }
        #expect(existing(path) == content && second.all.first?.received ?? 0 >= 50_000)
        #expect(server.requests("slow").contains { $0 != "-" })
        #expect(second.all.contains { ($0.bytesPerSecond ?? 0) > 0 && $0.remaining != nil })
    }

    /// One download for many askers; whoever leaves does not end it for the others.
    @Test func manyAskers() async throws {
        let store = try store(address("slow", #function), in: folder, size: Int64(content.count), digests: [digest])
        let before = server.requests("slow").count
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<20 { group.addTask { try await store.install("m") } }
            let leaver = Task { try await store.install("m") }
            try await Task.sleep(for: .milliseconds(200))
            leaver.cancel()
            await #expect { try await leaver.value } throws: { ($0 as? StenoError)?.code == .cancelled }
            for try await path in group { #expect(existing(path) == content) }
        }
        #expect(server.requests("slow").count == before + 1)
    }

    /// Two stores are as two processes: the lock is the file's.
    @Test func manyStores() async throws {
        let address = try address("slow", #function)
        let before = server.requests("slow").count
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<5 {
                let store = try store(address, in: folder, size: Int64(content.count), digests: [digest])
                group.addTask { try await store.install("m") }
            }
            let watcher = try store(address, in: folder, size: Int64(content.count), digests: [digest])
            try await Task.sleep(for: .milliseconds(300))
            #expect(watcher.status(of: "m").state == .downloading)
            #expect { try watcher.remove("m") } throws: { ($0 as? StenoError)?.code == .modelStoreBusy }
            for try await path in group { #expect(existing(path) == content) }
        }
        #expect(server.requests("slow").count == before + 1)
    }

    /// Who comes while the last one leaves gets a download.
    @Test func comingAndGoing() async throws {
        let store = try store(address("slow", #function), in: folder, size: Int64(content.count), digests: [digest])
        for _ in 0..<40 {
            let first = Task { try await store.install("m") }
            try await Task.sleep(for: .milliseconds(.random(in: 0...10)))
            async let leaving: Void = first.cancel()
            let log = Log()
            let second = Task {
                defer { log.add(ModelProgress(phase: .unpacking, received: .max)) }
                return try await store.install("m") { log.add($0) }
            }
            _ = await leaving
            while log.all.isEmpty { await Task.yield() }
            if log.all.last?.received == .max { try await #expect(existing(second.value) == content) }
            second.cancel()
            _ = await (first.result, second.result)
        }
        try await #expect(existing(store.install("m")) == content)
    }

    @Test func cancelForAll() async throws {
        let store = try store(address("slow", #function), in: folder, size: Int64(content.count))
        let tasks = (0..<3).map { _ in Task { try await store.install("m") } }
        try await Task.sleep(for: .milliseconds(200))
        store.cancel("m")
        for task in tasks {
            await #expect { try await task.value } throws: { ($0 as? StenoError)?.code == .cancelled }
        }
        // And again.
        try await #expect(existing(store.install("m")) == content)
    }

    @Test func files() async throws {
        try folder.write(content, "mirrored.bin")
        let store = try store("https://example.invalid/a/mirrored.bin", in: folder, digests: [digest]) {
            $0.mirror = "file://" + folder.path("")
            $0.isOffline = true
        }
        try await #expect(existing(store.install("m")) == content)
    }

    @Test func mirror() async throws {
        _ = try address("plain", #function)
        let store = try store("https://example.invalid/a/\(#function).bin", in: folder, digests: [digest]) {
            $0.mirror = "http://127.0.0.1:\(server.port)/plain"
        }
        try await #expect(existing(store.install("m")) == content)
    }

    @Test func offline() async throws {
        let store = try store(address("plain", #function), in: folder) { $0.isOffline = true }
        await #expect { try await store.install("m") } throws: { ($0 as? StenoError)?.code == .modelStoreOffline }
        #expect(store.status(of: "m").reason.contains("offline") && server.requests("plain").count >= 0)
        #expect(!FileManager.default.fileExists(atPath: folder.path("models")))
    }

    @Test func noRoom() async throws {
        let store = try store(address("plain", #function), in: folder, size: 1 << 55)
        let before = server.requests("plain").count
        await #expect { try await store.install("m") } throws: { ($0 as? StenoError)?.code == .modelStoreFull }
        #expect(server.requests("plain").count == before)
    }

    @Test func folderThatCannotBe() async throws {
        try folder.write([], "models")
        let store = try store(address("plain", #function), in: folder)
        await #expect { try await store.install("m") } throws: { ($0 as? StenoError)?.code == .modelStoreFailed }
    }

    @Test func unknownName() async throws {
        let store = try store(address("plain", #function), in: folder)
        #expect(store.status(of: "x").state == .unsupported && store.path(of: "x") == nil)
        await #expect { try await store.install("x") } throws: { ($0 as? StenoError)?.code == .modelUnknown }
        await #expect { try await store.verify("m") } throws: { ($0 as? StenoError)?.code == .modelNotInstalled }
        #expect { try store.remove("m") } throws: { ($0 as? StenoError)?.code == .modelNotInstalled }
    }

    @Test func removing() async throws {
        let store = try store(address("plain", #function), in: folder, digests: [digest])
        try await store.install("m")
        try store.remove("m")
        #expect(store.path(of: "m") == nil && store.status(of: "m").state == .supported)
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path("models/.store"))
        #expect(left == ["m.lock"])
        // What is left of an installation is something to remove.
        try folder.write([1, 2], "models/.store/m.partial")
        try store.remove("m")
        #expect { try store.remove("m") } throws: { ($0 as? StenoError)?.code == .modelNotInstalled }
        try await #expect(existing(store.install("m")) == content)
    }
}
