import Foundation
import Steno
import StenoPulseAudio
import ToneSpotter

/// Prints the keys of a telephone that sound in a file, or live until it is interrupted.
@main
struct DTMF {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        switch (arguments.first, arguments.last) {
        case ("--source", let name?) where arguments.count == 2 && name.hasPrefix("pulse:"):
            let source = CaptureSource { () throws(StenoError) in
                try PulseAudioCaptureStream(device: String(name.dropFirst("pulse:".count)))
            }
            let session = LiveSession(source: source, recording: nil, transcriber: ToneSpotter())
            try await session.start()
            for try await result in session.results where result.isFinal { show(result.range, result.text) }
        case (let path?, _) where arguments.count == 1 && !path.hasPrefix("-"):
            for key in try await FileTranscription(path: path, transcriber: ToneSpotter()).run().segments {
                show(key.range, key.text)
            }
        default:
            FileHandle.standardError.write(Data("usage: dtmf FILE | dtmf --source pulse:NAME\n".utf8))
            exit(64)
        }
    }

    private static func show(_ range: MediaTimeRange, _ key: String) {
        guard !key.isEmpty else { return }
        print(String(format: "%.3f %.3f", range.start.seconds, range.end.seconds), key)
        fflush(nil)
    }
}
