/// Memory for samples between two steps.
///
/// Its spans depend on the pointer alone, so that a step can read one scratch and write another one of the same owner.
/// They are valid because they never leave the method that makes them, and the owner holds the scratch meanwhile.
@safe struct Scratch: ~Copyable {
    let samples: UnsafeMutableBufferPointer<Float>

    /// `count` zeros.
    init(count: Int) {
        unsafe samples = .allocate(capacity: count)
        unsafe samples.initialize(repeating: 0)
    }

    deinit { unsafe samples.deallocate() }

    var count: Int { unsafe samples.count }
}
