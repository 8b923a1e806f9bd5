/// Memory for samples between two steps.
///
/// Its spans depend on the pointer alone, so that a step can read one scratch and write another one of the same owner.
/// They are valid because they never leave the method that makes them, and the owner holds the scratch meanwhile.
@safe final class Scratch {
    let samples: UnsafeMutableBufferPointer<Float>

    /// `count` zeros.
    init(count: Int) {
        unsafe samples = .allocate(capacity: count)
        unsafe samples.initialize(repeating: 0)
    }

    deinit { unsafe samples.deallocate() }

    var count: Int { unsafe samples.count }
}

extension Span where Element == Float {
    /// The four samples from `index` on, with one check.
    @inline(__always)
    func four(at index: Int) -> SIMD4<Float> {
        precondition(index >= 0 && index <= count - 4)
        return unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index &* 4, as: SIMD4<Float>.self)
    }

    /// The eight samples from `index` on, with one check.
    @inline(__always)
    func eight(at index: Int) -> SIMD8<Float> {
        precondition(index >= 0 && index <= count - 8)
        return unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index &* 4, as: SIMD8<Float>.self)
    }
}
