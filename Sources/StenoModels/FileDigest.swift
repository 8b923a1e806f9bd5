internal import CCrypto
import Glibc
internal import StenoAudio

/// Digests of a file by OpenSSL's libcrypto, all in one pass. Blocks.
///
/// - Parameter isCancelled: asked once for each megabyte.
func digests(
    of path: String, kinds: Set<ModelDigest.Kind>, isCancelled: () -> Bool = { false }
) throws(StenoError) -> [ModelDigest.Kind: String] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .store(errno, "reading", path) }
    defer { close(descriptor) }
    var hashers: [Hasher] = []
    for kind in kinds { hashers.append(try Hasher(kind)) }
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
        if isCancelled() { throw StenoError(.cancelled, "The work was cancelled.") }
        let count = unsafe read(descriptor, &buffer, buffer.count)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw .store(errno, "reading", path) }
        if count == 0 { break }
        for hasher in hashers { hasher.update(buffer, count) }
    }
    return Dictionary(uniqueKeysWithValues: hashers.map { ($0.kind, $0.finish()) })
}

@safe private final class Hasher {
    let kind: ModelDigest.Kind
    private let context = unsafe EVP_MD_CTX_new()

    init(_ kind: ModelDigest.Kind) throws(StenoError) {
        self.kind = kind
        let algorithm =
            switch kind {
            case .sha256: unsafe EVP_sha256()
            case .sha1: unsafe EVP_sha1()
            case .md5: unsafe EVP_md5()
            }
        guard unsafe EVP_DigestInit_ex(context, algorithm, nil) == 1 else {
            throw StenoError(.modelStoreFailed, "OpenSSL on this machine has no \(kind.rawValue).")
        }
    }

    deinit { unsafe EVP_MD_CTX_free(context) }

    func update(_ bytes: [UInt8], _ count: Int) { unsafe _ = EVP_DigestUpdate(context, bytes, count) }

    /// The digest in hexadecimal.
    func finish() -> String {
        var digest = [UInt8](repeating: 0, count: kind.byteCount)
        var length: UInt32 = 0
        unsafe _ = EVP_DigestFinal_ex(context, &digest, &length)
        return digest.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}

extension StenoError {
    /// The error of a failed system call in the store.
    static func store(_ number: Int32, _ action: String, _ path: String) -> StenoError {
        let isFull = [ENOSPC, EDQUOT, EFBIG].contains(number)
        let reason = unsafe String(cString: strerror(number))
        return StenoError(
            isFull ? .modelStoreFull : .modelStoreFailed, "\(action) \(path.debugDescription): \(reason)",
            nativeCode: Int(number))
    }
}
