internal import Glibc
public import StenoAudio

extension StenoError.Code {
    /// There is no file of that name, or no folder to make it in.
    public static let fileNotFound = Self(rawValue: "file.notFound")
    /// The file may not be read or written by this user.
    public static let filePermissionDenied = Self(rawValue: "file.permissionDenied")
    public static let fileIsDirectory = Self(rawValue: "file.isDirectory")
    /// The file has no bytes at all. A file with a header and no audio is no error.
    public static let fileEmpty = Self(rawValue: "file.empty")
    /// The content is something else than audio; the message says what.
    public static let fileNotAudio = Self(rawValue: "file.notAudio")
    /// Audio in a container, codec or sample format that this target does not handle; the message names it.
    public static let fileUnsupported = Self(rawValue: "file.unsupported")
    /// The file is of a known kind, but nothing can be read from it.
    public static let fileDamaged = Self(rawValue: "file.damaged")
    /// The system failed to read; the native code is its errno.
    public static let fileReadFailed = Self(rawValue: "file.readFailed")
    /// The system or the encoder failed to write.
    public static let fileWriteFailed = Self(rawValue: "file.writeFailed")
    /// There is no room left for the file. What was written before stays readable.
    public static let diskFull = Self(rawValue: "file.diskFull")
}

extension StenoError {
    /// The error of a failed system call on a file.
    package static func system(_ number: Int32, _ action: String, _ name: String, otherwise code: Code) -> StenoError {
        let code: Code =
            switch number {
            case ENOENT, ENOTDIR: .fileNotFound
            case EACCES, EPERM, EROFS: .filePermissionDenied
            case EISDIR: .fileIsDirectory
            case ENOSPC, EDQUOT, EFBIG: .diskFull
            case EMFILE, ENFILE, ENOMEM: .insufficientResources
            default: code
            }
        let reason = unsafe String(cString: strerror(number))
        return StenoError(code, "\(action) \(quoted(name)): \(reason)", nativeCode: Int(number))
    }
}

/// A name in quotes on one line, whatever it holds.
package func quoted(_ name: String) -> String { name.debugDescription }

/// What a file is that libsndfile does not read, by its first bytes.
package enum Content: Equatable {
    /// Something else than audio.
    case notAudio(String)
    /// Audio that needs another back end.
    case unsupported(String)
    /// A container that libsndfile reads: when it does not, the file is damaged.
    case audio(String)

    package init(head: [UInt8]) {
        for (offset, magic, content) in Self.magics
        where head.count >= offset + magic.utf8.count && head[offset...].starts(with: magic.utf8) {
            self = content
            return
        }
        self = Self.text(head) ?? Self.frames(head) ?? .notAudio("data of an unknown kind")
    }

    /// In the order of asking: the more exact first.
    private static let magics: [(Int, String, Content)] = [
        (0, "version https://git-lfs", .notAudio("a Git LFS pointer; fetch the content with `git lfs pull`")),
        (0, "%PDF-", .notAudio("a PDF document")),
        (1, "PNG\r\n", .notAudio("a PNG image")),
        (0, "GIF8", .notAudio("a GIF image")),
        (0, "PK\u{3}\u{4}", .notAudio("a ZIP archive")),
        (1, "ELF", .notAudio("an ELF program")),
        (4, "ftyp", .unsupported("MP4 or M4A, which needs StenoMedia")),
        (8, "AVI ", .unsupported("an AVI video")),
        (28, "Speex   ", .unsupported("Ogg Speex")),
        (29, "theora", .unsupported("an Ogg Theora video")),
        (0, "wvpk", .unsupported("WavPack")),
        (0, "MAC ", .unsupported("Monkey's Audio")),
        (0, "#!AMR", .unsupported("AMR")),
        (0, "ADIF", .unsupported("AAC, which needs StenoMedia")),
        (0, "RIFF", .audio("WAV")), (0, "RIFX", .audio("WAV")), (0, "RF64", .audio("RF64")),
        (0, "BW64", .audio("BW64")),
        (0, "FORM", .audio("AIFF")), (0, "fLaC", .audio("FLAC")), (0, "OggS", .audio("Ogg")), (0, "ID3", .audio("MP3")),
        (0, ".snd", .audio("AU")), (0, "caff", .audio("CAF")), (0, "riff", .audio("W64")),
        (0, "NIST_1A", .audio("SPHERE")),
    ]

    /// Formats whose first bytes are no text.
    private static func frames(_ head: [UInt8]) -> Content? {
        if head.starts(with: [0xFF, 0xD8, 0xFF]) { return .notAudio("a JPEG image") }
        if head.starts(with: [0x1F, 0x8B]) { return .notAudio("gzip data") }
        if head.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) {
            return .unsupported("WebM or Matroska, which needs StenoMedia")
        }
        if head.starts(with: [0x30, 0x26, 0xB2, 0x75]) { return .unsupported("ASF or WMA") }
        guard head.count > 1, head[0] == 0xFF else { return nil }
        if head[1] & 0xF6 == 0xF0 { return .unsupported("AAC, which needs StenoMedia") }
        return head[1] & 0xE0 == 0xE0 ? .audio("MP3") : nil
    }

    private static func text(_ head: [UInt8]) -> Content? {
        // The cut may fall inside a character: up to three bytes of its beginning are left off.
        guard !head.contains(where: { $0 < 0x20 && !(0x08...0x0D).contains($0) && $0 != 0x1B }),
            (0...3).contains(where: { String(validating: head.dropLast($0), as: UTF8.self) != nil })
        else { return nil }
        let start = String(decoding: head, as: UTF8.self).drop { $0.isWhitespace || $0 == "\u{FEFF}" }.lowercased()
        return .notAudio(start.hasPrefix("<!doctype html") || start.hasPrefix("<html") ? "an HTML page" : "text")
    }
}
