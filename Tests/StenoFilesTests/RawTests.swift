import Foundation
import StenoAudio
import StenoFiles
import TestSupport
import Testing

@Suite struct RawTests {
    let folder: Folder

    init() throws { folder = try Folder() }

    private func bytes(_ source: RawAudioSource, capacity: Int = 700) throws -> [UInt8] {
        var buffer = AudioBuffer(format: source.format, frameCapacity: capacity)
        var bytes: [UInt8] = []
        while true {
            switch try source.read(into: &buffer) {
            case .frames:
                unsafe buffer.withUnsafeBytes {
                    unsafe bytes += $0[..<(buffer.frameCount * source.format.bytesPerFrame)]
                }
            case .end: return bytes
            default: continue
            }
        }
    }

    /// From a file and through a pipe, in any sample format.
    @Test(arguments: SampleFormat.allCases, [1, 3])
    func everySample(sampleFormat: SampleFormat, channels: Int) throws {
        let format = AudioFormat(sampleRate: 16_000, channelCount: channels, sampleFormat: sampleFormat)
        let content: [UInt8] = noise(format.bytesPerFrame * 30_001)
        let path = try folder.write(content, "x.raw")
        let source = try RawAudioSource(path: path, format: format)
        #expect(source.frameCount == 30_001 && source.format == format)
        try #expect(bytes(source) == content)
        #expect(source.framesRead == 30_001 && source.warnings.isEmpty)
        let cat = try PipedProcess(["cat", path])
        let piped = try RawAudioSource(descriptor: cat.descriptor, format: format)
        #expect(piped.frameCount == nil)
        try #expect(bytes(piped) == content)
    }

    @Test(arguments: [SampleFormat.int16, .int24, .int32, .float64])
    func bigEndian(sampleFormat: SampleFormat) throws {
        let format = AudioFormat(sampleRate: 8000, channelCount: 2, sampleFormat: sampleFormat)
        let content: [UInt8] = noise(format.bytesPerFrame * 1000)
        let size = sampleFormat.byteCount
        let swapped = stride(from: 0, to: content.count, by: size).flatMap { content[$0..<$0 + size].reversed() }
        let source = try RawAudioSource(path: folder.write(swapped), format: format, isBigEndian: true)
        try #expect(bytes(source) == content)
    }

    /// Law F2: what is there is read, and what is no frame is told of.
    @Test func halfAFrameAtTheEnd() throws {
        let format = AudioFormat(sampleRate: 8000, channelCount: 2, sampleFormat: .int16)
        let content: [UInt8] = noise(4 * 100 + 3)
        let path = try folder.write(content)
        let cat = try PipedProcess(["cat", path])
        for source in [
            try RawAudioSource(path: path, format: format),
            try RawAudioSource(descriptor: cat.descriptor, format: format),
        ] {
            try #expect(bytes(source) == Array(content.prefix(400)))
            #expect(source.warnings.count == 1 && source.warnings[0].detail.contains("3 bytes"))
            #expect(source.warnings[0].range.start == MediaTime(frames: 100, sampleRate: 8000))
        }
    }

    @Test func aPipeThatIsSilent() throws {
        let format = AudioFormat(sampleRate: 8000, channelCount: 1, sampleFormat: .int16)
        let shell = try PipedProcess(["sh", "-c", "sleep 1; printf abcd"])
        let source = try RawAudioSource(descriptor: shell.descriptor, format: format)
        var buffer = AudioBuffer(format: format, frameCapacity: 100)
        try #expect(source.read(into: &buffer) == .nothing)
        try #expect(bytes(source) == Array("abcd".utf8))
        let empty = try PipedProcess(["true"])
        let nothing = try RawAudioSource(descriptor: empty.descriptor, format: format)
        let error = #expect(throws: StenoError.self) { try bytes(nothing) }
        #expect(error?.code == .fileEmpty)
    }

    @Test func errors() throws {
        let format = AudioFormat(sampleRate: 8000, channelCount: 2, sampleFormat: .int16)
        let planar = AudioFormat(sampleRate: 8000, channelCount: 2, sampleFormat: .int16, isInterleaved: false)
        func code(_ path: String, _ format: AudioFormat) -> StenoError.Code? {
            (#expect(throws: StenoError.self) { try RawAudioSource(path: path, format: format) })?.code
        }
        try #expect(code(folder.write([1, 2, 3, 4]), planar) == .invalidArgument)
        #expect(
            code(folder.path("missing"), format) == .fileNotFound && code(folder.path(""), format) == .fileIsDirectory)
        try #expect(code(folder.write([]), format) == .fileEmpty)
    }
}
