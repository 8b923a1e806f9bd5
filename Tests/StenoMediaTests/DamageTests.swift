import Foundation
import StenoAudio
import StenoFiles
import StenoMedia
import TestSupport
import Testing

@Suite struct DamageTests {
    let folder: Folder
    let wave: String
    let frameCount = 48_000 * 10

    init() throws {
        folder = try Folder()
        wave = folder.path("x.wav")
        try writeWave(toneChannels(1, seconds: 10, rate: 48_000), channels: 1, rate: 48_000, to: wave)
    }

    private func error(of path: String, _ location: SourceLocation = #_sourceLocation) throws -> StenoError {
        try #require(
            #expect(throws: StenoError.self, sourceLocation: location) { try openAudio(path: path) },
            sourceLocation: location)
    }

    @Test func noAudio() throws {
        try #expect(error(of: folder.path("missing.m4a")).code == .fileNotFound)
        try #expect(error(of: folder.path("")).code == .fileIsDirectory)
        try #expect(error(of: folder.write([], "empty.m4a")).code == .fileEmpty)
        for text in [
            "Hello, this is text.\n", "#EXTM3U\n#EXTINF:10,\n\(wave)\n", "ffconcat version 1.0\nfile '\(wave)'\n",
        ] {
            let error = try error(of: folder.write(text.utf8, "text.m4a"))
            #expect(error.code == .fileNotAudio && error.message.contains("text"))
        }
        let noise = (0..<100_000).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 13) }
        try #expect(error(of: folder.write(noise, "noise.m4a")).code == .fileNotAudio)
        try ffmpeg("-f", "lavfi", "-i", "testsrc=duration=1:size=64x64", "-c:v", "mpeg4", folder.path("silent.mp4"))
        let film = try error(of: folder.path("silent.mp4"))
        #expect(film.code == .fileNotAudio && film.message.contains("without an audio track"))
        let half = try folder.write(Array("fLaC".utf8) + [UInt8](repeating: 0x55, count: 200), "x.flac")
        try #expect(error(of: half).code == .fileDamaged)
    }

    /// A playlist that is no text names another file, which is not opened.
    @Test func filesInFiles() throws {
        let playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n\(wave)\n\u{1}\u{2}\n"
        #expect(throws: StenoError.self) { try openAudio(path: folder.write(playlist.utf8, "x.m3u8")) }
    }

    /// The index lies in front: what is there is read, and the rest is told of.
    @Test(arguments: [0.3, 0.5, 0.9])
    func truncated(share: Double) throws {
        for (name, options) in [("a.m4a", ["-c:a", "aac", "-movflags", "faststart"]), ("a.mkv", ["-c:a", "libopus"])] {
            try tool(["ffmpeg", "-v", "error", "-y", "-i", wave] + options + [folder.path(name)])
            let whole = try contents(of: folder.path(name))
            let path = try folder.write(whole.prefix(Int(Double(whole.count) * share)), "cut-" + name)
            let source = try MediaFileSource(path: path)
            let count = try readAll(source).samples.count
            #expect(abs(Double(count) / Double(frameCount) - share) < 0.25, "\(name): \(count)")
            #expect(source.warnings.contains { $0.kind == .fileWarning && $0.detail.contains("holds \(count)") })
        }
    }

    @Test func withoutItsIndex() throws {
        try ffmpeg("-i", wave, "-c:a", "aac", folder.path("a.m4a"))
        let whole = try contents(of: folder.path("a.m4a"))
        let error = try error(of: folder.write(whole.prefix(whole.count / 2), "cut.m4a"))
        #expect(error.code == .fileDamaged && error.message.contains("index"))
    }

    /// What is damaged in the middle is a gap: what comes after it is at its place.
    @Test func damagedInTheMiddle() throws {
        try ffmpeg("-i", wave, "-c:a", "aac", "-movflags", "faststart", folder.path("a.m4a"))
        var bytes = try contents(of: folder.path("a.m4a"))
        let middle = bytes.count / 2
        for index in middle..<middle + 4000 { bytes[index] = UInt8(truncatingIfNeeded: index &* 31) }
        let source = try MediaFileSource(path: folder.write(bytes, "damaged.m4a"))
        #expect(source.frameCount == Int64(frameCount))
        try #expect(readAll(source).samples.count == frameCount)
        #expect(source.warnings.contains { $0.kind == .fileWarning })
    }

    /// No damage ends in anything but audio or an error.
    @Test func anyDamage() throws {
        let names = ["a.m4a", "a.webm", "a.flv", "a.ts", "a.wma", "a.avi", "a.aac", "a.3gp"]
        for (name, codec) in zip(names, ["aac", "libopus", "aac", "ac3", "wmav2", "pcm_s16le", "aac", "aac"]) {
            try ffmpeg("-i", wave, "-t", "2", "-c:a", codec, folder.path(name))
        }
        var state: UInt64 = 7
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        var read = 0
        for attempt in 0..<400 {
            var bytes = try contents(of: folder.path(names[attempt % names.count]))
            for _ in 0..<(1 + random(20)) {
                bytes[random(attempt % 3 == 0 ? bytes.count : min(1000, bytes.count))] = UInt8(random(256))
            }
            let path = try folder.write(bytes, "damaged")
            guard let source = try? openAudio(path: path) else { continue }
            var buffer = AudioBuffer(format: source.format, frameCapacity: 4000)
            var (frames, reads) = (0, 0)
            while let step = try? source.read(into: &buffer), step != .end, reads < 10_000 {
                frames += buffer.frameCount
                reads += 1
            }
            #expect(reads < 10_000)
            if frames > 0 { read += 1 }
        }
        #expect(read > 50)
    }

    @Test func descriptorsAreClosed() throws {
        try ffmpeg("-i", wave, "-t", "1", "-c:a", "aac", folder.path("a.m4a"))
        let text = try folder.write("text".utf8, "x.txt")
        let folderName = URL(filePath: folder.path("")).lastPathComponent
        for _ in 0..<50 {
            _ = try readAll(openAudio(path: folder.path("a.m4a")))
            _ = try? openAudio(path: text)
            _ = try? openAudio(path: folder.path(""))
        }
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { name in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name))?.contains(folderName)
                == true
        }
        #expect(open.isEmpty)
    }
}
