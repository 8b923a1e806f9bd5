import Foundation
import StenoAudio
import StenoFiles
import TestSupport
import Testing

@Suite struct ErrorTests {
    let folder: Folder

    init() throws { folder = try Folder() }

    private func error(of path: String, _ location: SourceLocation = #_sourceLocation) throws -> StenoError {
        try #require(
            #expect(throws: StenoError.self, sourceLocation: location) { try AudioFileSource(path: path) },
            sourceLocation: location)
    }

    @Test func system() throws {
        let missing = try error(of: folder.path("not here.wav"))
        #expect(missing.code == .fileNotFound && missing.nativeCode == Int(ENOENT))
        #expect(missing.message.contains("not here.wav"))
        try #expect(error(of: folder.path("")).code == .fileIsDirectory)
        try #expect(error(of: folder.write([])).code == .fileEmpty)
        #expect(throws: StenoError.self) { try AudioFileSource(descriptor: -1) }
    }

    /// In a process of its own, because the superuser, who may read everything, has to become someone else.
    @Test func permission() async throws {
        let path = try folder.write([1, 2, 3])
        unsafe chmod(path, 0)
        await #expect(processExitsWith: .success) { [path = path as String] in
            if geteuid() == 0 { try #require(seteuid(65534) == 0) }
            let read = #expect(throws: StenoError.self) { try AudioFileSource(path: path) }
            #expect(read?.code == .filePermissionDenied && read?.nativeCode == Int(EACCES))
            let format = AudioFormat(sampleRate: 8000, channelCount: 1, sampleFormat: .int16)
            let write = #expect(throws: StenoError.self) { try AudioFileWriter(path: path, type: .wav, format: format) }
            #expect(write?.code == .filePermissionDenied)
        }
    }

    @Test(arguments: [
        ("Hello, this is text.\nÄ second line.\n", "text"), ("%PDF-1.7\n%", "PDF"), ("PK\u{3}\u{4}\u{14}\0\0", "ZIP"),
        ("  <!DOCTYPE html>\n<html>", "HTML"), ("version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS"),
        ("\u{7F}ELF\u{2}\u{1}\u{1}\0", "ELF"), ("GIF89a\0\0\0", "GIF"),
        ("\0\u{1}\u{2}\u{3}nothing known", "unknown kind"),
    ])
    func notAudio(content: String, what: String) throws {
        let error = try error(of: folder.write(Array(content.utf8)))
        #expect(error.code == .fileNotAudio)
        #expect(error.message.contains(what) && error.message.contains("expected"))
        #expect(error.nativeCode != nil)
    }

    @Test func images() throws {
        let magics: [([UInt8], String)] = [
            ([0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10], "PNG"), ([0xFF, 0xD8, 0xFF, 0xE0], "JPEG"),
        ]
        for (magic, what) in magics {
            let error = try error(of: folder.write(magic + [UInt8](repeating: 0, count: 100)))
            #expect(error.code == .fileNotAudio && error.message.contains(what))
        }
    }

    @Test(arguments: [("a.m4a", "aac", "MP4"), ("a.webm", "libopus", "Matroska"), ("a.aac", "aac", "AAC")])
    func needsAnotherBackEnd(name: String, codec: String, what: String) throws {
        try ffmpeg("-f", "lavfi", "-i", "sine=duration=1:sample_rate=48000", "-c:a", codec, folder.path(name))
        let error = try error(of: folder.path(name))
        #expect(error.code == .fileUnsupported)
        #expect(error.message.contains(what))
    }

    @Test func damaged() throws {
        for magic in ["fLaC", "OggS", "FORM\0\0\0\0AIFF", ".snd", "RIFF\0\0\0\0WAVE"] {
            let bytes = Array(magic.utf8) + [UInt8](repeating: 0x55, count: 200)
            try #expect(error(of: folder.write(bytes)).code == .fileDamaged, "\(magic)")
        }
    }

    /// Case 039: a fault after real audio is the end with a warning, one at the first read the failure of the whole.
    @Test func faultInTheMiddleOfAFile() throws {
        let path = folder.path("a.flac")
        try tool("sox", "-n", "-r", "16000", "-b", "16", path, "synth", "4", "whitenoise")
        let whole = try contents(of: path)
        let cut = try folder.write(Array(whole[..<(whole.count / 2)]), "cut.flac")
        let source = try AudioFileSource(path: cut)
        #expect(source.frameCount == 64_000)
        let count = try readAll(source, as: Int16.self).count
        #expect((25_000...33_000).contains(count))
        #expect(source.warnings.count == 1)
        #expect(source.warnings.first?.range.start == MediaTime(frames: Int64(count), sampleRate: 16_000))

        var broken = whole
        for index in whole.indices where index > 200 { broken[index] = 0 }
        let silent = try folder.write(broken, "broken.flac")
        #expect { try readAll(silent, as: Int16.self) } throws: { ($0 as? StenoError)?.code == .fileDamaged }
    }

    /// Wherever a file is cut off before its second frame, it is damaged or holds its first frame: never empty.
    @Test func cutOffAtTheStart() throws {
        let path = folder.path("a.flac")
        try tool("sox", "-n", "-r", "16000", "-b", "16", path, "synth", "4", "whitenoise")
        let whole = try contents(of: path)
        for end in [5, 20, 41, 42, 43, 60, 90, 120, 1000, 4000, 7000] {
            let cut = try folder.write(Array(whole[..<end]), "\(end).flac")
            #expect { try readAll(cut, as: Int16.self) } throws: { error in
                (error as? StenoError)?.code == .fileDamaged
            }
        }
    }

    @Test func readFailure() throws {
        // The memory of a process is a file whose first page cannot be read.
        let error = try error(of: "/proc/self/mem")
        #expect(error.code == .fileReadFailed || error.code == .fileEmpty)
    }

    /// Case 063.
    @Test func namesOfAnyKind() throws {
        for name in ["two  spaces (1).wav", "ü—日本.wav", "a'b\"c.wav", "line\nbreak.wav", "-v.wav", "*?$(x);.wav"] {
            let path = try folder.write(Wave(data: [1, 0, 2, 0]).bytes, name)
            let source = try AudioFileSource(path: path)
            #expect(source.name == path)
            try #expect(readAll(source, as: Int16.self) == [1, 2])
            // A message stays on one line.
            let message = try error(of: path + "x").message
            #expect(!message.contains("\n"))
        }
    }

    @Test func descriptorsAreClosed() throws {
        let audio = try folder.write(Wave(data: [1, 0]).bytes)
        let text = try folder.write(Array("text".utf8), "x.txt")
        // Other tests open files at the same time, so only what points into this folder counts.
        func open() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { name in
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name)
                return target?.contains(folder.url.lastPathComponent) == true
            }.count
        }
        for _ in 0..<200 {
            let _: [Int16] = try readAll(audio)
            _ = try? AudioFileSource(path: text)
            _ = try? AudioFileSource(path: folder.path(""))
            try AudioFileWriter(
                path: folder.path("y.flac"), type: .flac,
                format: AudioFormat(sampleRate: 8000, channelCount: 1, sampleFormat: .int16)
            ).close()
        }
        try #expect(open() == 0)
    }
}
