import Foundation
import StenoAudio
import StenoFiles
import TestSupport
import Testing

/// Input that comes in its own time and cannot be read twice.
@Suite struct PipeTests {
    let folder: Folder

    init() throws { folder = try Folder() }

    /// Both ends of a pipe; the writing one is closed at the end.
    private final class Ends {
        let pipe = Pipe()
        var reader: Int32 { pipe.fileHandleForReading.fileDescriptor }
        func write(_ bytes: [UInt8]) throws { try pipe.fileHandleForWriting.write(contentsOf: Data(bytes)) }
        func finish() throws { try pipe.fileHandleForWriting.close() }
    }

    @Test func liveAudioComesAtOnceAndSilenceIsNothing() throws {
        let ends = Ends()
        let samples: [Int16] = noise(3000)
        let first = Array(samples[..<1000])
        let head = Wave(dataSize: .max).bytes
        try ends.write(head + little(first) + [0x17])
        let source = try AudioFileSource(descriptor: ends.reader)
        #expect(source.frameCount == nil)
        var buffer = AudioBuffer(format: source.format, frameCapacity: 4096)
        try #expect(source.read(into: &buffer) == .frames)
        #expect(buffer.samples(of: Int16.self) == first)
        // Half a sample is held back until its other half comes.
        let start = ContinuousClock.now
        try #expect(source.read(into: &buffer) == .nothing)
        #expect((.milliseconds(90)...(.seconds(2))).contains(ContinuousClock.now - start))
        try ends.write([0x2A])
        try #expect(source.read(into: &buffer) == .frames)
        #expect(buffer.samples(of: Int16.self) == [0x2A17])
        try ends.finish()
        // A program that another test starts may hold the other end a moment longer.
        var last = CaptureRead.nothing
        for _ in 0..<100 where last == .nothing { last = try source.read(into: &buffer) }
        #expect(last == .end)
    }

    /// Standard input that is a file goes on from where the descriptor stands.
    @Test func seekableDescriptor() throws {
        let samples: [Int16] = noise(100)
        let path = try folder.write([1, 2, 3] + Wave(data: little(samples)).bytes)
        let handle = try FileHandle(forReadingFrom: URL(filePath: path))
        try handle.seek(toOffset: 3)
        try #expect(readAll(AudioFileSource(descriptor: handle.fileDescriptor)) == samples)
        // The descriptor is still open.
        try #expect(handle.seekToEnd() == UInt64(3 + 44 + 200))
    }

    /// Chunks of 3 MB before the audio are skipped in a pipe too.
    @Test func longHeader() throws {
        let samples: [Int16] = noise(100)
        let middle = Wave.chunk("id3 ", [UInt8](repeating: 7, count: 3_000_000))
        let path = try folder.write(Wave(middle: middle, data: little(samples)).bytes)
        let cat = try PipedProcess(["cat", path])
        try #expect(readAll(AudioFileSource(descriptor: cat.descriptor)) == samples)
    }

    /// 100 MB without a declared length. In a process of its own, where nobody else takes memory.
    @Test func endlessInputStaysSmall() async throws {
        let head = try folder.write(Wave(dataSize: 0).bytes)
        await #expect(processExitsWith: .success) { [head = head as String] in
            let cat = try PipedProcess(["sh", "-c", "cat \"$0\"; head -c 100000000 /dev/zero", head])
            let source = try AudioFileSource(descriptor: cat.descriptor)
            var buffer = AudioBuffer(format: source.format, frameCapacity: 4096)
            let before = try residentBytes()
            while try source.read(into: &buffer) != .end {}
            #expect(source.framesRead == 50_000_000)
            try #expect(residentBytes() - before < 8 << 20)
        }
    }

    @Test func emptyPipe() throws {
        let ends = Ends()
        try ends.finish()
        let error = #expect(throws: StenoError.self) { try AudioFileSource(descriptor: ends.reader) }
        #expect(error?.code == .fileEmpty)
    }
}

private func residentBytes() throws -> Int {
    let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")[1]
    return try #require(Int(pages)) * 4096
}
