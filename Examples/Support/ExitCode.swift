package import Steno
import StenoVosk

/// The exit codes of sysexits.h, and the shell's for an interrupt.
package enum ExitCode: Int32 {
    case done = 0
    case usage = 64
    case notAudio = 65
    case noInput = 66
    case unavailable = 69
    case failed = 70
    case cannotCreate = 73
    case outputFailed = 74
    case busy = 75
    case noPermission = 77
    case interrupted = 130

    package init(_ error: StenoError) {
        switch error.code {
        case .cancelled: self = .interrupted
        case .outputFailed, .diskFull, .fileWriteFailed: self = .outputFailed
        case .cannotCreate: self = .cannotCreate
        case .modelNotFound, .modelInvalid, .engineNotFound: self = .unavailable
        case .engineNotLibrary, .engineWrongArchitecture, .engineIncompatible: self = .unavailable
        case .noServer, .serverLost, .deviceLost, .deviceTimeout: self = .unavailable
        case .fileNotFound, .filePermissionDenied, .fileIsDirectory, .noSuchDevice: self = .noInput
        case .fileEmpty, .fileNotAudio, .fileUnsupported, .fileDamaged: self = .notAudio
        case .unsupportedLanguage, .unsupportedOption, .invalidArgument: self = .usage
        case .deviceBusy: self = .busy
        case .devicePermissionDenied: self = .noPermission
        default: self = .failed
        }
    }

    /// The code for a recording that ended, or could not be made, for this reason.
    package init(ofRecording error: StenoError) {
        switch error.code {
        case .fileNotFound, .filePermissionDenied, .fileIsDirectory, .fileUnsupported: self = .cannotCreate
        default: self = ExitCode(error)
        }
    }
}

extension StenoError.Code {
    /// A text file could not be made.
    package static let cannotCreate = StenoError.Code(rawValue: "output.cannotCreate")
    /// Text could not be written.
    package static let outputFailed = StenoError.Code(rawValue: "output.failed")
}
