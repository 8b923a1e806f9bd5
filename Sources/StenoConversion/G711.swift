/// ITU-T G.711: eight bits for each sample, one sign, three of a segment and four of a step.
enum G711 {
    /// The 14-bit µ-law value of each code, at full scale ±1 of 16 bits.
    static let muLaw: [Float] = (0..<256).map { Float(linear(muLaw: UInt8($0))) * 0x1p-15 }
    /// The 13-bit A-law value of each code, at full scale ±1 of 16 bits.
    static let aLaw: [Float] = (0..<256).map { Float(linear(aLaw: UInt8($0))) * 0x1p-15 }

    static func linear(muLaw code: UInt8) -> Int {
        let bits = Int(~code)
        let magnitude = (((bits & 15) << 3 | 0x84) << (bits >> 4 & 7)) - 0x84
        return bits & 0x80 == 0 ? magnitude : -magnitude
    }

    static func linear(aLaw code: UInt8) -> Int {
        let bits = Int(code ^ 0x55)
        let segment = bits >> 4 & 7
        let step = (bits & 15) << 4 + 8
        let magnitude = segment == 0 ? step : (step + 0x100) << (segment - 1)
        return bits & 0x80 == 0 ? -magnitude : magnitude
    }

    static func muLaw(linear sample: Int16) -> UInt8 {
        let biased = min(Int(sample.magnitude) + 0x84, 0x7FFF)
        let segment = 8 - (UInt16(biased).leadingZeroBitCount)
        let code = UInt8(segment << 4 | biased >> (segment + 3) & 15)
        return ~(sample < 0 ? code | 0x80 : code)
    }

    static func aLaw(linear sample: Int16) -> UInt8 {
        // Truncated towards minus infinity to 13 bits, so that -1 is the first negative step.
        let magnitude = sample < 0 ? ~Int(sample) >> 3 : Int(sample) >> 3
        let segment = max(0, 11 - (UInt16(magnitude).leadingZeroBitCount))
        let step = segment <= 1 ? magnitude >> 1 & 15 : magnitude >> segment & 15
        let code = UInt8(segment << 4 | step)
        return (sample < 0 ? code : code | 0x80) ^ 0x55
    }
}
