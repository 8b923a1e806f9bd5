import Foundation
public import Glibc
import Synchronization

/// A program that a test started. `Process` of Foundation waits for ever for others once a child closes the file
/// descriptors that it inherited, as the PulseAudio daemon does. Each child has a thread that waits for it, because one
/// that nobody waited for would stop the exit tests of the same process.
public final class ChildProcess: Sendable {
    public let identifier: pid_t
    private let status = Mutex<Int32?>(nil)
    private let ended = DispatchGroup()

    /// - Parameters:
    ///   - environment: Variables to set, or with nil to leave out.
    ///   - output: The file that standard output goes to; nil throws it away, as what goes to standard error.
    public init(_ command: [String], environment changes: [String: String?] = [:], output: String? = nil) throws {
        var variables: [String] = []
        var next = unsafe environ
        while let entry = unsafe next.pointee {
            let variable = unsafe String(cString: entry)
            if changes[String(variable.prefix { $0 != "=" })] == nil { variables.append(variable) }
            unsafe next += 1
        }
        for (name, value) in changes { if let value { variables.append("\(name)=\(value)") } }

        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 1, output ?? "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        unsafe posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var arguments = unsafe command.map { unsafe strdup($0) } + [nil]
        var environment = unsafe variables.map { unsafe strdup($0) } + [nil]
        defer {
            for index in unsafe arguments.indices { unsafe free(arguments[index]) }
            for index in unsafe environment.indices { unsafe free(environment[index]) }
        }
        var identifier: pid_t = 0
        let status = unsafe posix_spawnp(&identifier, command[0], &actions, nil, &arguments, &environment)
        guard status == 0 else { throw Failure(command: command, status: status) }
        self.identifier = identifier
        ended.enter()
        Thread.detachNewThread { [self] in
            var status: Int32 = 0
            while unsafe waitpid(self.identifier, &status, 0) < 0, errno == EINTR {}
            self.status.withLock { $0 = status }
            ended.leave()
        }
    }

    /// Waits for the end; returns 0 for success.
    @discardableResult
    public func wait() -> Int32 {
        ended.wait()
        return status.withLock { $0 ?? 0 }
    }

    public func signal(_ number: Int32) {
        // Not to a stranger who has the number by now.
        status.withLock { if $0 == nil { _ = kill(identifier, number) } }
    }
}

public struct Failure: Error {
    var command: [String]
    var status: Int32
}
