import Foundation
import Steno
import StenoTesting
import StenoWhisper
import Synchronization
import Testing

@Suite("Transcription queue", .timeLimit(.minutes(2)))
struct QueueTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "steno-\(UUID())").path

    private func withFolder(_ body: () async throws -> Void) async throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { remove(folder) }
        try await body()
    }

    /// A transcription of 2 s whose one text is `text`, or that fails; `gate` is called before.
    private func transcription(
        _ text: String?, gate: @escaping @Sendable () -> Void = {}
    ) -> FileTranscription {
        FileTranscription { () throws(StenoError) in
            ScriptedTranscriber { call, session in
                guard case .finish = call else { return }
                gate()
                guard let text else { throw StenoError(.engineFailed, "broken") }
                session.send(.scripted(text, from: 0, to: 2))
            }
        } source: { () throws(StenoError) in
            try ScriptedCaptureDevice(format: ScriptedTranscriber.usualFormat, [.frames(32000)]).open()
        }
    }

    private func end(of id: TranscriptionQueue.ID, in queue: TranscriptionQueue) async -> String {
        var seen: [String] = []
        for await status in await queue.statuses(of: id) { seen.append(name(status)) }
        return seen.last ?? "removed"
    }

    private func name(_ status: TranscriptionQueue.Status?) -> String {
        switch status {
        case .waiting: "waiting"
        case .running: "running"
        case .done: "done"
        case .failed(let error): error.message
        case .cancelled: "cancelled"
        case nil: "removed"
        }
    }

    private func text(_ path: String) throws -> String {
        try JSONReader.read(Data(contentsOf: URL(fileURLWithPath: path))).text
    }

    @Test func placeholdersBecomeTexts() async throws {
        try await withFolder { () async throws in
            let queue = TranscriptionQueue()
            let gate = DispatchSemaphore(value: 0)
            let path = folder + "/memo.json"
            let first = await queue.add(transcription("first") { gate.wait() }, to: path)
            let broken = await queue.add(transcription(nil), to: path)
            let second = await queue.add(transcription("second"), to: path)
            #expect(await name(queue.status(of: first)) == "running")
            #expect(await name(queue.status(of: second)) == "waiting")
            gate.signal()
            #expect(await end(of: first, in: queue) == "done")
            // A failure leaves what is there.
            #expect(await end(of: broken, in: queue) == "broken")
            #expect(await end(of: second, in: queue) == "done")
            #expect(try text(path) == "second")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["memo.json"])
        }
    }

    @Test func theOldTextStaysUntilTheNewOneIsWhole() async throws {
        try await withFolder { () async throws in
            let queue = TranscriptionQueue(jobsAtOnce: 2)
            let gate = DispatchSemaphore(value: 0)
            let path = folder + "/memo.json"
            #expect(await end(of: queue.add(transcription("old"), to: path), in: queue) == "done")
            let new = await queue.add(transcription("new") { gate.wait() }, to: path)
            // The same place, so one after the other; another place, so at once.
            let newest = await queue.add(transcription("newest"), to: path)
            let other = await queue.add(transcription("other"), to: folder + "/other.json")
            #expect(await end(of: other, in: queue) == "done")
            #expect(await name(queue.status(of: newest)) == "waiting")
            #expect(try text(path) == "old")
            await queue.cancel(newest)
            gate.signal()
            #expect(await end(of: new, in: queue) == "done")
            #expect(try text(path) == "new")
            #expect(await end(of: newest, in: queue) == "cancelled")
            await queue.retry(newest)
            #expect(await end(of: newest, in: queue) == "done")
            #expect(try text(path) == "newest")
        }
    }

    @Test func cancelWhileItRuns() async throws {
        try await withFolder { () async throws in
            let queue = TranscriptionQueue()
            let began = DispatchSemaphore(value: 0)
            let gate = DispatchSemaphore(value: 0)
            let path = folder + "/memo.json"
            let id = await queue.add(
                transcription("text") {
                    began.signal()
                    gate.wait()
                }, to: path)
            while began.wait(timeout: .now()) == .timedOut { try await Task.sleep(for: .milliseconds(5)) }
            await queue.cancel(id)
            #expect(await end(of: id, in: queue) == "cancelled")
            gate.signal()
            #expect(!FileManager.default.fileExists(atPath: path))
            await queue.retry(id)
            gate.signal()
            #expect(await end(of: id, in: queue) == "done")
            await queue.remove(id)
            #expect(await name(queue.status(of: id)) == "removed")
            #expect(await end(of: id, in: queue) == "removed")
            #expect(try text(path) == "text")
        }
    }

    @Test func aFolderThatIsNotThere() async throws {
        let queue = TranscriptionQueue()
        let id = await queue.add(transcription("text"), to: folder + "/memo.json")
        for await status in await queue.statuses(of: id) {
            if case .failed(let error) = status { #expect(error.code == .fileNotFound) }
        }
        #expect(await name(queue.status(of: id)).contains("memo.json"))
    }

    /// From the stored recording, with a real engine in place of another.
    @Test func againWithAnotherEngine() async throws {
        try await withFolder { () async throws in
            let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
            let recording = root.appending(path: ".steno/samples/jfk.wav").path
            let model = try WhisperModel(path: root.appending(path: ".steno/models/ggml-tiny.en.bin").path)
            let path = folder + "/memo.vtt"
            let queue = TranscriptionQueue()
            let poor = await queue.add(transcription("rubbish"), to: path, format: .webVTT)
            #expect(await end(of: poor, in: queue) == "done")
            let whisper = FileTranscription(path: recording) { () throws(StenoError) in
                var options = WhisperTranscriber.Options()
                (options.threads, options.beamSize) = (1, 1)
                return try WhisperTranscriber(model: model, options: options)
            }
            let better = await queue.add(whisper, to: path, format: .webVTT)
            #expect(await end(of: better, in: queue) == "done")
            let cues = try WebVTTReader.read(Data(contentsOf: URL(fileURLWithPath: path)))
            let words = cues.map(\.text).joined(separator: " ").replacing("\n", with: " ").lowercased()
            #expect(words.contains("what your country can do for you"))
        }
    }
}
