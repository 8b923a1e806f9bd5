import Foundation
import StenoAudio
import StenoFiles
import StenoMedia
import TestSupport
import Testing

/// Files that ffmpeg wrote.
@Suite struct ReadTests {
    let folder: Folder
    let rate = 48_000
    /// 2.3 s and a bit, in no whole milliseconds, of noise that can be found again.
    let wave: String
    let samples: [Float]

    init() throws {
        folder = try Folder()
        wave = folder.path("x.wav")
        var state: UInt64 = 1
        var smooth: Float = 0
        samples = (0..<110_417).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            smooth = 0.8 * smooth + 0.2 * Float(Int32(truncatingIfNeeded: state >> 32)) / 0x1p31
            return smooth
        }
        try writeWave(samples, channels: 1, rate: rate, to: wave)
    }

    /// Length and start are those of what went into the encoder.
    @Test(arguments: [
        ("a.m4a", "aac", "aac"), ("a.mp4", "aac", "aac"), ("a.mov", "aac", "aac"), ("a.webm", "libopus", "opus"),
        ("a.mkv", "libopus", "opus"), ("b.mov", "pcm_s16le", "pcm_s16le"), ("a.wma", "wmav2", "wmav2"),
        ("a.ac3", "ac3", "ac3"), ("a.aac", "aac", "aac"), ("flac.mkv", "flac", "flac"), ("a.ts", "ac3", "ac3"),
        ("a.flv", "aac", "aac"), ("a.avi", "ac3", "ac3"), ("a.nut", "pcm_s16le", "pcm_s16le"),
        ("a.ogg", "libopus", "opus"),
        ("a.wv", "wavpack", "wavpack"), ("a.3gp", "aac", "aac"), ("a.mpg", "mp2", "mp2"), ("a.asf", "wmav2", "wmav2"),
    ])
    func whole(name: String, encoder: String, codec: String) throws {
        let path = folder.path(name)
        try ffmpeg("-i", wave, "-c:a", encoder, "-b:a", "128k", path)
        let source = try MediaFileSource(path: path)
        #expect(source.format.sampleRate == rate && source.format.channelLayout == .mono)
        #expect(source.tracks.map(\.codec) == [codec])
        let content = try readAll(source)
        #expect(source.warnings.isEmpty && content.gaps.isEmpty)
        #expect(source.framesRead == Int64(content.samples.count))
        // MP4, QuickTime and Matroska say where the audio is; in the others the encoder's delay stays.
        if ["m4a", "mp4", "mov", "3gp", "webm", "mkv"].contains(name.split(separator: ".").last) {
            // ffmpeg writes the length into an MP4 file in whole milliseconds.
            #expect(abs(content.samples.count - samples.count) <= (codec == "aac" ? rate / 1000 : 0))
            let declared = try #require(source.frameCount)
            #expect(abs(Int(declared) - samples.count) <= (codec == "aac" ? rate / 1000 : rate / 50))
            let part = Array(samples[20_000..<24_000])
            #expect(offset(of: part, in: content.samples, range: 18_000..<22_000) == 20_000)
        } else {
            // WMA's encoder drops what does not fill a block.
            #expect(
                (samples.count - (codec == "wmav2" ? 4096 : 0)..<samples.count + 4096).contains(content.samples.count))
        }
    }

    /// What phones record, bare and in their container, in all modes of the codec. Here sox has its encoder.
    @Test(arguments: 0...7)
    func amr(mode: Int) throws {
        let (bare, contained, spoken) = (folder.path("a.amr"), folder.path("a.3gp"), folder.path("8k.wav"))
        let jfk = root.appending(path: ".steno/samples/jfk.wav").path
        try tool(["sox", jfk, "-r", "8000", "-c", "1", spoken, "pad", "0", "2"])
        try tool(["sox", spoken, "-t", "amr-nb", "-C", "\(mode)", bare])
        try ffmpeg("-i", bare, "-c:a", "copy", contained)
        let speech = try readAll(openAudio(path: spoken)).samples
        let part = Array(speech[26_000..<30_000])
        for path in [bare, contained] {
            let source = try MediaFileSource(path: path)
            #expect(source.tracks.map(\.codec) == ["amr_nb"])
            #expect(source.format.sampleRate == 8000 && source.format.channelLayout == .mono)
            let content = try readAll(source)
            #expect(content.samples.count == 104_000 && source.warnings.isEmpty)
            // The encoder sends nothing in pauses, of which there is one at the end.
            #expect(content.gaps.last?.upperBound == 104_000)
            for gap in content.gaps {
                let loudest = speech[gap.lowerBound..<gap.upperBound].map(abs).max() ?? 0
                #expect(loudest < 0.05, "\(gap)")
            }
            // The codec hears 5 ms ahead.
            let found = try #require(offset(of: part, in: content.samples, range: 25_800..<26_300))
            #expect((26_000...26_050).contains(found), "\(found)")
        }
        let cat = try PipedProcess(["cat", bare])
        #expect(try readAll(openAudio(descriptor: cat.descriptor)).samples.count == 104_000)
    }

    /// Cutting the same audio otherwise changes nothing.
    @Test func anyCapacity() throws {
        try ffmpeg("-i", wave, "-c:a", "aac", folder.path("a.m4a"))
        let whole = try readAll(MediaFileSource(path: folder.path("a.m4a")), capacity: 1 << 20)
        for capacity in [1, 7, 1023, 1024, 4096] {
            let content = try readAll(MediaFileSource(path: folder.path("a.m4a")), capacity: capacity)
            #expect(content.samples == whole.samples)
        }
    }

    @Test func eightChannels() throws {
        let tones = toneChannels(8, seconds: 2, rate: rate)
        try writeWave(tones, channels: 8, rate: rate, to: folder.path("8.wav"))
        try ffmpeg("-i", folder.path("8.wav"), "-c:a", "aac", "-b:a", "512k", folder.path("8.m4a"))
        let source = try MediaFileSource(path: folder.path("8.m4a"))
        #expect(source.format.channelCount == 8 && source.frameCount == 96_000)
        let content = try readAll(source)
        #expect(content.samples.count == tones.count)
        // Channels of AAC have speakers, and the encoder may take the fourth for bass.
        for channel in 0..<8 where channel != 3 {
            let share = content.share(of: 300 * Double(channel + 1), channel: channel, channels: 8, rate: rate)
            #expect(share > 0.9, "channel \(channel)")
        }
    }

    @Test func channelsBeyondSpeakers() throws {
        let tones = toneChannels(12, seconds: 1, rate: rate)
        try writeWave(tones, channels: 12, rate: rate, to: folder.path("12.wav"))
        try ffmpeg("-i", folder.path("12.wav"), "-c:a", "pcm_s16le", folder.path("12.mov"))
        let content = try readAll(MediaFileSource(path: folder.path("12.mov")))
        #expect(content.samples.count == tones.count)
        for channel in 0..<12 {
            #expect(content.share(of: 300 * Double(channel + 1), channel: channel, channels: 12, rate: rate) > 0.99)
        }
    }

    @Test func twoTracks() throws {
        let path = folder.path("two.mov")
        try ffmpeg(
            "-f", "lavfi", "-i", "testsrc=duration=2:size=64x64", "-f", "lavfi", "-i",
            "sine=440:duration=2:sample_rate=48000", "-f", "lavfi", "-i", "sine=880:duration=2:sample_rate=44100",
            "-map", "0", "-map", "1", "-map", "2", "-c:v", "mpeg4", "-c:a", "aac", "-metadata:s:a:1", "language=fra",
            "-disposition:a:0", "0", "-disposition:a:1", "default", path)
        for (track, frequency, rate) in [(0, 440.0, 48_000), (1, 880.0, 44_100)] {
            let source = try MediaFileSource(path: path, track: track)
            #expect(source.trackIndex == track && source.tracks.count == 2)
            #expect(source.tracks[1].language == "fra" && source.tracks[1].isDefault)
            #expect(source.format.sampleRate == rate)
            let content = try readAll(source)
            #expect(content.samples.count == 2 * rate)
            #expect(content.share(of: frequency, channel: 0, channels: 1, rate: rate) > 0.9)
        }
        try #expect(MediaFileSource(path: path).trackIndex == 1)
        for track in [-1, 2] {
            #expect { try MediaFileSource(path: path, track: track) } throws: {
                ($0 as? StenoError)?.code == .invalidArgument
            }
        }
    }

    /// Audio that begins later than the picture is at its place.
    @Test(arguments: ["late.mov", "late.mkv"])
    func lateTrack(name: String) throws {
        let path = folder.path(name)
        try ffmpeg(
            "-f", "lavfi", "-i", "testsrc=duration=3:size=64x64:rate=10", "-itsoffset", "0.7", "-i", wave, "-map", "0",
            "-map", "1", "-c:v", "mpeg4", "-c:a", "pcm_s16le", path)
        let content = try readAll(MediaFileSource(path: path))
        let gap = try #require(content.gaps.first)
        #expect(gap.lowerBound == 0 && abs(gap.upperBound - 33_600) < 100)
        let part = Array(samples[20_000..<22_000])
        let found = try #require(offset(of: part, in: content.samples, range: 53_000..<54_000))
        #expect(abs(found - 53_600) < 100)
    }

    @Test(arguments: ["a.webm", "a.ts", "a.aac", "f.mp4", "s.mp4"])
    func pipe(name: String) throws {
        let path = folder.path(name)
        let flags = ["f.mp4": "empty_moov+default_base_moof", "s.mp4": "faststart"][name]
        let codec = name.hasSuffix("webm") ? "libopus" : "aac"
        try tool(
            ["ffmpeg", "-v", "error", "-y", "-i", wave, "-c:a", codec] + (flags.map { ["-movflags", $0] } ?? []) + [
                path
            ])
        let whole = try readAll(MediaFileSource(path: path))
        let cat = try PipedProcess(["cat", path])
        let piped = try readAll(openAudio(descriptor: cat.descriptor))
        #expect(piped.samples == whole.samples)
    }

    @Test func pipeWithTheIndexAtItsEnd() throws {
        try ffmpeg("-stream_loop", "9", "-i", wave, "-c:a", "pcm_s16le", folder.path("a.mov"))
        let cat = try PipedProcess(["cat", folder.path("a.mov")])
        #expect { try readAll(openAudio(descriptor: cat.descriptor)) } throws: {
            ($0 as? StenoError)?.code == .fileDamaged
        }
    }

    /// A pipe that says nothing for a while makes nobody wait.
    @Test func slowPipe() throws {
        try ffmpeg("-i", wave, "-c:a", "aac", folder.path("a.aac"))
        let length = try readAll(MediaFileSource(path: folder.path("a.aac"))).samples.count
        let shell = try PipedProcess(["sh", "-c", #"cat "$1"; sleep 1; cat "$1""#, "sh", folder.path("a.aac")])
        let source = try openAudio(descriptor: shell.descriptor)
        var buffer = AudioBuffer(format: source.format, frameCapacity: 4800)
        var (frames, waits) = (0, 0)
        reading: while true {
            switch try source.read(into: &buffer) {
            case .frames: frames += buffer.frameCount
            case .nothing: waits += 1
            case .end: break reading
            default: continue
            }
        }
        #expect(frames == 2 * length && waits > 0)
    }

    @Test func unknownLength() throws {
        try ffmpeg("-i", wave, "-c:a", "libopus", "-live", "1", folder.path("live.webm"))
        try ffmpeg("-i", wave, "-c:a", "aac", folder.path("a.aac"))
        for name in ["live.webm", "a.aac"] {
            let source = try MediaFileSource(path: folder.path(name))
            #expect(source.frameCount == nil && source.duration == nil)
            try #expect(readAll(source).samples.count >= samples.count)
            #expect(source.warnings.isEmpty)
        }
    }

    /// The content decides, never the name.
    @Test func reader() throws {
        try ffmpeg("-i", wave, "-c:a", "aac", folder.path("a.m4a"))
        try FileManager.default.copyItem(atPath: folder.path("a.m4a"), toPath: folder.path("m4a.wav"))
        try FileManager.default.copyItem(atPath: wave, toPath: folder.path("wav.m4a"))
        try #expect(openAudio(path: folder.path("m4a.wav")) is MediaFileSource)
        try #expect(openAudio(path: folder.path("wav.m4a")) is AudioFileSource)
        #expect { try openAudio(path: wave, track: 1) } throws: { ($0 as? StenoError)?.code == .invalidArgument }
        try ffmpeg("-i", wave, "-c:a", "ac3", "-f", "wav", folder.path("ac3.wav"))
        try #expect(readAll(openAudio(path: folder.path("ac3.wav"))).samples.count >= samples.count)
    }

    /// The rate and the channels of the stream change in the middle: everything comes in the first format.
    @Test func formatChange() throws {
        try ffmpeg("-i", wave, "-c:a", "aac", "-f", "adts", folder.path("1.aac"))
        try ffmpeg("-i", wave, "-c:a", "aac", "-ar", "24000", "-ac", "2", "-f", "adts", folder.path("2.aac"))
        let path = try folder.write(contents(of: folder.path("1.aac")) + contents(of: folder.path("2.aac")), "x.aac")
        let source = try MediaFileSource(path: path)
        let content = try readAll(source)
        #expect(source.format == AudioFormat(sampleRate: 48_000, channelCount: 1, sampleFormat: .float32))
        #expect(abs(content.samples.count - 2 * samples.count) < 10_000)
        #expect(source.warnings.contains { $0.detail.contains("24000 Hz") })
    }
}
