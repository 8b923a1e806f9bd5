import CWhisper
import Glibc
import StenoAnalysis
import StenoAudio

/// A model file in ggml's format, read once from front to back to learn whether it can be handed to whisper.cpp.
///
/// whisper.cpp trusts its file: it takes counts and lengths as they come, never looks whether a read came up short, and
/// aborts the process or throws C++ exceptions on much of what can be wrong. So everything that it relies on is checked
/// here first: the header, the vocabulary, and that the tensors fill the file exactly.
@safe
struct ModelFile: ~Copyable {
    private let path: String
    private let file: UnsafeMutablePointer<FILE>
    private let size: Int
    private var offset = 0

    private init(path: String) throws(StenoError) {
        var info = stat()
        guard unsafe stat(path, &info) == 0 else {
            let missing = errno == ENOENT || errno == ENOTDIR
            let what = missing ? "There is no model at \(path)." : "The model \(path) cannot be reached."
            throw StenoError(.modelNotFound, what, nativeCode: Int(errno))
        }
        guard info.st_mode & S_IFMT == S_IFREG else {
            let what = info.st_mode & S_IFMT == S_IFDIR ? "a directory" : "no regular file"
            throw StenoError(.modelInvalid, "The model \(path) is \(what); a file in ggml's format is needed.")
        }
        guard let file = unsafe fopen(path, "rbe") else {
            throw StenoError(.modelNotFound, "The model \(path) cannot be opened for reading.", nativeCode: Int(errno))
        }
        self.path = path
        unsafe self.file = file
        self.size = Int(info.st_size)
    }

    deinit { unsafe _ = fclose(file) }

    /// Throws when whisper.cpp cannot load the file as a Whisper model. Blocks: reads the vocabulary and the heads of
    /// all tensors. Returns the size of the vocabulary.
    static func checkWhisper(_ path: String) throws(StenoError) -> Int32 {
        var file = try ModelFile(path: path)
        try file.checkMagic()
        let header = try file.integers(11)
        let (vocabulary, state, heads) = (header[0], header[2], header[3])
        let (audioLayers, textLayers, mels) = (header[4], header[8], header[9])
        let isWhisper =
            // English only, 99 languages, 100 languages.
            (51864...51866).contains(vocabulary)
            && header[1] == 1500 && header[5] == 448
            && (64...4096).contains(state) && state == header[6] && heads == header[7] && heads * 64 == state
            && [4, 6, 12, 24, 32].contains(audioLayers) && (1...32).contains(textLayers)
            && (mels == 80 || mels == 128)
        guard isWhisper else { throw file.invalid("is no Whisper model: its header says \(header)") }
        let weights = header[10] % Int32(GGML_QNT_VERSION_FACTOR)
        guard Self.weightTypes.contains(weights),
            case let block = ggml_blck_size(ggml_ftype_to_ggml_type(ggml_ftype(weights))),
            block > 0, Int64(state).isMultiple(of: Int64(block))
        else { throw file.invalid("has weights of a type that whisper.cpp does not take: \(header[10])") }
        guard try file.integers(2) == [mels, 201] else { throw file.invalid("has a mel filter bank of the wrong size") }
        try file.skip(Int(mels) * 201 * 4, in: "the mel filter bank")
        let tokens = try file.integers(1)[0]
        guard (50256...vocabulary).contains(tokens) else { throw file.invalid("has a vocabulary of \(tokens) tokens") }
        // Fifty thousand, so without an array for each.
        var token = [UInt8](repeating: 0, count: 1024)
        for _ in 0..<tokens {
            let length = try file.integer()
            guard (0...1024).contains(length) else { throw file.invalid("has a token of \(length) bytes") }
            try unsafe file.read(Int(length), into: &token)
        }
        try file.checkTensors(11 + 15 * Int(audioLayers) + 24 * Int(textLayers))
        return vocabulary
    }

