import CMemoryFile
import Foundation
import StenoAudio
import StenoFiles
import StenoModels
import StenoTranscript

// libFuzzer's own main calls this. A finding is a crash, a hang, too much memory, or a check that fails; an error is an
// answer, as long as it says something. FUZZ_TARGET names the parser.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> Int32 {
    do {
        try unsafe target(Array(UnsafeBufferPointer(start: data, count: size)))
    } catch let error as StenoError {
        precondition(!error.message.isEmpty)
    } catch {
        fatalError("no StenoError: \(error)")
    }
    return 0
}

private let target: @Sendable ([UInt8]) throws -> Void =
    switch ProcessInfo.processInfo.environment["FUZZ_TARGET"] {
    case "wave": wave
    case "subtitles": subtitles
    case "transcript": transcript
    case "catalog": catalog
    case let name: fatalError("FUZZ_TARGET is wave, subtitles, transcript or catalog, not \(name ?? "unset")")
    }

// MARK: - WAV

/// A file and a pipe with the same bytes are read to their ends. What is no RIFF is for libsndfile's other parsers, which
/// are not what is tested.
@Sendable private func wave(_ bytes: [UInt8]) throws {
    guard bytes.starts(with: "RI".utf8) || bytes.starts(with: "RF64".utf8) else { return }
    let file = unsafe memfd_create("fuzz", 0)
    defer { close(file) }
    let written = unsafe write(file, bytes, bytes.count)
    precondition(written == bytes.count && lseek(file, 0, SEEK_SET) == 0)
    let fileResult = Result { try read(file) }
    // A pipe holds this much without a reader.
    if bytes.count < 65_536 {
        var ends: [Int32] = [0, 0]
        let code = unsafe pipe(&ends)
        precondition(code == 0)
        defer { close(ends[0]) }
        let written = unsafe write(ends[1], bytes, bytes.count)
        precondition(written == bytes.count)
        close(ends[1])
        _ = try? read(ends[0])
    }
    try fileResult.get()
}

private func read(_ descriptor: Int32) throws {
    let source = try AudioFileSource(descriptor: descriptor)
    precondition(source.format.sampleRate > 0 && source.format.channelCount > 0)
    precondition((source.duration?.value ?? 0) >= 0)
    var buffer = AudioBuffer(format: source.format, frameCapacity: 1024)
    // Few bytes may claim many frames of a compressed codec.
    for _ in 0..<1024 {
        let read = try source.read(into: &buffer)
        if read == .end { break }
        precondition(read != .frames || buffer.frameCount > 0)
    }
    for event in source.events { precondition(!event.detail.isEmpty) }
}

// MARK: - Text

/// What is read is written, and read back equal (law F3).
@Sendable private func subtitles(_ bytes: [UInt8]) throws {
    if let cues = try? WebVTTReader.read(bytes) {
        var writer = WebVTTWriter()
        try check(cues, writer.write(transcript(of: cues)), WebVTTReader.read)
    }
    if let cues = try? SubRipReader.read(bytes) {
        var writer = SubRipWriter()
        try check(cues, writer.write(transcript(of: cues)), SubRipReader.read)
    }
}

private func transcript(of cues: [Cue]) -> Transcript {
    Transcript(segments: cues.map { TranscriptSegment(range: $0.range, text: $0.text) })
}

private func check(_ cues: [Cue], _ text: String, _ read: ([UInt8]) throws(StenoError) -> [Cue]) throws {
    for cue in cues { precondition(!cue.text.isEmpty) }
    let written = try read(Array(text.utf8))
    var maker = CueMaker()
    let made = transcript(of: cues).segments.flatMap { maker.cues(for: $0) }
    precondition(written == made, "what was written is not read back")
    for (a, b) in zip(written, written.dropFirst()) { precondition(a.range.end <= b.range.start) }
    for cue in written { precondition(!cue.range.isEmpty) }
}

@Sendable private func transcript(_ bytes: [UInt8]) throws {
    if let segments = try? JSONLinesReader.read(bytes) {
        var writer = JSONLinesWriter()
        let transcript = Transcript(segments: segments)
        let written = try JSONLinesReader.read(writer.write(transcript).utf8)
        precondition(written == transcript.segments, "what was written is not read back")
    }
    let transcript = try JSONReader.read(bytes)
    var writer = JSONWriter()
    let written = try JSONReader.read(writer.write(transcript).utf8)
    precondition(written.segments == transcript.segments, "what was written is not read back")
}

// MARK: - Catalogue

/// What is accepted is harmless: names that stay in their folder, each of them once.
@Sendable private func catalog(_ bytes: [UInt8]) throws {
    let catalog = try ModelCatalog(json: bytes)
    for entry in catalog.entries {
        precondition(catalog[entry.name] == entry)
        for name in [entry.name, entry.fileName] {
            precondition(!name.contains("/") && !name.hasPrefix(".") && !name.isEmpty)
        }
        for language in entry.languages { precondition(catalog.models(for: language).contains { $0.entry == entry }) }
    }
    precondition(Set(catalog.entries.map(\.fileName)).count == catalog.entries.count)
}
