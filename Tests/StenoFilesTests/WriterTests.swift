import Foundation
import StenoAudio
import TestSupport
import Testing

@testable import StenoFiles

@Suite struct WriterTests {
    let folder: Folder

    init() throws { folder = try Folder() }

    /// Frames of noise in any format.
    private func noiseBuffer(_ format: AudioFormat, frames: Int) -> AudioBuffer {
        var buffer = AudioBuffer(format: format, frameCapacity: frames + 7)
        unsafe buffer.withUnsafeMutableBytes { bytes in
            let random: [UInt8] =
                switch format.sampleFormat {
                case .float32: little(noise(bytes.count / 4, as: Int32.self).map { (Float($0) / 2e9).bitPattern })
                case .float64: little(noise(bytes.count / 8, as: Int32.self).map { (Double($0) / 2e9).bitPattern })
                default: noise(bytes.count)
                }
            unsafe bytes.copyBytes(from: random)
            return frames
        }
        return buffer
    }

    /// The frames as interleaved bytes of each sample.
    private func interleaved(_ buffer: AudioBuffer) -> [[UInt8]] {
        let (channels, size) = (buffer.format.channelCount, buffer.format.sampleFormat.byteCount)
        return unsafe buffer.withUnsafeBytes { bytes in
            (0..<buffer.frameCount * channels).map { index in
                let (frame, channel) = (index / channels, index % channels)
                let at = buffer.format.isInterleaved ? index : channel * buffer.frameCapacity + frame
                return unsafe Array(bytes[at * size..<(at + 1) * size])
            }
        }
    }

    private func write(_ buffer: AudioBuffer, to path: String, type: AudioFileWriter.FileType) throws {
        let writer = try AudioFileWriter(path: path, type: type, format: buffer.format)
        // In uneven parts, the largest longer than the writer's own block.
        var start = 0
        for length in [1, 0, 37, 4500, buffer.frameCount] where start < buffer.frameCount {
            let end = min(start + length, buffer.frameCount)
            try writer.write(buffer.copy(frames: start..<end))
            start = end
        }
        #expect(writer.framesWritten == Int64(buffer.frameCount))
        try writer.synchronize()
        try writer.close()
        try writer.close()
    }

    /// No sample changes on the way through a WAV file: checked against the bytes in the file.
    @Test(arguments: SampleFormat.allCases, [(1, true), (2, true), (3, true), (2, false), (5, false)])
    func wavKeepsEverySample(sampleFormat: SampleFormat, shape: (channels: Int, isInterleaved: Bool)) throws {
        let format = AudioFormat(
            sampleRate: 11_025, channelCount: shape.channels, sampleFormat: sampleFormat,
            isInterleaved: shape.isInterleaved)
        let buffer = noiseBuffer(format, frames: 5_001)
        let path = folder.path("x.wav")
        try write(buffer, to: path, type: .wav)
        let samples = interleaved(buffer).flatMap { sampleFormat == .int24in32 ? Array($0[..<3]) : $0 }
        let file = try contents(of: path)
        let end = file.count - samples.count % 2
        #expect(Array(file[(end - samples.count)..<end]) == samples)
        #expect(little(UInt32(file.count - 8)) == Array(file[4..<8]))
        let source = try AudioFileSource(path: path)
        #expect(source.format.sampleRate == 11_025 && source.format.channelCount == shape.channels)
        #expect(source.frameCount == 5_001 && source.warnings.isEmpty)
    }

    @Test func roundTrip() throws {
        let format = AudioFormat(sampleRate: 48_000, channelCount: 2, sampleFormat: .int16)
        for type in [AudioFileWriter.FileType.wav, .flac] {
            let buffer = noiseBuffer(format, frames: 20_000)
            try write(buffer, to: folder.path("x"), type: type)
            let source = try AudioFileSource(path: folder.path("x"))
            #expect(source.format == format && source.frameCount == 20_000)
            try #expect(readAll(source) == buffer.samples(of: Int16.self))
        }
        let surround = AudioFormat(sampleRate: 48_000, channelLayout: .surround51, sampleFormat: .float32)
        try write(noiseBuffer(surround, frames: 10), to: folder.path("s.wav"), type: .wav)
        try #expect(AudioFileSource(path: folder.path("s.wav")).format == surround)
    }

