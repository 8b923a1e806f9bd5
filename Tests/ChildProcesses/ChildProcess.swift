import Glibc

/// A program that runs beside this one, and what it used: for tests and benchmarks of whole programs.
package struct ChildProcess {
    /// How a program ended.
    package struct Outcome: Sendable {
        /// Its exit code, or 128 and the number of the signal that ended it.
        package var status: Int32
        /// Seconds from its start to its end.
        package var wallSeconds: Double
        /// Seconds of all its threads, its own and the system's.
        package var processorSeconds: Double
        /// Bytes of memory at the highest. Never less than this process held at the start.
        package var peakMemory: Int
    }

    package enum Failure: Error {
        case start(String, errno: Int32)
    }

    private let pid: pid_t
    private let start = ContinuousClock.now

    /// - Parameters:
    ///   - arguments: the program's path or its name in PATH, then its arguments.
    ///   - input: the file for its standard input.
    ///   - output: the file for its standard output, made or emptied; `errors` likewise.
    package init(
        _ arguments: [String], input: String = "/dev/null", output: String = "/dev/null", errors: String = "/dev/null"
    ) throws {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe _ = posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o666)
        unsafe posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_TRUNC, 0o666)
        var pointers = unsafe arguments.map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe pointers.indices { unsafe free(pointers[index]) } }
        var pid = pid_t()
        let code = unsafe posix_spawnp(&pid, arguments[0], &actions, nil, &pointers, environ)
        guard code == 0 else { throw Failure.start(arguments[0], errno: code) }
        self.pid = pid
    }

    package func signal(_ number: Int32) { kill(pid, number) }

    /// Blocks until it has ended. To be called once.
    package func wait() -> Outcome {
        var status: Int32 = 0
        var usage = rusage()
        while unsafe wait4(pid, &status, 0, &usage) < 0 && errno == EINTR {}
        let wall = ContinuousClock.now - start
        let signal = status & 0x7F
        return Outcome(
            status: signal == 0 ? (status >> 8) & 0xFF : 128 + signal, wallSeconds: wall / .seconds(1),
            processorSeconds: seconds(usage.ru_utime) + seconds(usage.ru_stime), peakMemory: usage.ru_maxrss * 1024)
    }

    private func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) * 1e-6 }
}

/// A product of the package: it lies beside the program that runs.
package func productPath(_ name: String) -> String {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = unsafe readlink("/proc/self/exe", &buffer, buffer.count)
    let own = String(decoding: buffer.prefix(max(0, count)).map(UInt8.init(bitPattern:)), as: UTF8.self)
    return own.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/") + "/" + name
}
