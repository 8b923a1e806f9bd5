import Foundation
import StenoAudio
import StenoFiles
import TestSupport

extension Folder {
    func write(_ bytes: [UInt8]) throws -> String { try write(bytes, "x.wav") }
}

func ffmpeg(_ arguments: String...) throws { try tool(["ffmpeg", "-v", "error", "-y", "-bitexact"] + arguments) }

/// All samples of a source, interleaved, read `capacity` frames at a time.
func readAll<S: AudioSample>(
    _ source: AudioFileSource, as type: S.Type = S.self, capacity: Int = 1000
) throws -> [S] {
    var buffer = AudioBuffer(format: source.format, frameCapacity: capacity)
    var samples: [S] = []
    while true {
        switch try source.read(into: &buffer) {
        case .frames: samples += buffer.samples(of: S.self)
        case .end: return samples
        case .nothing, .gap, .notice: continue
        }
    }
}

func readAll<S: AudioSample>(_ path: String, as type: S.Type = S.self) throws -> [S] {
    try readAll(AudioFileSource(path: path))
}

/// Samples that differ from their neighbours and are the same every time.
func noise<S: FixedWidthInteger>(_ count: Int, as type: S.Type = S.self, seed: UInt64 = 1) -> [S] {
    var state = seed
    return (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return S(truncatingIfNeeded: state >> 33 ^ state >> 24)
    }
}

func tone(_ frequency: Double, frames: Int, rate: Int, amplitude: Double = 0.5) -> [Float] {
    (0..<frames).map { Float(amplitude * sin(2 * .pi * frequency * Double($0) / Double(rate))) }
}

/// A hand-made WAV file.
struct Wave {
    var id = "RIFF"
    var riffSize: UInt32?
    /// Chunks before the format chunk.
    var first: [UInt8] = []
    var format = Wave.pcm(bits: 16)
    /// Chunks between format and data.
    var middle: [UInt8] = []
    var data: [UInt8] = []
    var dataSize: UInt32?
    /// What follows the data, its pad byte too.
    var rest: [UInt8] = []

    var bytes: [UInt8] {
        let body =
            Array("WAVE".utf8) + first + Wave.chunk("fmt ", format) + middle + Array("data".utf8)
            + little(dataSize ?? UInt32(data.count)) + data + rest
        return Array(id.utf8) + little(riffSize ?? UInt32(body.count)) + body
    }

    static let rate = 8000

    static func pcm(tag: UInt16 = 1, channels: UInt16 = 1, bits: UInt16, extra: [UInt8] = []) -> [UInt8] {
        let frame = channels * (bits / 8)
        return little(tag) + little(channels) + little(UInt32(rate)) + little(UInt32(rate) * UInt32(frame))
            + little(frame) + little(bits) + extra
    }

    static func extensible(
        _ tag: UInt16, channels: UInt16 = 1, bits: UInt16, validBits: UInt16? = nil, mask: UInt32 = 4
    ) -> [UInt8] {
        let guid: [UInt8] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]
        let extra = little(UInt16(22)) + little(validBits ?? bits) + little(mask) + little(tag) + guid
        return pcm(tag: 0xFFFE, channels: channels, bits: bits, extra: extra)
    }

    static func chunk(_ id: String, _ body: [UInt8]) -> [UInt8] {
        Array(id.utf8) + little(UInt32(body.count)) + body
    }
}

func little<I: FixedWidthInteger>(_ values: I...) -> [UInt8] { little(values) }

func little<I: FixedWidthInteger>(_ values: [I]) -> [UInt8] {
    values.flatMap { value in (0..<I.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
}