    @Test(arguments: [SampleFormat.uint8, .int16, .int24, .int24in32], [true, false])
    func flacKeepsEverySample(sampleFormat: SampleFormat, isInterleaved: Bool) throws {
        let format = AudioFormat(
            sampleRate: 16_000, channelCount: 2, sampleFormat: sampleFormat, isInterleaved: isInterleaved)
        let buffer = noiseBuffer(format, frames: 9_000)
        try write(buffer, to: folder.path("x.flac"), type: .flac)
        let expected = interleaved(buffer)
        switch sampleFormat {
        case .uint8:
            let read = try readAll(folder.path("x.flac"), as: Int16.self)
            #expect(read == expected.map { (Int16($0[0]) - 128) << 8 })
        case .int16: try #expect(little(readAll(folder.path("x.flac"), as: Int16.self)) == expected.flatMap(\.self))
        default:
            let read = try readAll(folder.path("x.flac"), as: Int32.self)
            #expect(little(read) == expected.flatMap { [0] + $0[..<3] })
        }
    }

    @Test(arguments: [8000, 12_000, 16_000, 24_000, 48_000])
    func opus(rate: Int) throws {
        let samples = tone(300, frames: rate * 2, rate: rate)
        try write(AudioBuffer(interleaved: samples, sampleRate: rate), to: folder.path("x.opus"), type: .oggOpus)
        let source = try AudioFileSource(path: folder.path("x.opus"))
        #expect(source.codec == "Opus" && source.frameCount == Int64(rate * 2))
        let read = try readAll(source, as: Float.self)
        let worst = (rate / 2..<rate * 3 / 2).map { abs(read[$0] - samples[$0]) }.max()
        try #expect(#require(worst) < 0.1)
    }

    /// A file is whole before its first frame, and without one.
    @Test(arguments: [AudioFileWriter.FileType.wav, .flac])
    func noFrames(type: AudioFileWriter.FileType) throws {
        let path = folder.path("x")
        let format = AudioFormat(sampleRate: 16_000, channelCount: 1, sampleFormat: .int16)
        let writer = try AudioFileWriter(path: path, type: type, format: format)
        try #expect(AudioFileSource(path: path).format.sampleRate == 16_000)
        try writer.close()
        let source = try AudioFileSource(path: path)
        var buffer = AudioBuffer(format: source.format, frameCapacity: 10)
        try #expect(source.read(into: &buffer) == .end)
    }

    @Test(arguments: [AudioFileWriter.FileType.wav, .flac])
    func lastReferenceCloses(type: AudioFileWriter.FileType) throws {
        let format = AudioFormat(sampleRate: 16_000, channelCount: 1, sampleFormat: .int16)
        try AudioFileWriter(path: folder.path("x"), type: type, format: format).write(noiseBuffer(format, frames: 100))
        let source = try AudioFileSource(path: folder.path("x"))
        #expect(source.frameCount == 100 && source.warnings.isEmpty)
    }

    /// What others make of our files.
    @Test func othersReadTheFiles() throws {
        let buffer = noiseBuffer(AudioFormat(sampleRate: 16_000, channelCount: 1, sampleFormat: .int16), frames: 16_000)
        for type in [AudioFileWriter.FileType.wav, .flac] {
            let path = folder.path("x." + type.rawValue)
            try write(buffer, to: path, type: type)
            try tool("sox", "-D", path, "-t", "s16", folder.path("sox.s16"))
            try ffmpeg("-i", path, "-f", "s16le", folder.path("ffmpeg.s16"))
            for tool in ["sox", "ffmpeg"] {
                try #expect(contents(of: folder.path(tool + ".s16")) == little(buffer.samples(of: Int16.self)))
            }
        }
    }

