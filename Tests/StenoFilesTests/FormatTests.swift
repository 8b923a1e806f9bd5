import Foundation
import StenoAudio
import StenoFiles
import TestSupport
import Testing

/// Files that sox and ffmpeg wrote, read from the disk and through a pipe.
@Suite struct FormatTests {
    static let frameCount = 30_000
    static let rate = 44_100
    let folder: Folder
    let wav: String
    /// Stereo, the channels different.
    let samples: [Int16]

    init() throws {
        folder = try Folder()
        let (left, right) = (
            tone(440, frames: Self.frameCount, rate: Self.rate), tone(660, frames: Self.frameCount, rate: Self.rate)
        )
        samples = zip(left, right).flatMap { [Int16($0 * 32767), Int16($1 * 32767)] }
        let format = Wave.pcm(channels: 2, bits: 16)
        let rate = little(UInt32(Self.rate)) + little(UInt32(Self.rate * 4))
        wav = try folder.write(Wave(format: format[..<4] + rate + format[12...], data: little(samples)).bytes)
    }

    /// The file, opened both ways.
    private func bothWays(_ path: String, _ body: (AudioFileSource, Bool) throws -> Void) throws {
        try body(AudioFileSource(path: path), false)
        let cat = try PipedProcess(["cat", path])
        try body(AudioFileSource(descriptor: cat.descriptor), true)
    }

    @Test(arguments: [
        ("a.flac", "FLAC (Free Lossless Audio Codec)"), ("a.aiff", "AIFF (Apple/SGI)"), ("a.au", "AU (Sun/NeXT)"),
        ("a.w64", "W64 (SoundFoundry WAVE 64)"), ("a.caf", "CAF (Apple Core Audio File)"), ("a.wav", "WAV (Microsoft)"),
    ])
    func lossless16Bit(name: String, container: String) throws {
        let path = folder.path(name)
        let codecs = ["a.flac": "flac", "a.aiff": "pcm_s16be", "a.au": "pcm_s16be"]
        try ffmpeg("-i", wav, "-c:a", codecs[name] ?? "pcm_s16le", path)
        try bothWays(path) { source, isPipe in
            #expect(source.container == container)
            #expect(source.codec == "Signed 16 bit PCM")
            #expect(source.format == AudioFormat(sampleRate: Self.rate, channelCount: 2, sampleFormat: .int16))
            #expect(source.frameCount == Int64(Self.frameCount) || isPipe && source.frameCount == nil)
            try #expect(readAll(source) == samples)
            #expect(source.warnings.isEmpty)
        }
    }

