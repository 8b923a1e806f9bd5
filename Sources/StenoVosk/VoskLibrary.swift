import Foundation
import Glibc
import StenoAnalysis
public import StenoAudio

/// libvosk, loaded at run time: no distribution has a package of it, and a program that does without it still starts.
///
/// Once loaded it stays until the process ends. Any thread.
public struct VoskLibrary: Sendable {
    /// The environment variable that names the library's file.
    public static let environmentVariable = "STENO_VOSK_LIBRARY"

    /// The file that was loaded, or the name that the loader found.
    public let path: String
    let functions: VoskFunctions

    /// Loads libvosk and silences its reports of progress.
    ///
    /// - Parameter path: The library's file. When nil it is the one that `STENO_VOSK_LIBRARY` names and, where that is
    ///   not set, what the loader finds for `libvosk.so`.
    /// - Throws: ``StenoError`` with `engineNotFound`, saying what was tried and how to install it; `engineNotLibrary`;
    ///   `engineWrongArchitecture`; `engineIncompatible`, naming the symbol that lacks.
    public init(path: String? = nil) throws(StenoError) {
        let named = path ?? ProcessInfo.processInfo.environment[Self.environmentVariable]
        if let named { try Self.checkFile(named) }
        // The loader would look for a name without a slash elsewhere than where it was checked.
        let file = named.map { $0.contains("/") ? $0 : "./" + $0 } ?? "libvosk.so"
        guard let handle = unsafe dlopen(file, RTLD_NOW | RTLD_LOCAL) else {
            let reason = unsafe dlerror().map { unsafe String(cString: $0) } ?? "no reason given"
            if named != nil { throw StenoError(.engineNotLibrary, "\(file) cannot be loaded: \(reason)") }
            throw Self.notFound("tried \(Self.environmentVariable), not set, and the loader's search: \(reason)")
        }
        self.path = file
        functions = try unsafe VoskFunctions(of: file) { unsafe dlsym(handle, $0) }
        setLogLevel(-1)
    }

    /// What libvosk writes to standard error, for the whole process: errors and warnings at −1, which is where loading
    /// sets it; errors at −2; nothing at −3; also progress at 0, and more above.
    public func setLogLevel(_ level: Int) {
        functions.setLogLevel(CInt(clamping: level))
    }

    private static func notFound(_ tried: String) -> StenoError {
        StenoError(
            .engineNotFound,
            """
            libvosk was not found; \(tried). Take libvosk.so from the Python wheel "vosk" or from a release of \
            vosk-api, and give its path here or in \(environmentVariable)
            """)
    }

    /// Sees to what the loader would say wrongly or not at all: it calls a library for another machine "no such file",
    /// and the process dies of one that was cut short.
    private static func checkFile(_ path: String) throws(StenoError) {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw notFound("tried \(path): \(unsafe String(cString: strerror(errno)))")
        }
        guard let library = ELFFile(file) else {
            throw StenoError(.engineNotLibrary, "\(path) is not a shared library: it has no ELF header")
        }
        if let own = FileHandle(forReadingAtPath: "/proc/self/exe").flatMap(ELFFile.init),
            own.architecture != library.architecture
        {
            throw StenoError(
                .engineWrongArchitecture,
                "\(path) is built for \(library.architecture), this program for \(own.architecture)")
        }
        guard library.isWhole else { throw StenoError(.engineNotLibrary, "\(path) was cut short or is damaged") }
    }
}

extension StenoError.Code {
    /// The file that should be the engine's library is no shared library, or one that cannot be loaded.
    public static let engineNotLibrary = StenoError.Code(rawValue: "engine.notLibrary")
    /// The engine's library is built for another processor.
    public static let engineWrongArchitecture = StenoError.Code(rawValue: "engine.wrongArchitecture")
    /// A shared library, but not the engine's, or of a release that lacks what is needed.
    public static let engineIncompatible = StenoError.Code(rawValue: "engine.incompatible")
}
