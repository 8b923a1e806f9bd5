public import Foundation
import Synchronization

/// A PulseAudio daemon of a test's own: its socket and its state live in a temporary folder, and it ends with the value,
/// by its process id.
public final class PulseTestServer: Sendable {
    public let folder: URL
    public var socket: String { folder.appending(path: "native").path }
    /// What clients connect to.
    public var address: String { "unix:" + socket }
    private let modules: [String]
    private let daemon = Mutex<ChildProcess?>(nil)

    /// - Parameter modules: What `-L` takes, besides the socket's own module.
    public init(modules: [String]) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "steno-pulse-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        self.modules = modules
        try start()
    }

    deinit {
        kill()
        try? FileManager.default.removeItem(at: folder)
    }

    public func start() throws {
        let socket = "module-native-protocol-unix socket=\(socket) auth-anonymous=1"
        let options = ["-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"]
        let child = try run(["pulseaudio"] + options + ([socket] + modules).flatMap { ["-L", $0] })
        daemon.withLock { $0 = child }
        for _ in 0..<250 {
            if (try? control("info")) != nil { return }
            Thread.sleep(forTimeInterval: 0.02)
        }
        throw Failure(command: ["pulseaudio"], status: 0)
    }

    /// Ends the daemon without any farewell.
    public func kill() {
        guard let child = daemon.withLock({ $0.take() }) else { return }
        child.signal(SIGKILL)
        child.wait()
        try? FileManager.default.removeItem(atPath: socket)
    }

    /// Stops the daemon's process where it is, or lets it go on.
    public func freeze(_ frozen: Bool) { daemon.withLock { $0 }?.signal(frozen ? SIGSTOP : SIGCONT) }

    /// Runs `pactl` and returns the first word or line that it printed, such as the number of a loaded module.
    @discardableResult
    public func control(_ arguments: String...) throws -> String {
        let output = folder.appending(path: UUID().uuidString).path
        let status = try run(["pactl", "-s", address] + arguments, output: output).wait()
        guard status == 0 else { throw Failure(command: arguments, status: status) }
        return try String(contentsOfFile: output, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Starts playing 16-bit samples into a sink, after half a second of zeros: a monitor misses what a sink had
    /// rendered already when a stream began. The player ends with its file or with the daemon.
    public func play(
        _ samples: [Int16], sampleRate: Int = 48_000, channelCount: Int = 2, sink: String
    ) throws {
        let file = folder.appending(path: UUID().uuidString)
        let padded = [Int16](repeating: 0, count: sampleRate / 2 * channelCount) + samples
        try unsafe padded.withUnsafeBytes { unsafe Data($0) }.write(to: file)
        let format = ["--raw", "--format=s16le", "--rate=\(sampleRate)", "--channels=\(channelCount)"]
        _ = try run(["pacat", "-s", address] + format + ["-d", sink, file.path])
    }

    private func run(_ command: [String], output: String? = nil) throws -> ChildProcess {
        let environment = [
            "XDG_RUNTIME_DIR": folder.path, "HOME": folder.path, "PULSE_RUNTIME_PATH": folder.path, "PULSE_SERVER": nil,
        ]
        return try ChildProcess(command, environment: environment, output: output)
    }
}

/// Frames that can be told from each other: the left sample counts from 1, the right one is its negative. Starts again
/// before 32 768, and is never zero.
public func countingFrames(_ count: Int) -> [Int16] {
    (0..<count).flatMap { index -> [Int16] in
        let number = Int16(index % 32_749 + 1)
        return [number, -number]
    }
}