    @Test func sphereAndRF64() throws {
        try tool("sox", wav, folder.path("a.sph"))
        try ffmpeg("-i", wav, "-rf64", "always", folder.path("a.rf64.wav"))
        for name in ["a.sph", "a.rf64.wav"] {
            try bothWays(folder.path(name)) { source, _ in try #expect(readAll(source) == samples) }
        }
    }

    /// 24 bits lie in the upper three bytes of `int32`, in every container.
    @Test(arguments: ["wav", "flac", "aiff", "caf", "w64", "au"])
    func lossless24Bit(type: String) throws {
        let values = noise(6000, as: Int32.self).map { $0 & ~0xFF }
        let raw = try folder.write(little(values), "x.s32")
        let path = folder.path("a." + type)
        try tool("sox", "-D", "-t", "s32", "-r", "48000", "-c", "3", raw, "-b", "24", path)
        try bothWays(path) { source, _ in
            #expect(source.format.sampleFormat == .int32)
            try #expect(readAll(source) == values)
        }
    }

    @Test func compandedAndADPCM() throws {
        for (encoding, codec) in [("u-law", "U-Law"), ("a-law", "A-Law")] {
            let path = folder.path(encoding + ".wav")
            try tool("sox", "-D", wav, "-e", encoding, path)
            try tool("sox", "-D", path, "-e", "signed", "-b", "16", "-t", "s16", folder.path("out.s16"))
            let expected = try contents(of: folder.path("out.s16"))
            try bothWays(path) { source, _ in
                #expect(source.codec == codec)
                try #expect(little(readAll(source, as: Int16.self)) == expected)
            }
        }
        for codec in ["ima-adpcm", "ms-adpcm", "gsm-full-rate"] {
            let path = folder.path(codec + ".wav")
            try tool("sox", "-D", wav, "-r", "8000", "-c", "1", "-e", codec, path)
            try bothWays(path) { source, _ in
                let count = try readAll(source, as: Int16.self).count
                #expect(source.frameCount == Int64(count))
                #expect(abs(count - Self.frameCount * 8000 / Self.rate) < 1024)
            }
        }
    }

    @Test(arguments: [
        ("a.mp3", "libmp3lame", "MPEG Layer III"), ("a.ogg", "libvorbis", "Vorbis"), ("a.opus", "libopus", "Opus"),
    ])
    func lossy(name: String, encoder: String, codec: String) throws {
        let path = folder.path(name)
        let rate = encoder == "libopus" ? 48_000 : Self.rate
        try ffmpeg("-i", wav, "-ar", "\(rate)", "-c:a", encoder, "-b:a", "128k", path)
        let frames = (Self.frameCount * rate + Self.rate - 1) / Self.rate
        try bothWays(path) { source, isPipe in
            #expect(source.codec == codec)
            #expect(source.format == AudioFormat(sampleRate: rate, channelCount: 2, sampleFormat: .float32))
            #expect(source.frameCount == Int64(frames) || isPipe && source.frameCount == nil)
            let decoded = try readAll(source, as: Float.self)
            #expect(decoded.count == 2 * frames)
            #expect(source.warnings.isEmpty, "\(source.warnings)")
            for (channel, frequency) in [440.0, 660.0].enumerated() {
                let expected = tone(frequency, frames: frames, rate: rate)
                let worst = (frames / 4..<frames * 3 / 4).map { abs(decoded[2 * $0 + channel] - expected[$0]) }.max()
                #expect(try #require(worst) < 0.05)
            }
        }
    }

    /// Without a Xing header nothing says how long an MP3 file is; a guess is not passed on as a count.
    @Test func mp3WithoutLength() throws {
        let path = folder.path("a.mp3")
        try ffmpeg("-i", wav, "-write_xing", "0", "-id3v2_version", "0", path)
        try bothWays(path) { source, _ in
            #expect(source.frameCount == nil && source.duration == nil)
            try #expect(abs(readAll(source, as: Float.self).count / 2 - Self.frameCount) < 3000)
            #expect(source.warnings.isEmpty)
        }
    }

    /// Each channel carries its own constant, so that a swap is seen.
    @Test(arguments: ["wav", "flac", "caf", "w64", "ogg", "opus"])
    func surroundOrder(type: String) throws {
        let values = (0..<9600).flatMap { _ in (1...6).map { Int16($0 * 3000) } }
        // A tone, because lossy codecs drop a constant.
        let samples = values.indices.map { Int16(Double(values[$0]) * sin(2 * .pi * 300 * Double($0 / 6) / 48_000)) }
        let raw = try folder.write(little(samples), "x.s16")
        let path = folder.path("s." + type)
        let codec = ["ogg": "libvorbis", "opus": "libopus", "flac": "flac"][type] ?? "pcm_s16le"
        try ffmpeg(
            "-f", "s16le", "-ar", "48000", "-ac", "6", "-channel_layout", "5.1", "-i", raw, "-c:a", codec, "-b:a",
            "768k",
            path)
        let source = try AudioFileSource(path: path)
        #expect(source.format.channelLayout == .surround51)
        let decoded: [Float]
        if source.format.sampleFormat == .int16 {
            decoded = try readAll(source, as: Int16.self).map { Float($0) / 32768 }
        } else {
            decoded = try readAll(source)
        }
        for channel in 0..<6 {
            let peak = stride(from: channel, to: decoded.count, by: 6).map { abs(decoded[$0]) }.max() ?? 0
            #expect(abs(peak * 32768 / 3000 - Float(channel + 1)) < 0.35, "channel \(channel): \(peak)")
        }
    }

    @Test func channelsWithoutPositions() throws {
        try tool("sox", "-n", "-r", "8000", "-c", "4", folder.path("a.au"), "trim", "0", "1")
        try #expect(AudioFileSource(path: folder.path("a.au")).format.channelLayout == .discrete(4))
    }

    /// Law T3: how a file is cut changes nothing.
    @Test func chunksAreInvisible() throws {
        try ffmpeg("-i", wav, folder.path("a.mp3"))
        let whole: [Float] = try readAll(AudioFileSource(path: folder.path("a.mp3")), capacity: 100_000)
        for capacity in [1, 7, 1152, 4096] {
            try #expect(readAll(AudioFileSource(path: folder.path("a.mp3")), capacity: capacity) == whole)
            try #expect(readAll(AudioFileSource(path: wav), capacity: capacity) == samples)
        }
    }

    @Test func bufferOfAnotherFormatIsReplaced() throws {
        let source = try AudioFileSource(path: wav)
        var buffer = AudioBuffer(
            format: AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .float32), frameCapacity: 100)
        try #expect(source.read(into: &buffer) == .frames)
        #expect(buffer.format == source.format && buffer.frameCount == 100)
        #expect(source.framesRead == 100)
    }

    @Test func endIsSaidAgain() throws {
        let source = try AudioFileSource(path: wav)
        let _: [Int16] = try readAll(source)
        var buffer = AudioBuffer(format: source.format, frameCapacity: 10)
        for _ in 0..<3 {
            try #expect(source.read(into: &buffer) == .end)
            #expect(buffer.frameCount == 0)
        }
    }
}
