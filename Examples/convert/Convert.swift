import ExampleSupport
import Foundation
import Steno

/// Converts an audio file to another rate, channel count and sample format: the converter of the core between the two
/// halves of the file back end.
@main
struct Convert {
    static let help = """
        Usage: convert [options] INPUT OUTPUT

        Reads what libsndfile reads and writes WAV.

          --rate HZ          sample rate (default: 16000)
          --channels N       channels (default: 1)
          --format FORMAT    int16, int24, int32 or float32 (default: int16)
          --channel N        take one channel of the input, counted from 0, instead of mixing
          --help             this text

        """

    static func main() {
        do throws(StenoError) {
            let arguments = try Arguments(CommandLine.arguments.dropFirst())
            guard let (input, output) = arguments.files else {
                exit(printAll(help, by: "convert").rawValue)
            }
            try convert(input, to: output, in: arguments.format, policy: arguments.policy)
        } catch {
            FileHandle.standardError.write(Data("convert: \(error.message)\n".utf8))
            exit(error.code == .invalidArgument ? 64 : 1)
        }
    }

    private static func convert(
        _ input: String, to output: String, in format: AudioFormat, policy: ChannelPolicy
    ) throws(StenoError) {
        let source = try AudioFileSource(path: input)
        let converter = AudioConverter(to: format, channelPolicy: policy, resampler: SoxrResamplerFactory())
        let file = try AudioFileWriter(path: output, type: .wav, format: format)
        var buffer = AudioBuffer(format: source.format, frameCapacity: 8192)
        var converted = AudioBuffer(format: format, frameCapacity: 8192)
        while try source.read(into: &buffer) != .end {
            try converter.convert(buffer, into: &converted)
            try file.write(converted)
            buffer.removeAll()
        }
        try converter.finish(into: &converted)
        try file.write(converted)
        try file.close()
    }

    private struct Arguments {
        /// nil when help is wanted.
        var files: (String, String)?
        var format: AudioFormat
        var policy = ChannelPolicy.automatic

        init(_ arguments: ArraySlice<String>) throws(StenoError) {
            var rest = arguments
            var names: [String] = []
            var (rate, channels, sampleFormat) = (16000, 1, SampleFormat.int16)
            func number(_ option: String, _ range: ClosedRange<Int>) throws(StenoError) -> Int {
                guard let text = rest.popFirst(), let number = Int(text), range.contains(number) else {
                    throw StenoError(.invalidArgument, "\(option) takes a number from \(range.lowerBound) up")
                }
                return number
            }
            var wantsHelp = false
            while let argument = rest.popFirst() {
                switch argument {
                case "--help": wantsHelp = true
                case "--rate": rate = try number(argument, 1...10_000_000)
                case "--channels": channels = try number(argument, 1...1024)
                case "--channel": policy = .channel(try number(argument, 0...1023))
                case "--format":
                    guard let name = rest.popFirst(), let known = SampleFormat(rawValue: name) else {
                        let names = SampleFormat.allCases.map(\.rawValue).joined(separator: ", ")
                        throw StenoError(.invalidArgument, "--format takes one of \(names)")
                    }
                    sampleFormat = known
                default: names.append(argument)
                }
            }
            format = AudioFormat(sampleRate: rate, channelCount: channels, sampleFormat: sampleFormat)
            if wantsHelp { return }
            guard names.count == 2 else {
                throw StenoError(.invalidArgument, "INPUT and OUTPUT are needed, not \(names.count) names; see --help")
            }
            files = (names[0], names[1])
        }
    }
}
