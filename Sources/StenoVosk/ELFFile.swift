import Foundation

/// What the head of an ELF file tells before the loader is trusted with the file.
struct ELFFile {
    /// Word size and machine, such as "64-bit x86-64".
    let architecture: String
    /// Whether all that is to be mapped into memory lies in the file. Not looked into where words are not 64 bits,
    /// little-endian: that is taken for whole.
    let isWhole: Bool

    /// Nil when the file does not start as ELF does.
    init?(_ file: FileHandle) {
        guard let header = try? file.read(upToCount: 64), header.count == 64,
            header.starts(with: [0x7F, 0x45, 0x4C, 0x46]), let size = try? file.seekToEnd()
        else { return nil }
        let (is64Bit, isLittleEndian) = (header[4] == 2, header[5] == 1)
        let machine =
            isLittleEndian ? header.number(at: 18, bytes: 2) : header.number(at: 18, bytes: 2).byteSwapped >> 48
        let name = [3: "x86", 40: "ARM", 62: "x86-64", 183: "AArch64", 243: "RISC-V"][machine] ?? "machine \(machine)"
        architecture = "\(is64Bit ? "64" : "32")-bit \(name)\(isLittleEndian ? "" : ", big-endian")"
        isWhole = !is64Bit || !isLittleEndian || Self.segmentsEnd(header, in: file).map { $0 <= size } ?? false
    }

    /// The end of the last segment; nil when the table of segments is not there or makes no sense.
    private static func segmentsEnd(_ header: Data, in file: FileHandle) -> UInt64? {
        let entrySize = Int(header.number(at: 54, bytes: 2))
        let tableSize = entrySize * Int(header.number(at: 56, bytes: 2))
        guard entrySize >= 56, (try? file.seek(toOffset: header.number(at: 32, bytes: 8))) != nil,
            let table = try? file.read(upToCount: tableSize), table.count == tableSize
        else { return nil }
        return stride(from: 0, to: tableSize, by: entrySize).map { entry in
            let (start, length) = (table.number(at: entry + 8, bytes: 8), table.number(at: entry + 32, bytes: 8))
            let (end, overflow) = start.addingReportingOverflow(length)
            return overflow ? .max : end
        }.max()
    }
}

extension Data {
    /// A little-endian number.
    fileprivate func number(at offset: Int, bytes: Int) -> UInt64 {
        dropFirst(offset).prefix(bytes).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
