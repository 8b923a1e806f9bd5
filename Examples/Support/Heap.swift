import Glibc

/// All threads of the process take memory from one heap. To be called first.
///
/// Every file has threads of its own, and glibc keeps a heap for each with what it freed: over many files, twice the memory.
/// The module Glibc lacks `mallopt`.
package func takeOneHeap() {
    typealias Function = @convention(c) (_ parameter: Int32, _ value: Int32) -> Int32
    guard let symbol = unsafe dlsym(nil, "mallopt") else { return }
    let maximumArenas: Int32 = -8
    _ = unsafe unsafeBitCast(symbol, to: Function.self)(maximumArenas, 1)
}
