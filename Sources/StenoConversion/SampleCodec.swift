import StenoAudio

/// Where the samples of one run lie in a buffer, in samples: the first, and from each to the next.
struct SampleRun {
    var start: Int
    var stride: Int
}

/// Reads `count` samples of `format` as `Float` with full scale ±1.
func decode(
    _ format: SampleFormat, from source: RawSpan, _ from: SampleRun, count: Int,
    into destination: inout MutableSpan<Float>, _ to: SampleRun
) {
    @inline(__always)
    func each<S: BitwiseCopyable>(_ type: S.Type, _ value: (S) -> Float) {
        precondition(from.start >= 0 && from.stride > 0 && count >= 0)
        if count == 0 { return }
        let size = MemoryLayout<S>.size
        precondition((from.start + (count - 1) * from.stride + 1) * size <= source.byteCount)
        if from.stride == 1 && to.stride == 1 {
            for i in 0..<count {
                let sample = unsafe source.unsafeLoadUnaligned(fromByteOffset: (from.start + i) * size, as: S.self)
                destination[to.start + i] = value(sample)
            }
        } else {
            for i in 0..<count {
                let offset = (from.start + i * from.stride) * size
                let sample = unsafe source.unsafeLoadUnaligned(fromByteOffset: offset, as: S.self)
                destination[to.start + i * to.stride] = value(sample)
            }
        }
    }
    switch format {
    case .uint8: each(UInt8.self) { Float(Int32($0) - 128) * 0x1p-7 }
    case .int16: each(Int16.self) { Float($0) * 0x1p-15 }
    case .int24: each(Int24.self) { Float($0.value) * 0x1p-23 }
    case .int24in32: each(Int32.self) { Float($0 << 8) * 0x1p-31 }
    case .int32: each(Int32.self) { Float($0) * 0x1p-31 }
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
    @inline(__always)
    func each<S: BitwiseCopyable>(_ value: (Float) -> S) {
        let size = MemoryLayout<S>.size
        for i in 0..<count {
            let offset = (to.start + i * to.stride) * size
            destination.storeBytes(of: value(source[from.start + i * from.stride]), toByteOffset: offset, as: S.self)
        }
    }
    switch format {
    case .uint8: each { UInt8(truncatingIfNeeded: rounded($0, scale: 0x1p7) + 128) }
    case .int16: each { Int16(truncatingIfNeeded: rounded($0, scale: 0x1p15)) }
    case .int24: each { Int24(rounded($0, scale: 0x1p23)) }
    case .int24in32: each { rounded($0, scale: 0x1p23) }
    case .int32: each { rounded($0, scale: 0x1p31) }
    case .float32: each { $0 }
    case .float64: each { Double($0) }
    case .muLaw: each { G711.muLaw(linear: Int16(truncatingIfNeeded: rounded($0, scale: 0x1p15))) }
    case .aLaw: each { G711.aLaw(linear: Int16(truncatingIfNeeded: rounded($0, scale: 0x1p15))) }
    }
}

/// The nearest of the steps `-scale ..< scale`.
@inline(__always)
private func rounded(_ sample: Float, scale: Double) -> Int32 {
    let scaled = min(max(Double(sample) * scale, 0 - scale), scale - 1)
    // Adding 1.5 * 2^52 leaves the nearest integer, ties to even, in the low bits.
    return Int32(truncatingIfNeeded: (scaled + 0x1.8p52).bitPattern)
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