    /// The frames before 4 GiB are a hole in the file, so that it costs no disk.
    @Test func becomesRF64BeyondFourGigabytes() throws {
        let format = AudioFormat(sampleRate: 48_000, channelCount: 2, sampleFormat: .int16)
        let path = folder.path("long.wav")
        let writer = try AudioFileWriter(path: path, type: .wav, format: format)
        writer.framesWritten = (1 << 30) - 1000
        let buffer = noiseBuffer(format, frames: 500)
        try writer.write(buffer)
        try #expect(Array(bytes(ofFirst: 4, in: path)) == Array("RIFF".utf8))
        try writer.write(buffer)
        try writer.write(buffer)
        try writer.close()
        try #expect(Array(bytes(ofFirst: 4, in: path)) == Array("RF64".utf8))
        let source = try AudioFileSource(path: path)
        #expect(source.frameCount == (1 << 30) + 500 && source.warnings.isEmpty)
        #expect(source.container == "RF64 (RIFF 64)")
        let probed = try tool("ffprobe", "-v", "error", "-show_entries", "stream=duration_ts", "-of", "csv=p=0", path)
        #expect(probed == "\((1 << 30) + 500)\n")
    }

    private func bytes(ofFirst count: Int, in path: String) throws -> Data {
        try #require(try FileHandle(forReadingFrom: URL(filePath: path)).read(upToCount: count))
    }

