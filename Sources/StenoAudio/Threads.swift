import Glibc

/// Starts a detached thread that runs `body`.
///
/// - Throws: ``StenoError`` with `insufficientResources`.
package func startThread(_ body: @escaping @Sendable () -> Void) throws(StenoError) {
    final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    let box = unsafe Unmanaged.passRetained(Box(body))
    var thread = pthread_t()
    let status = unsafe pthread_create(
        &thread, nil,
        { argument in
            guard let argument = unsafe argument else { return nil }
            unsafe Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
            return nil
        }, box.toOpaque())
    guard status == 0 else {
        unsafe box.release()
        throw StenoError(.insufficientResources, "The system gave no thread.", nativeCode: Int(status))
    }
    pthread_detach(thread)
}

extension Duration {
    /// Whole nanoseconds; exact for 292 years.
    package var nanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}

/// Wakes one waiting thread. Waiting is bounded by a clock that nobody sets.
///
/// A pipe, since `ring()` may be called from the capture thread: one system call, which takes no lock of this process,
/// allocates nothing and cannot block. (A condition variable needs a mutex, and a POSIX semaphore waits by the wall
/// clock.)
final class WakeSignal: Sendable {
    private let readEnd: Int32
    private let writeEnd: Int32

    init() throws(StenoError) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else {
            throw StenoError(
                .insufficientResources, "The system gave no pipe: too many open files?", nativeCode: Int(errno))
        }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    func ring() {
        // A full pipe refuses the byte, and then a wake-up is on its way already.
        var byte: UInt8 = 1
        _ = unsafe write(writeEnd, &byte, 1)
    }

    /// Waits for a ring and takes all that came; false when none came in time.
    func wait(atMost limit: Duration) -> Bool {
        var descriptor = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
        let milliseconds = Int32(clamping: max(1, limit.nanoseconds / 1_000_000))
        guard unsafe poll(&descriptor, 1, milliseconds) > 0 else { return false }
        var bytes: (UInt64, UInt64) = (0, 0)
        while unsafe read(readEnd, &bytes, 16) == 16 {}
        return true
    }
}
