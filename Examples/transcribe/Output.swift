import Foundation
import Steno

extension StenoError.Code {
    static let outputFailed = StenoError.Code(rawValue: "transcribe.outputFailed")
}

/// The text as it is written: created with the first piece, valid after each.
struct Output {
    let path: String
    private let format: TranscriptFormat?
    private var writer: any TranscriptWriter
    private var descriptor: Int32?
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
        try write(writer.append(segment))
    }

    /// Completes the output of one source; the next one follows it.
    mutating func end(_ transcript: Transcript) throws(StenoError) {
        try begin()
        try write(writer.end(transcript))
        writer = Output.makeWriter(format)
        hasBegun = false
    }

    private mutating func begin() throws(StenoError) {
        guard !hasBegun else { return }
        hasBegun = true
        try write(writer.begin())
    }

    private mutating func write(_ text: String) throws(StenoError) {
        let target: Int32
        if let descriptor { target = descriptor } else { target = try open() }
        descriptor = target
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = unsafe bytes.withUnsafeBytes { unsafe Foundation.write(target, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw failed("write to") }
            bytes = bytes.dropFirst(count)
        }
    }

    private func open() throws(StenoError) -> Int32 {
        if path == "-" { return STDOUT_FILENO }
        let descriptor = unsafe Foundation.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw failed("open") }
        return descriptor
    }

    private func failed(_ action: String) -> StenoError {
        let code = errno
        let reason = unsafe String(cString: strerror(code))
        let name = path == "-" ? "standard output" : path
        return StenoError(.outputFailed, "cannot \(action) \(name): \(reason)", nativeCode: Int(code))
    }
}