    @Test(arguments: [
        (AudioFileWriter.FileType.flac, 16_000, 1, SampleFormat.float32, "int24"),
        (.flac, 16_000, 9, .int16, "8 channels"),
        (.oggOpus, 44_100, 1, .int16, "48000"), (.oggOpus, 16_000, 6, .int16, "1 or 2 channels"),
        (.oggOpus, 16_000, 1, .muLaw, "linear"), (.wav, 16_000, 20_000, .float32, "65535"),
    ])
    func unsupported(
        type: AudioFileWriter.FileType, rate: Int, channels: Int, sampleFormat: SampleFormat, message: String
    ) throws {
        let format = AudioFormat(sampleRate: rate, channelCount: channels, sampleFormat: sampleFormat)
        let path = folder.path("x")
        let error = #expect(throws: StenoError.self) { try AudioFileWriter(path: path, type: type, format: format) }
        #expect(error?.code == .fileUnsupported)
        #expect(error?.message.contains(message) == true && error?.message.contains("\(rate) Hz") == true)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func misuseIsAnError() throws {
        let format = AudioFormat(sampleRate: 8000, channelCount: 1, sampleFormat: .int16)
        let writer = try AudioFileWriter(path: folder.path("x.wav"), type: .wav, format: format)
        let other = noiseBuffer(AudioFormat(sampleRate: 16_000, channelCount: 1, sampleFormat: .int16), frames: 3)
        #expect { try writer.write(other) } throws: { ($0 as? StenoError)?.code == .invalidArgument }
        try writer.write(noiseBuffer(format, frames: 3))
        try writer.close()
        #expect { try writer.write(noiseBuffer(format, frames: 3)) } throws: {
            ($0 as? StenoError)?.code == .invalidArgument
        }
        #expect { try writer.synchronize() } throws: { ($0 as? StenoError)?.code == .invalidArgument }
        try #expect(AudioFileSource(path: folder.path("x.wav")).frameCount == 3)
        for (path, code) in [
            (folder.path("no/x.wav"), StenoError.Code.fileNotFound), (folder.path(""), .fileIsDirectory),
        ] {
            #expect { try AudioFileWriter(path: path, type: .wav, format: format) } throws: {
                ($0 as? StenoError)?.code == code
            }
        }
    }

    @Test(arguments: AudioFileWriter.FileType.allCases)
    func fullDevice(type: AudioFileWriter.FileType) throws {
        let format = AudioFormat(sampleRate: 8000, channelCount: 1, sampleFormat: .int16)
        #expect {
            let writer = try AudioFileWriter(path: "/dev/full", type: type, format: format)
            for _ in 0..<10 { try writer.write(noiseBuffer(format, frames: 8000)) }
            try writer.close()
        } throws: {
            ($0 as? StenoError)?.code == .diskFull && ($0 as? StenoError)?.nativeCode == Int(ENOSPC)
        }
    }

    /// On a file system of 64 kB: what was written before it was full is read back.
    @Test(.enabled(if: geteuid() == 0, "mounting needs the superuser"), arguments: AudioFileWriter.FileType.allCases)
    func fullDisk(type: AudioFileWriter.FileType) throws {
        let disk = folder.path("disk-" + type.rawValue)
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: false)
        do {
            try tool("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk)
        } catch {
            try Test.cancel("a container without the right to mount")
        }
        defer { _ = try? tool("umount", "-l", disk) }
        let format = AudioFormat(sampleRate: 16_000, channelCount: 3 - (type == .oggOpus ? 2 : 0), sampleFormat: .int16)
        let writer = try AudioFileWriter(path: disk + "/x", type: type, format: format)
        let buffer = noiseBuffer(format, frames: 16_000)
        var failures: [StenoError] = []
        for _ in 0..<60 {
            do { try writer.write(buffer) } catch { failures.append(error) }
        }
        #expect(failures.count > 10)
        #expect(failures.allSatisfy { $0.code == .diskFull && $0.nativeCode == Int(ENOSPC) })
        try writer.close()
        let source = try AudioFileSource(path: disk + "/x")
        var expected: [Int16] = []
        while Int64(expected.count / format.channelCount) < writer.framesWritten + 16_000 {
            expected += buffer.samples(of: Int16.self)
        }
        guard type != .oggOpus else {
            try #expect(readAll(source, as: Float.self).count > Int(writer.framesWritten) - 16_000)
            return
        }
        let read = try readAll(source, as: Int16.self)
        #expect(read == Array(expected[..<read.count]))
        if type == .wav { #expect(read.count == Int(writer.framesWritten) * 3 && source.warnings.isEmpty) }
        // The encoder's block is lost, and no more than that.
        #expect(read.count / 3 > Int(writer.framesWritten) - 2 * 4096)
    }

    /// Law F1: killed at any moment, the file lacks at most the last second.
    @Test(arguments: AudioFileWriter.FileType.allCases)
    func killed(type: AudioFileWriter.FileType) async throws {
        for attempt in 0..<8 {
            let (path, log) = (folder.path("\(type)-\(attempt)"), folder.path("\(type)-\(attempt).log"))
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [
                    path = path as String, log = log as String, type = type as AudioFileWriter.FileType,
                    attempt = attempt as Int
                ] in
                try WriterTests.writeUntilKilled(path: path, log: log, type: type, attempt: attempt)
            }
            let acknowledged = try contents(of: log).count
            try #require(acknowledged > 0)
            let source = try AudioFileSource(path: path)
            // A reader that believes the header, as most do, gets as much.
            if type == .wav { try #expect(declaredFrames(path) > acknowledged * 160 - 16_000) }
            let frames: Int
            if type == .oggOpus {
                frames = try readAll(source, as: Float.self).count
            } else {
                let read = try readAll(source, as: Int16.self)
                #expect(read == (0..<read.count).map { Int16(truncatingIfNeeded: $0 &* 7919) })
                frames = read.count
            }
            #expect(frames > acknowledged * 160 - 16_000, "\(frames) frames of \(acknowledged * 160)")
        }
    }

    /// The frames of 16-bit mono that a WAV header of 80 bytes counts.
    private func declaredFrames(_ path: String) throws -> Int {
        try contents(of: path)[76..<80].reversed().reduce(0) { $0 << 8 | Int($1) } / 2
    }

    /// Writes 10 ms at a time and a byte into `log` after each, until a thread ends the process.
    private static func writeUntilKilled(
        path: String, log: String, type: AudioFileWriter.FileType, attempt: Int
    ) throws {
        let format = AudioFormat(sampleRate: 16_000, channelCount: 1, sampleFormat: .int16)
        let writer = try AudioFileWriter(path: path, type: type, format: format)
        try Data().write(to: URL(filePath: log))
        let handle = try FileHandle(forWritingTo: URL(filePath: log))
        var start = 0
        while true {
            let samples = (start..<start + 160).map { Int16(truncatingIfNeeded: $0 &* 7919) }
            try writer.write(AudioBuffer(interleaved: samples, sampleRate: 16_000))
            try handle.write(contentsOf: Data([1]))
            start += 160
            if start == 160 * (150 + attempt) {
                Thread.detachNewThread {
                    usleep(UInt32.random(in: 0...30_000))
                    kill(getpid(), SIGKILL)
                }
            }
        }
    }
}

extension AudioFileWriter.FileType: Codable {}
