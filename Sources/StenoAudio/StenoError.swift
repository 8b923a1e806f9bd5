/// What went wrong: a stable code that implies the remedy, and a sentence that says what was found and what was expected.
///
/// The one error type of all targets. Codes are open: a back end adds its own as an extension of ``Code``.
public struct StenoError: Error, Sendable {
    /// A stable name such as `file.notAudio`: match on this, never on the text.
    public struct Code: RawRepresentable, Sendable, Hashable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
    }

    public let code: Code
    /// One sentence for people: what was found, what was expected, what helps.
    public let message: String
    /// The number that the C library or the system gave, where there was one.
    public let nativeCode: Int?
    /// The error behind this one, where there was one.
    public let underlying: (any Error)?

    public init(_ code: Code, _ message: String, nativeCode: Int? = nil, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.nativeCode = nativeCode
        self.underlying = underlying
    }
}

extension StenoError: CustomStringConvertible {
    public var description: String {
        let native = nativeCode.map { " (\($0))" } ?? ""
        return "\(message)\(native) [\(code.rawValue)]"
    }
}

extension StenoError.Code {
    /// The work was cancelled.
    public static let cancelled = StenoError.Code(rawValue: "cancelled")
    /// An argument is outside what the call takes.
    public static let invalidArgument = StenoError.Code(rawValue: "invalidArgument")
    /// Memory or another resource of the system ran out.
    public static let insufficientResources = StenoError.Code(rawValue: "insufficientResources")
}
