import StenoAudio

/// Where the samples of one run lie in a buffer, in samples: the first, and from each to the next.
struct SampleRun {
    var start: Int
    var stride: Int

    func fits(_ count: Int, into capacity: Int) -> Bool {
        start >= 0 && stride > 0 && count > 0 && start + (count - 1) * stride < capacity
    }
}

/// Reads `count` samples of `format` as `Float` with full scale ±1.
func decode(
    _ format: SampleFormat, from source: RawSpan, _ from: SampleRun, count: Int,
    into destination: inout MutableSpan<Float>, _ to: SampleRun
) {
    if count == 0 { return }
    precondition(from.fits(count, into: source.byteCount / format.byteCount) && to.fits(count, into: destination.count))
    // Raw loops behind one check: the compiler makes vectors of them.
    @inline(__always)
    func each<S: BitwiseCopyable>(_ type: S.Type, _ value: (S) -> Float) {
        unsafe source.withUnsafeBytes { source in
            unsafe destination.withUnsafeMutableBufferPointer { destination in
                guard let input = source.baseAddress, let output = destination.baseAddress else { return }
                let (first, size) = (from.start, MemoryLayout<S>.size)
                let start = unsafe output + to.start
                if from.stride == 1 && to.stride == 1 {
                    for i in 0..<count {
                        unsafe start[i] = value(input.loadUnaligned(fromByteOffset: (first &+ i) &* size, as: S.self))
                    }
                } else {
                    for i in 0..<count {
                        let offset = (first &+ i &* from.stride) &* size
                        unsafe start[i &* to.stride] = value(input.loadUnaligned(fromByteOffset: offset, as: S.self))
                    }
                }
            }
        }
    }
    switch format {
    case .uint8: each(UInt8.self) { Float(Int32($0) - 128) * 0x1p-7 }
    case .int16: each(Int16.self) { Float($0) * 0x1p-15 }
    case .int24: each(Int24.self) { Float($0.value) * 0x1p-23 }
    case .int24in32: each(Int32.self) { Float($0 << 8) * 0x1p-31 }
    case .int32: each(Int32.self) { Float($0) * 0x1p-31 }
    case .float32 where from.stride == 1 && to.stride == 1:
        let bytes = source.extracting(from.start * 4..<(from.start + count) * 4)
        unsafe bytes.withUnsafeBytes { bytes in
            unsafe destination.withUnsafeMutableBytes { destination in
                unsafe UnsafeMutableRawBufferPointer(rebasing: destination[(to.start * 4)...]).copyMemory(from: bytes)
            }
        }
    case .float32: each(Float.self) { $0 }
    case .float64: each(Double.self) { Float($0) }
    case .muLaw:
        let table = G711.muLaw
        each(UInt8.self) { table[Int($0)] }
    case .aLaw:
        let table = G711.aLaw
        each(UInt8.self) { table[Int($0)] }
    }
}

/// Writes `count` samples as `format`: rounded to the nearest step, saturated at full scale, without dither.
func encode(
    _ format: SampleFormat, from source: Span<Float>, _ from: SampleRun, count: Int,
    into destination: inout MutableRawSpan, _ to: SampleRun
) {
    if count == 0 { return }
    precondition(from.fits(count, into: source.count) && to.fits(count, into: destination.byteCount / format.byteCount))
    @inline(__always)
    func each<S: BitwiseCopyable>(_ value: (Float) -> S) {
        unsafe source.withUnsafeBufferPointer { source in
            unsafe destination.withUnsafeMutableBytes { destination in
                guard let input = source.baseAddress, let output = destination.baseAddress else { return }
                let (first, size) = (to.start, MemoryLayout<S>.size)
                let start = unsafe input + from.start
                if from.stride == 1 && to.stride == 1 {
                    for i in 0..<count {
                        unsafe output.storeBytes(of: value(start[i]), toByteOffset: (first &+ i) &* size, as: S.self)
                    }
                } else {
                    for i in 0..<count {
                        let offset = (first &+ i &* to.stride) &* size
                        unsafe output.storeBytes(of: value(start[i &* from.stride]), toByteOffset: offset, as: S.self)
                    }
                }
            }
        }
    }
    switch format {
    case .uint8: each { UInt8(truncatingIfNeeded: rounded($0, scale: 0x1p7) + 128) }
    case .int16: each { int16($0) }
    case .int24: each { Int24(rounded($0, scale: 0x1p23)) }
    case .int24in32: each { rounded($0, scale: 0x1p23) }
    case .int32: each { rounded($0, scale: 0x1p31) }
    case .float32: each { $0 }
    case .float64: each { Double($0) }
    case .muLaw: each { G711.muLaw(linear: int16($0)) }
    case .aLaw: each { G711.aLaw(linear: int16($0)) }
    }
}

/// The nearest of the 16-bit steps; ties go to the even one.
@inline(__always)
private func int16(_ sample: Float) -> Int16 {
    let scaled = sample * 0x1p15
    // Comparisons that become single vector instructions; what is not a number becomes the highest step.
    let low = scaled < 32767 ? scaled : 32767
    let limited = low > -32768 ? low : -32768
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
    return Int16(truncatingIfNeeded: (limited + 0x1.8p23).bitPattern)
}

/// The nearest of the steps `-scale ..< scale`, for scales up to 2^31; ties go to the even one.
@inline(__always)
private func rounded(_ sample: Float, scale: Double) -> Int32 {
    let scaled = Double(sample) * scale
    let low = scaled < scale - 1 ? scaled : scale - 1
    let limited = low > 0 - scale ? low : 0 - scale
    return Int32(truncatingIfNeeded: (limited + 0x1.8p52).bitPattern)
}

/// Three bytes, the lowest first.
private struct Int24: BitwiseCopyable {
    var low: UInt8
    var middle: UInt8
    var high: UInt8

    init(_ value: Int32) {
        low = UInt8(truncatingIfNeeded: value)
        middle = UInt8(truncatingIfNeeded: value >> 8)
        high = UInt8(truncatingIfNeeded: value >> 16)
    }

    var value: Int32 { Int32(Int8(bitPattern: high)) << 16 | Int32(middle) << 8 | Int32(low) }
}
