import Foundation
import StenoAudio
import StenoTranscript

/// A file in which a long ``FileTranscription`` keeps what is done, so that one that was interrupted at any moment goes on
/// from there, with the result of one that was not.
///
/// The audio is recognized in sections, each by a new recognizer, cut at the quietest place near their ends. They know
/// nothing of each other but the language of the first text. A section that is done goes to the file, unless it is the
/// last; so audio of one section makes no file. Going on, the audio is read from its start, but not recognized again. The
/// results kept come first, with their times rounded to 100 ns.
///
/// A file that is damaged, or of other audio, another identity or another section length is told of
/// (``FileTranscription/Update/notice(_:)``), not used, and replaced. One that is no checkpoint at all is left alone, and
/// then nothing is kept.
public struct TranscriptionCheckpoint: Sendable, Hashable {
    public var path: String
    /// The audio file, which is known by its size, its modification time and the length that it claims.
    public var audioPath: String
    /// Names all else that the text depends on: the engine, the model and the options.
    public var identity: String
    /// The most that a section has, in seconds, from 1 to 1,000,000.
    public var sectionDuration: Double

    public init(path: String, audioPath: String, identity: String, sectionDuration: Double = 300) {
        self.path = path
        self.audioPath = audioPath
        self.identity = identity
        self.sectionDuration = sectionDuration
    }

    /// Deletes the file, if it is a checkpoint; once the result is safe.
    public func remove() {
        if let data = FileManager.default.contents(atPath: path), CheckpointFile.Header(firstLineOf: data) != nil {
            unsafe _ = unlink(path)
        }
    }
}

/// The file: a header, then a transcript for each section that is done, each on a line of its own. A line is a checksum of
/// all lines up to it, a space, and JSON; so a line that was changed, lost or moved is found.
actor CheckpointFile {
    private let executor = BlockingExecutor(label: "steno.checkpoint")
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    struct Header: Codable, Hashable {
        var format = "steno.checkpoint"
        var version = 1
        var audioSize, audioModifiedSeconds, audioModifiedNanoseconds: Int
        var audioLength: String
        var identity: String
        var sectionDuration: Double
        var sampleRate: Int
    }

    private let path: String
    private let header: Header
    /// The bytes that stand; nil where nothing is kept.
    private var size: Int? = 0
    private var checksum = Checksum()

    /// - Throws: `fileNotFound` and the like where there is no audio.
    init(_ checkpoint: TranscriptionCheckpoint, audioLength: MediaTime?, sampleRate: Int) throws(StenoError) {
        path = checkpoint.path
        var status = stat()
        guard unsafe stat(checkpoint.audioPath, &status) == 0 else {
            throw .system(errno, "looking at", checkpoint.audioPath, otherwise: .fileReadFailed)
        }
        header = Header(
            audioSize: Int(status.st_size), audioModifiedSeconds: status.st_mtim.tv_sec,
            audioModifiedNanoseconds: status.st_mtim.tv_nsec, audioLength: audioLength?.description ?? "unknown",
            identity: checkpoint.identity, sectionDuration: checkpoint.sectionDuration, sampleRate: sampleRate)
    }

    /// The sections that are done, each with its end as its duration; and why the file is not used, where it is not.
    func read() -> (sections: [Transcript], notice: String?) {
        guard let data = FileManager.default.contents(atPath: path), !data.isEmpty else { return ([], nil) }
        guard let found = Header(firstLineOf: data) else {
            size = nil
            return ([], "\(quoted(path)) is no checkpoint; it is left alone, and what is done is not kept")
        }
        guard found == header else {
            return ([], "the checkpoint \(quoted(path)) is of other audio or other settings; all is done anew")
        }
        var sum = Checksum()
        var sections: [Transcript] = []
        // What stands behind the last end of a line was cut off by the interruption.
        let lines = data.split(separator: 10, omittingEmptySubsequences: false).dropLast()
        for (index, line) in lines.enumerated() {
            let json = line.drop { $0 != 0x20 }.dropFirst()
            sum.add(json)
            guard line.elementsEqual(sum.line(json).dropLast()),
                index == 0 || (try? JSONReader.read(json)).map({ sections.append($0) }) != nil
            else { return ([], "the checkpoint \(quoted(path)) is damaged; all is done anew") }
        }
        (checksum, size) = (sum, lines.reduce(0) { $0 + $1.count + 1 })
        return (sections, nil)
    }

    /// Adds a section, on the disk when it returns; or says why nothing more is kept.
    func append(_ section: Transcript) -> String? {
        guard let size else { return nil }
        var text = Data()
        if size == 0 {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            if let json = try? encoder.encode(header) { text += checksum.next(json) }
        }
        var writer = JSONWriter()
        text += checksum.next(Data(writer.write(section).utf8.filter { $0 != 10 }))
        do throws(StenoError) {
            if size == 0 { try replaceFile(at: path, with: text) } else { try extend(text, from: size) }
            self.size = size + text.count
            return nil
        } catch {
            self.size = nil
            return "what is done is not kept: \(error.message)"
        }
    }

    private func extend(_ text: Data, from size: Int) throws(StenoError) {
        let descriptor = unsafe open(path, O_WRONLY | O_CLOEXEC)
        defer { close(descriptor) }
        guard descriptor >= 0, ftruncate(descriptor, size) == 0, lseek(descriptor, 0, SEEK_END) == size,
            writeAll(text, to: descriptor), fsync(descriptor) == 0
        else { throw .system(errno, "writing", path, otherwise: .fileWriteFailed) }
    }
}

extension CheckpointFile.Header {
    /// Nil where the file is something else.
    init?(firstLineOf data: Data) {
        let json = data.prefix { $0 != 10 }.drop { $0 != 0x20 }.dropFirst()
        guard let header = try? JSONDecoder().decode(Self.self, from: Data(json)), header.format == "steno.checkpoint"
        else { return nil }
        self = header
    }
}

/// FNV-1a over all that was added: against accidents.
private struct Checksum {
    private var value: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func add(_ bytes: Data) { for byte in bytes { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 } }

    func line(_ json: Data) -> Data { Data(String(value, radix: 16).utf8) + [0x20] + json + [10] }

    mutating func next(_ json: Data) -> Data {
        add(json)
        return line(json)
    }
}