    /// Throws when whisper.cpp cannot load the file as a Silero detector. Blocks.
    static func checkSilero(_ path: String) throws(StenoError) {
        var file = try ModelFile(path: path)
        try file.checkMagic()
        let length = try file.integers(1)[0]
        guard (1...64).contains(length), String(decoding: try file.bytes(Int(length)), as: UTF8.self) == "silero-16k"
        else { throw file.invalid("is no Silero detector") }
        _ = try file.integers(3)  // the version
        // whisper.cpp builds one fixed network, whatever the header says: 512 frames with 64 of context, four
        // convolutions (channels in, channels out, kernel), the LSTM and the last layer.
        let network: [Int32] = [512, 64, 4, 129, 128, 3, 128, 64, 3, 64, 64, 3, 64, 128, 3, 128, 128, 128, 1]
        guard try file.integers(network.count) == network else {
            throw file.invalid("is a Silero detector of another build than whisper.cpp knows")
        }
        try file.checkTensors(15)
    }

    /// The values of `ggml_ftype` for which ggml has a tensor type; it aborts on others.
    private static let weightTypes: Set<Int32> = Set([0, 1, 2, 3] + (7...24))

    private mutating func checkMagic() throws(StenoError) {
        if size == 0 { throw invalid("is empty") }
        let start = try bytes(min(size, 40))
        if String(decoding: start, as: UTF8.self).hasPrefix("version https://git-lfs") {
            throw invalid("is a Git LFS pointer, not the model: fetch it with `git lfs pull`")
        }
        guard start.starts(with: [0x6C, 0x6D, 0x67, 0x67]) else {
            throw invalid("is not in ggml's format: it begins with \(start.prefix(4)), not with \"lmgg\"")
        }
        offset = 4
        unsafe fseeko(file, 4, SEEK_SET)
    }

    /// Walks over `count` tensors, which must end where the file ends.
    private mutating func checkTensors(_ count: Int) throws(StenoError) {
        var names: Set<[UInt8]> = []
        while offset < size {
            let head = try integers(3)
            guard (0...4).contains(head[0]), (1...128).contains(head[1]) else {
                throw invalid("is damaged before byte \(offset): \(head[0]) dimensions, a name of \(head[1]) bytes")
            }
            let dimensions = try integers(Int(head[0])).map(Int.init)
            let name = try bytes(Int(head[1]))
            let spelled = String(decoding: name, as: UTF8.self)
            // Rows hold whole blocks of numbers, each in so many bytes. Types that ggml gave up have neither.
            let isType = (0..<Int32(GGML_TYPE_COUNT.rawValue)).contains(head[2])
            let type = ggml_type(isType ? UInt32(head[2]) : 0)
            let (block, bytes) = isType ? (Int(ggml_blck_size(type)), ggml_type_size(type)) : (0, 0)
            let row = dimensions.first ?? 1
            guard block > 0, bytes > 0, row.isMultiple(of: block), dimensions.allSatisfy({ (1...1 << 20).contains($0) })
            else { throw invalid("is damaged: tensor \(spelled) has type \(head[2]) and dimensions \(dimensions)") }
            var length = row / block * bytes
            for dimension in dimensions.dropFirst() where length <= size { length *= dimension }
            try skip(length, in: "tensor \(spelled)")
            names.insert(name)
        }
        guard names.count == count else { throw invalid("is incomplete: it holds \(names.count) tensors of \(count)") }
    }

    private mutating func integers(_ count: Int) throws(StenoError) -> [Int32] {
        var integers: [Int32] = []
        for _ in 0..<count { integers.append(try integer()) }
        return integers
    }

    private mutating func integer() throws(StenoError) -> Int32 {
        var value: Int32 = 0
        try unsafe read(4, into: &value)
        return Int32(littleEndian: value)
    }

    private mutating func bytes(_ count: Int) throws(StenoError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        try unsafe read(count, into: &bytes)
        return bytes
    }

    /// - Parameter place: Has room for so many bytes.
    private mutating func read(_ count: Int, into place: UnsafeMutableRawPointer) throws(StenoError) {
        guard offset + count <= size, unsafe fread(place, 1, count, file) == count else {
            throw invalid("is truncated: it ends at byte \(size), before the end of its header")
        }
        offset += count
    }

    private mutating func skip(_ count: Int, in part: String) throws(StenoError) {
        guard count <= size - offset, unsafe fseeko(file, count, SEEK_CUR) == 0 else {
            throw invalid("is truncated: it ends at byte \(size), within \(part), which begins at byte \(offset)")
        }
        offset += count
    }

    private func invalid(_ what: String) -> StenoError { StenoError(.modelInvalid, "The model \(path) \(what).") }
}
