import Foundation
import Steno
import StenoVosk
import Testing

/// A long transcription goes on where it was killed, with an engine that has its own idea of utterances and times.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ResumeTests {
    private let folder: URL
    private var audio: String { folder.appending(path: "long.wav").path }

    init() throws { folder = try Fixture.temporaryFolder() }

    /// The transcript, and how many sections were heard.
    private static func run(audio: String, checkpoint: String) async throws -> (transcript: Transcript, heard: Int) {
        let model = try Fixture.steadyModel.get()
        let heard = Lock(0)
        let transcription = FileTranscription(
            path: audio,
            checkpoint: TranscriptionCheckpoint(path: checkpoint, audioPath: audio, identity: "ko", sectionDuration: 5)
        ) { () throws(StenoError) in
            heard.withLock { $0 += 1 }
            return try VoskTranscriber(model: model, options: VoskTranscriber.Options())
        }
        return (try await transcription.run(), heard.withLock { $0 })
    }

    private static func lines(of path: String) -> Int {
        FileManager.default.contents(atPath: path)?.count { $0 == 10 } ?? 0
    }

    @Test func killed() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let spoken = try speech("조금만 생각을 하면서 살면") + silence(seconds: 2)
        let samples = Array(repeatElement(spoken, count: 16000 * 35 / spoken.count + 1).joined())
        let buffer = AudioBuffer(interleaved: samples, sampleRate: 16000)
        let writer = try AudioFileWriter(path: audio, type: .wav, format: buffer.format)
        try writer.write(buffer)
        try writer.close()

        let whole = try await Self.run(audio: audio, checkpoint: folder.appending(path: "whole").path)
        #expect(whole.heard >= 7 && whole.transcript.segments.count >= whole.heard)
        let kept = folder.appending(path: "kept").path
        for sections in [1, 3] {
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [audio = audio as String, kept = kept as String, sections = sections as Int] in
                Thread.detachNewThread {
                    while Self.lines(of: kept) <= sections { usleep(1000) }
                    usleep(.random(in: 0...300_000))
                    kill(getpid(), SIGKILL)
                }
                _ = try await Self.run(audio: audio, checkpoint: kept)
                sleep(10)
            }
            #expect(Self.lines(of: kept) > sections)
        }
        let rest = try await Self.run(audio: audio, checkpoint: kept)
        #expect(rest.heard <= whole.heard - 3)
        #expect(rest.transcript == whole.transcript)
    }
}
