import Synchronization

/// `Mutex`, made visible to the thread sanitizer.
///
/// On Linux `Mutex` waits in the kernel from inside a library that the sanitizer does not see, so each use looks to it
/// like a race. The atomic beside it tells the same order a second time, in code that it does see; both operations are
/// plain moves on x86-64.
package struct Lock<Value>: ~Copyable, Sendable {
    private let mutex: Mutex<Value>
    private let order = Atomic<UInt8>(0)

    package init(_ value: consuming sending Value) { mutex = Mutex(value) }

    package func withLock<R, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R {
        try mutex.withLock { (value) throws(E) -> sending R in
            _ = order.load(ordering: .acquiring)
            defer { order.store(0, ordering: .releasing) }
            return try body(&value)
        }
    }
}
