import Foundation
import PulseTestServer
import Steno
import StenoMedia
import TestSupport

/// One of the package's programs at work.
struct Program {
    private let child: ChildProcess

    /// - Parameters:
    ///   - output: The file for standard output, and `errors` for standard error; nil throws it away.
    init(
        _ name: String, _ arguments: [String], output: String? = nil, errors: String? = nil,
        environment: [String: String] = [:]
    ) throws {
        // The test bundle lies beside the programs.
        let bundle = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let program = bundle.appending(path: name).path
        let shell = #"errors=$1; shift; exec "$@" 2>"$errors""#
        var environment: [String: String?] = environment
        environment["STENO_MODELS"] = root.appending(path: ".steno/models").path
        child = try ChildProcess(
            ["/bin/sh", "-c", shell, "sh", errors ?? "/dev/null", program] + arguments, environment: environment,
            output: output)
    }

    /// Returns when the file holds the text, and throws when the program ended before.
    func wait(for wanted: String, in path: String) async throws {
        while !text(of: path).contains(wanted) {
            if kill(child.identifier, 0) != 0 { throw Ended(status: wait(), messages: text(of: path)) }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    struct Ended: Error {
        var status: Int32
        var messages: String
    }

    /// The exit code; above 128, the signal that ended it.
    func wait() -> Int32 {
        let status = child.wait()
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }

    func killNow() { _ = end(by: SIGKILL) }

    func signal(_ number: Int32) { child.signal(number) }

    func end(by signal: Int32) -> Int32 {
        child.signal(signal)
        return wait()
    }
}

/// Empty where there is no file yet.
func text(of path: String) -> String {
    String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
}

/// All samples of a file, which must be readable to its end.
func samples(of path: String) throws -> [Int16] {
    let file = try openAudio(path: path)
    var buffer = AudioBuffer(format: file.format, frameCapacity: 65536)
    var samples: [Int16] = []
    while try file.read(into: &buffer) == .frames {
        switch file.format.sampleFormat {
        case .int16: samples += buffer.samples(of: Int16.self)
        case .int32: samples += buffer.samples(of: Int32.self).map { Int16(truncatingIfNeeded: $0 >> 16) }
        default: samples += buffer.samples(of: Float.self).map { Int16(max(-1, min(1, $0)) * 32767) }
        }
    }
    return samples
}

func write(_ samples: [Int16], to path: String, sampleRate: Int, channelLayout: ChannelLayout) throws {
    let buffer = AudioBuffer(interleaved: samples, sampleRate: sampleRate, channelLayout: channelLayout)
    let file = try AudioFileWriter(path: path, type: .wav, format: buffer.format)
    try file.write(buffer)
    try file.close()
}
