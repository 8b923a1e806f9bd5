import ExampleSupport
import Steno

/// The text as it is written: created with the first piece, valid after each.
struct Output: ~Copyable {
    private let path: String
    private let format: TranscriptFormat?
    private var writer: any TranscriptWriter
    private var text: TextOutput?
    /// Whether the current file has been begun.
    private(set) var hasBegun = false

    init(path: String, format: TranscriptFormat?) {
        self.path = path
        self.format = format
        writer = Output.makeWriter(format)
    }

    private static func makeWriter(_ format: TranscriptFormat?) -> any TranscriptWriter {
        format?.makeWriter() ?? TextWriter(showsTimes: true)
    }

    mutating func append(_ segment: TranscriptSegment) throws(StenoError) {
        try begin()
        try text?.write(writer.append(segment))
    }

    /// Completes the output of one source; the next one follows it.
    mutating func end(_ transcript: Transcript) throws(StenoError) {
        try begin()
        try text?.write(writer.end(transcript))
        writer = Output.makeWriter(format)
        hasBegun = false
    }

    private mutating func begin() throws(StenoError) {
        guard !hasBegun else { return }
        if text == nil { text = try TextOutput(path: path) }
        hasBegun = true
        try text?.write(writer.begin())
    }
}
