import Foundation
import StenoAudio
import StenoFiles
import TestSupport
import Testing

/// WAV files whose header is odd (law F2, cases 039 and 051 to 061).
@Suite struct OddWaveTests {
    let folder: Folder
    let samples: [Int16] = noise(8000)

    init() throws { folder = try Folder() }

    /// Reads the file as a file and through a pipe, expects the same of both, and returns the file's source.
    @discardableResult
    func check<S: AudioSample & Equatable>(
        _ wave: [UInt8], holds expected: [S], warns: Bool, pipe: Bool = true,
        _ location: SourceLocation = #_sourceLocation
    ) throws -> AudioFileSource {
        let path = try folder.write(wave)
        let source = try AudioFileSource(path: path)
        try #require(source.format.sampleFormat == S.sampleFormat, sourceLocation: location)
        #expect(try readAll(source) == expected, sourceLocation: location)
        #expect(source.warnings.isEmpty == !warns, "\(source.warnings)", sourceLocation: location)
        #expect(source.warnings.allSatisfy { $0.kind == .fileWarning }, sourceLocation: location)
        if pipe {
            let cat = try PipedProcess(["cat", path])
            let piped = try AudioFileSource(descriptor: cat.descriptor)
            #expect(try readAll(piped) == expected, "through a pipe", sourceLocation: location)
        }
        return source
    }

    @Test(
        arguments: [
            (0, 0), (0, 36), (0, 16036), (0x8000_0000, 0x8000_0024), (0x7FFF_F000, 0x7FFF_F024),
            (0x7FFF_FFFF, 0x7FFF_FFFF),
            (0xFFFF_FFFF, 0xFFFF_FFFF), (0xFFFF_FFFF, 0), (0xFFFF_FFDB, 0xFFFF_FFFF), (0x8000_0000, 0),
        ] as [(UInt32, UInt32)])
    func unknownLength(dataSize: UInt32, riffSize: UInt32) throws {
        let source = try check(
            Wave(riffSize: riffSize, data: little(samples), dataSize: dataSize).bytes, holds: samples, warns: true)
        #expect(source.frameCount == 8000)
        #expect(source.duration == MediaTime(value: 1, timescale: 1))
    }

    @Test func lengthZeroBeforeOtherChunksIsNoAudio() throws {
        let list = Wave.chunk("LIST", Array("INFO".utf8))
        try check(Wave(rest: list).bytes, holds: [Int16](), warns: false, pipe: false)
        let source = try check(Wave().bytes, holds: [Int16](), warns: false)
        #expect(source.frameCount == 0)
    }

    @Test func lengthTooLongEndsWithWarning() throws {
        try check(Wave(data: little(samples), dataSize: 16600).bytes, holds: samples, warns: true)
    }

    @Test func lengthTooShortIsBelieved() throws {
        try check(Wave(data: little(samples), dataSize: 1000).bytes, holds: Array(samples[..<500]), warns: true)
    }

    @Test func truncated() throws {
        let whole = Wave(data: little(samples)).bytes
        try check(Array(whole[..<(44 + 8001)]), holds: Array(samples[..<4000]), warns: true)
        for end in [12, 30, 36, 40] {
            let path = try folder.write(Array(whole[..<end]))
            #expect { try AudioFileSource(path: path) } throws: { ($0 as? StenoError)?.code == .fileDamaged }
        }
    }

    /// A file beyond 4 GiB whose 32-bit length is what is left of it: sparse, so that it costs no disk.
    @Test func wrappedLength() throws {
        var wave = Wave(data: little(samples))
        wave.dataSize = 4000
        let path = try folder.write(wave.bytes)
        let handle = try FileHandle(forUpdating: URL(filePath: path))
        try handle.truncate(atOffset: 44 + 4000 + 4_294_967_296)
        let source = try AudioFileSource(path: path)
        #expect(source.frameCount == 2_147_485_648)
        #expect(source.warnings.count == 1)
    }

    @Test func oddChunkWithAndWithoutPadByte() throws {
        for id in ["LIST", "junk", "xyzw"] {
            let chunk = Wave.chunk(id, Array("INFOx".utf8))
            try check(Wave(middle: chunk + [0], data: little(samples)).bytes, holds: samples, warns: false)
            try check(Wave(middle: chunk, data: little(samples)).bytes, holds: samples, warns: true)
        }
    }

    @Test(arguments: [[0], [0x51], []] as [[UInt8]])
    func odd24BitMono(pad: [UInt8]) throws {
        let values = noise(101, as: Int32.self).map { $0 & ~0xFF }
        let data = values.flatMap { little($0)[1...] }
        let list = Wave.chunk("LIST", Array("INFO".utf8))
        let format = Wave.pcm(bits: 24)
        try check(Wave(format: format, data: data, rest: pad + list).bytes, holds: values, warns: false)
        try check(Wave(format: format, data: data, rest: pad).bytes, holds: values, warns: false)
    }

