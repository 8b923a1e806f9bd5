package import ExampleSupport
package import Steno
import StenoALSA
import StenoMedia
import StenoPulseAudio

/// A source as it is named on a command line.
package struct SourceName: Sendable {
    package enum Kind: String, Sendable, CaseIterable { case alsa, pulse, file }

    package var kind: Kind
    /// The device or the path; nil for the default device.
    package var name: String?
    /// How fast a file is played.
    package var speed = 1.0

    package init(kind: Kind, name: String? = nil) {
        self.kind = kind
        self.name = name
    }

    /// - Parameter text: `alsa:NAME`, `pulse:NAME` or `file:PATH`; a device's name may be left out.
    package init(_ text: String) throws(ArgumentReader.UsageError) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let kind = Kind(rawValue: parts[0]) else {
            throw .init("a source is alsa:NAME, pulse:NAME or file:PATH, not \(text)")
        }
        let name = parts.count == 2 && !parts[1].isEmpty ? parts[1] : nil
        if kind == .file, name == nil { throw .init("which file? file:PATH") }
        self.init(kind: kind, name: name)
    }

    /// Throws where `path`, which is to be written, is the file to be played.
    package func check(output path: String) throws(ArgumentReader.UsageError) {
        guard kind == .file, let name, isSameFile(name, path) else { return }
        throw .init("the output would overwrite the file that is played, \(name)")
    }

    /// - Parameter type: What will be recorded: a device is asked for what such a file takes.
    package func makeSource(for type: RecordingType? = nil) -> CaptureSource {
        let request = type?.request ?? .init()
        switch kind {
        case .alsa:
            return CaptureSource { [name] () throws(StenoError) in
                try ALSACaptureStream(device: name ?? "default", request: request)
            }
        case .pulse:
            return CaptureSource { [name] () throws(StenoError) in
                try PulseAudioCaptureStream(device: name, request: request)
            }
        case .file:
            var configuration = CaptureSource.Configuration()
            configuration.dropsWhenFull = false
            configuration.reconnection = nil
            return CaptureSource(configuration: configuration) { [name, speed] () throws(StenoError) in
                ReplayStream(try openAudio(path: name ?? ""), speed: speed)
            }
        }
    }
}
