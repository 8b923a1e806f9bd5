package import Steno
import StenoMedia

/// The types of files that the programs record to.
package enum RecordingType: String, Sendable, CaseIterable {
    case wav, flac, opus, m4a

    /// What a file's name asks for; WAV where it does not say.
    package init(pathExtension path: String) {
        let name = path.split(separator: ".").last?.lowercased() ?? ""
        self = name == "ogg" ? .opus : RecordingType(rawValue: name) ?? .wav
    }

    /// What to ask a device for, so that such a file takes it.
    var request: CaptureFormatRequest {
        switch self {
        case .wav: .init()
        case .flac: .init(sampleFormat: .int24)
        case .opus: .init(sampleRate: 48000, channelCount: 2)
        case .m4a: .init(sampleRate: 48000, sampleFormat: .int16)
        }
    }

    package func recording(to path: String) -> LiveSession.Recording {
        switch self {
        case .wav: .init(path: path, type: .wav)
        case .flac: .init(path: path, type: .flac)
        case .opus: .init(path: path, type: .oggOpus)
        case .m4a:
            .init(path: path) { (path, format) throws(StenoError) in try MediaFileWriter(path: path, format: format) }
        }
    }
}