    @Test func longSizes() throws {
        for id in ["RF64", "BW64"] {
            for (length, warns) in [
                (16000, false), (0, true), (16600, true), (.max, true), (.max / 2, true), (1 << 60 - 1, true),
            ] as [(UInt64, Bool)] {
                let ds64 = Wave.chunk("ds64", little(length &+ 72, length, length / 2) + little(UInt32(0)))
                let wave = Wave(id: id, riffSize: .max, first: ds64, data: little(samples), dataSize: .max)
                let source = try check(wave.bytes, holds: samples, warns: warns)
                #expect(source.container == "RF64 (RIFF 64)")
            }
        }
    }

    @Test func secondDataChunkAndForeignBytesBehindTheAudio() throws {
        let second = Wave.chunk("data", [1, 2, 3, 4])
        try check(Wave(data: little(samples), rest: second).bytes, holds: samples, warns: false)
        let tag = Array("TAG".utf8) + [UInt8](repeating: 0, count: 125)
        try check(Wave(data: little(samples), rest: tag).bytes, holds: samples, warns: true)
    }

    @Test func extensible() throws {
        try check(Wave(format: Wave.extensible(1, bits: 16), data: little(samples)).bytes, holds: samples, warns: false)
        let floats = samples.map { Float($0) / 9000 }
        let data = little(floats.map(\.bitPattern))
        try check(Wave(format: Wave.extensible(3, bits: 32), data: data).bytes, holds: floats, warns: false)
        let wide = samples.map { Int32($0) << 8 }
        let format = Wave.extensible(1, bits: 32, validBits: 24)
        try check(Wave(format: format, data: little(wide)).bytes, holds: wide, warns: false)
    }

    @Test func shortFormatChunks() throws {
        let data = little(samples)
        try check(Wave(format: Array(Wave.pcm(bits: 16)[..<14]), data: data).bytes, holds: samples, warns: true)
        let noSubformat = Wave.pcm(tag: 0xFFFE, bits: 16, extra: [0, 0])
        try check(Wave(format: noSubformat, data: data).bytes, holds: samples, warns: true)
        try check(Wave(format: Wave.pcm(bits: 16, extra: [0, 0]), data: data).bytes, holds: samples, warns: false)
    }

    @Test func everySampleFormat() throws {
        let bytes = (0...255).map { UInt8($0) }
        let centred = bytes.map { (Int16($0) - 128) << 8 }
        try check(Wave(format: Wave.pcm(bits: 8), data: bytes).bytes, holds: centred, warns: false)
        let integers = noise(500, as: Int32.self)
        try check(Wave(format: Wave.pcm(bits: 32), data: little(integers)).bytes, holds: integers, warns: false)
        let doubles = integers.map { Double($0) / 1e9 }
        let data = little(doubles.map(\.bitPattern))
        try check(Wave(format: Wave.pcm(tag: 3, bits: 64), data: data).bytes, holds: doubles, warns: false)
    }

    @Test func unsupportedOnesNameTagAndBits() throws {
        let path = try folder.write(Wave(format: Wave.pcm(tag: 0x161, bits: 16), data: little(samples)).bytes)
        let error = #expect(throws: StenoError.self) { try AudioFileSource(path: path) }
        #expect(error?.code == .fileUnsupported)
        #expect(error?.message.contains("0x161") == true && error?.message.contains("16 bits") == true)
        #expect(error?.nativeCode != nil)
        let ambiguous = try folder.write(Wave(format: Wave.pcm(tag: 0xFFFE, bits: 32, extra: [0, 0])).bytes)
        #expect { try AudioFileSource(path: ambiguous) } throws: { ($0 as? StenoError)?.code == .fileUnsupported }
        for format in [Wave.pcm(channels: 0, bits: 16), Array(Wave.pcm(bits: 16)[..<10])] {
            let path = try folder.write(Wave(format: format, data: little(samples)).bytes)
            #expect { try AudioFileSource(path: path) } throws: { ($0 as? StenoError)?.code == .fileDamaged }
        }
    }

    /// Whatever a header says, reading it ends, without a crash and with no more than the file holds.
    @Test func damagedHeadersAreHarmless() throws {
        let ds64 = Wave.chunk("ds64", little(UInt64(300), 200, 100) + little(UInt32(0)))
        let wave = Wave(
            id: "RF64", riffSize: .max, first: ds64, format: Wave.extensible(1, bits: 16),
            middle: Wave.chunk("LIST", Array("INFOx".utf8)) + [0], data: little(samples[..<100].map(\.self)),
            dataSize: .max)
        let places: [Int] = noise(1600, as: UInt16.self).map { Int($0) % 140 }
        let values: [UInt8] = noise(1600, seed: 2)
        for index in stride(from: 0, to: 1600, by: 4) {
            var bytes = wave.bytes
            for change in index..<index + 1 + index % 4 { bytes[places[change]] = values[change] }
            let path = try folder.write(bytes)
            guard let source = try? AudioFileSource(path: path) else { continue }
            var buffer = AudioBuffer(format: source.format, frameCapacity: 64)
            while let read = try? source.read(into: &buffer), read == .frames {}
            #expect(source.framesRead <= bytes.count * 4, "\(bytes)")
        }
    }
}
