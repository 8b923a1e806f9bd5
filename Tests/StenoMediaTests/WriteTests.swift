import CAllocationCounter
import Foundation
import StenoAudio
import StenoFiles
import StenoMedia
import TestSupport
import Testing

@Suite struct WriteTests {
    let folder: Folder

    init() throws { folder = try Folder() }

    private func write(_ buffer: AudioBuffer, to path: String) throws {
        let writer = try MediaFileWriter(path: path, format: buffer.format)
        var start = 0
        for length in [1, 0, 37, 4500, buffer.frameCount] where start < buffer.frameCount {
            let end = min(start + length, buffer.frameCount)
            try writer.write(buffer.copy(frames: start..<end))
            start = end
        }
        #expect(writer.framesWritten == Int64(buffer.frameCount))
        try writer.close()
        try writer.close()
    }

    /// By ffprobe: the length to the frame, and nothing before the start.
    @Test(arguments: [(48_000, 100_001), (44_100, 44_100), (16_000, 16_385), (8000, 1), (22_050, 1024)])
    func length(rate: Int, frames: Int) throws {
        let path = folder.path("a.m4a")
        let samples = toneChannels(1, seconds: 3, rate: rate).prefix(frames)
        try write(AudioBuffer(interleaved: Array(samples), sampleRate: rate), to: path)
        let probed = try probe(path)
        #expect(probed["codec_name"] == "aac" && probed["sample_rate"] == "\(rate)")
        #expect(probed["time_base"] == "1/\(rate)")
        #expect(probed["duration_ts"] == "\(frames)")
        #expect(probed["start_pts"] == "0" && probed["start_time"] == "0.000000")
        let source = try MediaFileSource(path: path)
        #expect(source.frameCount == Int64(samples.count) && source.warnings.isEmpty)
        try #expect(readAll(source).samples.count == samples.count)
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path(""))
        #expect(left == ["a.m4a"])
    }

    /// What comes out lies where it went in, and sounds like it.
    @Test func sound() throws {
        let rate = 48_000
        var state: UInt64 = 5
        var smooth: Float = 0
        let samples: [Float] = (0..<96_000).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            smooth = 0.9 * smooth + 0.1 * Float(Int32(truncatingIfNeeded: state >> 32)) / 0x1p31
            return smooth
        }
        try write(AudioBuffer(interleaved: samples, sampleRate: rate), to: folder.path("a.m4a"))
        let content = try readAll(openAudio(path: folder.path("a.m4a")))
        let part = Array(samples[40_000..<44_000])
        #expect(offset(of: part, in: content.samples, range: 38_000..<42_000) == 40_000)
    }

    @Test(
        arguments: [SampleFormat.uint8, .int16, .int24, .int24in32, .int32, .float32, .float64], [true, false])
    func formats(sampleFormat: SampleFormat, isInterleaved: Bool) throws {
        let tones = toneChannels(8, seconds: 1, rate: 48_000)
        let format = AudioFormat(
            sampleRate: 48_000, channelCount: 8, sampleFormat: sampleFormat, isInterleaved: isInterleaved)
        var buffer = AudioBuffer(format: format, frameCapacity: 50_000)
        unsafe buffer.withUnsafeMutableBytes { bytes in
            for (index, value) in tones.enumerated() {
                let at = isInterleaved ? index : index % 8 * 50_000 + index / 8
                switch sampleFormat {
                case .uint8: unsafe bytes[at] = UInt8(128 + 127 * value)
                case .int16: unsafe bytes.storeBytes(of: Int16(value * 32767), toByteOffset: 2 * at, as: Int16.self)
                case .int24:
                    let sample = Int32(value * 0x1p22)
                    for byte in 0..<3 { unsafe bytes[3 * at + byte] = UInt8(truncatingIfNeeded: sample >> (8 * byte)) }
                case .int24in32:
                    // The upper byte says nothing.
                    let sample = Int32(value * 0x1p22) & 0xFF_FFFF | 0x5500_0000
                    unsafe bytes.storeBytes(of: sample, toByteOffset: 4 * at, as: Int32.self)
                case .int32: unsafe bytes.storeBytes(of: Int32(value * 0x1p30), toByteOffset: 4 * at, as: Int32.self)
                case .float32: unsafe bytes.storeBytes(of: value, toByteOffset: 4 * at, as: Float.self)
                default: unsafe bytes.storeBytes(of: Double(value), toByteOffset: 8 * at, as: Double.self)
                }
            }
            return 48_000
        }
        try write(buffer, to: folder.path("a.m4a"))
        let source = try MediaFileSource(path: folder.path("a.m4a"))
        let content = try readAll(source)
        #expect(source.format.channelCount == 8 && content.samples.count == tones.count)
        for channel in 0..<8 {
            let share = content.share(of: 300 * Double(channel + 1), channel: channel, channels: 8, rate: 48_000)
            #expect(share > 0.9, "channel \(channel)")
        }
    }

    @Test func unsupported() throws {
        for (rate, channels, sampleFormat) in [(48_000, 9, SampleFormat.int16), (44_000, 1, .int16), (8000, 1, .muLaw)]
        {
            let format = AudioFormat(sampleRate: rate, channelCount: channels, sampleFormat: sampleFormat)
            let path = folder.path("x.m4a")
            let error = #expect(throws: StenoError.self) { try MediaFileWriter(path: path, format: format) }
            #expect(error?.code == .fileUnsupported && error?.message.contains("48000") == true)
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test func misuseAndNoFrames() throws {
        let format = AudioFormat(sampleRate: 16_000, channelCount: 1, sampleFormat: .int16)
        let other = AudioFormat(sampleRate: 8000, channelCount: 1, sampleFormat: .int16)
        let writer = try MediaFileWriter(path: folder.path("x.m4a"), format: format)
        func code(_ body: () throws -> Void) -> StenoError.Code? {
            (#expect(throws: StenoError.self) { try body() })?.code
        }
        #expect(code { try writer.write(.silence(format: other, frameCount: 3)) } == .invalidArgument)
        try writer.close()
        #expect(code { try writer.write(.silence(format: format, frameCount: 3)) } == .invalidArgument)
        #expect(code { _ = try MediaFileWriter(path: folder.path(""), format: format) } == .fileIsDirectory)
        #expect(code { _ = try MediaFileWriter(path: folder.path("no/x"), format: format) } == .fileNotFound)
        #expect(
            code {
                let full = try MediaFileWriter(path: "/dev/full", format: format)
                for _ in 0..<10 { try full.write(.silence(format: format, frameCount: 16_000)) }
                try full.close()
            } == .diskFull)
    }

    /// Law F1: killed at any moment, the file lacks at most the last second.
    @Test func killed() async throws {
        for attempt in 0..<12 {
            let (path, log) = (folder.path("\(attempt).m4a"), folder.path("\(attempt).log"))
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [path = path as String, log = log as String, attempt = attempt as Int] in
                try WriteTests.writeUntilKilled(path: path, log: log, attempt: attempt)
            }
            let acknowledged = try contents(of: log).count
            try #require(acknowledged > 0)
            let source = try MediaFileSource(path: path)
            let content = try readAll(source)
            #expect(content.samples.count > acknowledged * 160 - 16_000, "\(acknowledged)")
            #expect(content.samples.count <= (acknowledged + 1) * 160)
            // A rising tone: what was written at a time is read at that time.
            let heard = content.samples.prefix(16_000).enumerated().filter { abs($0.element) > 0.1 }.first?.offset
            if content.samples.count > 9000 { #expect(abs((heard ?? 0) - 8000) < 100) }
            let decoded = try tool([
                "ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", path,
            ])
            #expect(Double(decoded.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0 > 0)
        }
    }

    /// Writes 10 ms at a time, silence and after half a second a tone, and a byte into `log` after each.
    private static func writeUntilKilled(path: String, log: String, attempt: Int) throws {
        let format = AudioFormat(sampleRate: 16_000, channelCount: 1, sampleFormat: .float32)
        let writer = try MediaFileWriter(path: path, format: format)
        try Data().write(to: URL(filePath: log))
        let handle = try FileHandle(forWritingTo: URL(filePath: log))
        var start = 0
        while true {
            let samples = (start..<start + 160).map { $0 < 8000 ? 0 : Float(0.5 * sin(0.2 * Double($0))) }
            try writer.write(AudioBuffer(interleaved: samples, sampleRate: format.sampleRate))
            try handle.write(contentsOf: Data([1]))
            start += 160
            if start == 160 * (20 + 15 * attempt) {
                Thread.detachNewThread {
                    usleep(UInt32.random(in: 0...30_000))
                    kill(getpid(), SIGKILL)
                }
            }
        }
    }

    /// Also while it is made plain.
    @Test func killedWhileClosing() async throws {
        for attempt in 0..<8 {
            let path = folder.path("\(attempt).m4a")
            await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
                let format = AudioFormat(sampleRate: 48_000, channelCount: 1, sampleFormat: .int16)
                let writer = try MediaFileWriter(path: path, format: format, bitRate: 256_000)
                let second = AudioBuffer(
                    interleaved: (0..<48_000).map { Int16(truncatingIfNeeded: $0 &* $0) }, sampleRate: 48_000)
                for _ in 0..<60 { try writer.write(second) }
                Thread.detachNewThread {
                    usleep(UInt32.random(in: 0...60_000))
                    kill(getpid(), SIGKILL)
                }
                try writer.close()
                sleep(10)
            }
            let source = try MediaFileSource(path: path)
            let count = try readAll(source, capacity: 48_000).samples.count
            #expect(count > 59 * 48_000 && count <= 60 * 48_000 + 1024)
        }
    }

    /// Reading what a packet was decoded to allocates nothing.
    @Test func readingAllocatesNothing() throws {
        guard allocation_count_supported() else { return }
        let samples = toneChannels(2, seconds: 1, rate: 48_000)
        try write(
            AudioBuffer(interleaved: samples, sampleRate: 48_000, channelLayout: .stereo), to: folder.path("a.m4a"))
        let source = try MediaFileSource(path: folder.path("a.m4a"))
        var buffer = AudioBuffer(format: source.format, frameCapacity: 1)
        try #expect(source.read(into: &buffer) == .frames)
        let before = allocation_count_thread()
        for _ in 0..<1000 { _ = try source.read(into: &buffer) }
        #expect(allocation_count_thread() - before == 0)
    }
}
