import Foundation
package import Steno

/// Text on its way to a file or to standard output. Each piece is in the system's hands when ``write(_:)`` returns, and
/// so survives the end of this process.
package struct TextOutput: ~Copyable {
    private let path: String
    private let descriptor: Int32

    /// - Parameter path: Made, or emptied; `-` is standard output.
    /// - Throws: `cannotCreate`.
    package init(path: String) throws(StenoError) {
        self.path = path
        descriptor =
            path == "-" ? STDOUT_FILENO : unsafe Foundation.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw failed(.cannotCreate, "make") }
    }

    deinit { if path != "-" { close(descriptor) } }

    /// - Throws: `outputFailed`.
    package func write(_ text: String) throws(StenoError) {
        guard writeAll(text, to: descriptor) else { throw failed(.outputFailed, "write to") }
    }

    private func failed(_ code: StenoError.Code, _ action: String) -> StenoError {
        let number = errno
        let reason = unsafe String(cString: strerror(number))
        let name = path == "-" ? "standard output" : path
        return StenoError(code, "cannot \(action) \(name): \(reason)", nativeCode: Int(number))
    }
}

/// Prints a whole text to standard output. Returns how a program ends that does nothing else; a failure it has said.
package func printAll(_ text: String, by program: String) -> ExitCode {
    do throws(StenoError) {
        try TextOutput(path: "-").write(text)
        return .done
    } catch {
        Terminal.say("\(program): \(error.message)\n")
        return ExitCode(error)
    }
}

/// Writes all of `text`, in one call where the system takes it so; false when it takes no more.
func writeAll(_ text: String, to descriptor: Int32) -> Bool {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
        let count = unsafe bytes.withUnsafeBytes { unsafe Foundation.write(descriptor, $0.baseAddress, $0.count) }
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { return false }
        bytes = bytes.dropFirst(count)
    }
    return true
}

/// Whether both paths lead to one regular file, which so must not be read and written.
package func isSameFile(_ a: String, _ b: String) -> Bool {
    var (first, second) = (stat(), stat())
    guard unsafe stat(a, &first) == 0, unsafe stat(b, &second) == 0 else { return false }
    return first.st_mode & S_IFMT == S_IFREG && first.st_dev == second.st_dev && first.st_ino == second.st_ino
}
