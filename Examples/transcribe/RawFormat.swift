import ExampleSupport
import Foundation
import Steno

/// Samples without a header, as `--raw` describes them: `s16le,16000,1`.
struct RawFormat: Sendable {
    /// As FFmpeg has them.
    private enum Name: String, CaseIterable {
        case u8, s16le, s16be, s24le, s24be, s32le, s32be, f32le, f32be, f64le, f64be, mulaw, alaw

        var sampleFormat: SampleFormat {
            switch self {
            case .u8: .uint8
            case .s16le, .s16be: .int16
            case .s24le, .s24be: .int24
            case .s32le, .s32be: .int32
            case .f32le, .f32be: .float32
            case .f64le, .f64be: .float64
            case .mulaw: .muLaw
            case .alaw: .aLaw
            }
        }
    }

    static let names = Name.allCases.map(\.rawValue).joined(separator: ", ")

    let text: String
    private let format: AudioFormat
    private let isBigEndian: Bool

    init(_ text: String) throws(ArgumentReader.UsageError) {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3 else {
            throw .init("--raw takes FORMAT,RATE,CHANNELS, such as s16le,16000,1, not \(text)")
        }
        guard let name = Name(rawValue: parts[0]) else {
            throw .init("--raw: \(parts[0]) is not one of \(Self.names)")
        }
        guard let rate = Int(parts[1]), (1...1_000_000).contains(rate) else {
            throw .init("--raw takes a rate from 1 to 1000000 Hz, not \(parts[1])")
        }
        guard let channels = Int(parts[2]), (1...1024).contains(channels) else {
            throw .init("--raw takes from 1 to 1024 channels, not \(parts[2])")
        }
        self.text = text
        format = AudioFormat(sampleRate: rate, channelCount: channels, sampleFormat: name.sampleFormat)
        isBigEndian = parts[0].hasSuffix("be")
    }

    /// - Parameter file: `-` is standard input.
    func open(_ file: String) throws(StenoError) -> sending any CaptureStream {
        file == "-"
            ? try RawAudioSource(descriptor: STDIN_FILENO, format: format, isBigEndian: isBigEndian)
            : try RawAudioSource(path: file, format: format, isBigEndian: isBigEndian)
    }
}
