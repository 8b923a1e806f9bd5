import Foundation
import StenoAudio
import StenoMedia
import TestSupport

func ffmpeg(_ arguments: String...) throws { try tool(["ffmpeg", "-v", "error", "-y"] + arguments) }

/// What ffprobe says of the first audio stream and of the container, such as `duration_ts` and `start_time`.
func probe(_ path: String) throws -> [String: String] {
    let lines = try tool([
        "ffprobe", "-v", "error", "-select_streams", "a:0", "-show_entries",
        "stream=codec_name,sample_rate,channels,start_pts,duration_ts,time_base:format=start_time,duration", "-of",
        "default=noprint_wrappers=1", path,
    ])
    let pairs = lines.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
    return Dictionary(pairs.map { ($0[0], $0[1]) }, uniquingKeysWith: { first, _ in first })
}

/// Mono or more channels of different tones: channel c has 300 * (c + 1) Hz.
func toneChannels(_ count: Int, seconds: Double, rate: Int) -> [Float] {
    (0..<Int(seconds * Double(rate))).flatMap { frame in
        (0..<count).map { Float(0.3 * sin(2 * .pi * 300 * Double($0 + 1) * Double(frame) / Double(rate))) }
    }
}

/// A WAV file of 16 bits, made by ffmpeg out of raw samples.
func writeWave(_ samples: [Float], channels: Int, rate: Int, to path: String) throws {
    try unsafe samples.withUnsafeBytes { try unsafe Data($0).write(to: URL(filePath: path + ".f32")) }
    try ffmpeg("-f", "f32le", "-ar", "\(rate)", "-ac", "\(channels)", "-i", path + ".f32", path)
}

/// What a source holds: its samples as floats, interleaved, with silence in its gaps.
struct Content {
    var samples: [Float] = []
    var gaps: [ClosedRange<Int>] = []
    /// How much of the loudness of a channel lies at a frequency, 0 to 1, in a second in the middle.
    func share(of frequency: Double, channel: Int, channels: Int, rate: Int) -> Double {
        let frames = samples.count / channels
        let middle = max(0, frames / 2 - rate / 2)..<min(frames, frames / 2 + rate / 2)
        var (sine, cosine, energy) = (0.0, 0.0, 1e-12)
        for frame in middle {
            let value = Double(samples[frame * channels + channel])
            sine += value * sin(2 * .pi * frequency * Double(frame) / Double(rate))
            cosine += value * cos(2 * .pi * frequency * Double(frame) / Double(rate))
            energy += value * value
        }
        return 2 * (sine * sine + cosine * cosine) / (energy * Double(middle.count))
    }
}

func readAll(_ source: any CaptureStream, capacity: Int = 1000) throws -> Content {
    var buffer = AudioBuffer(format: source.format, frameCapacity: capacity)
    var content = Content()
    while true {
        switch try source.read(into: &buffer) {
        case .frames:
            switch buffer.format.sampleFormat {
            case .float32: content.samples += buffer.samples(of: Float.self)
            case .int16: content.samples += buffer.samples(of: Int16.self).map { Float($0) / 32768 }
            case .int32: content.samples += buffer.samples(of: Int32.self).map { Float($0) / 0x1p31 }
            default: throw StenoError(.invalidArgument, "\(buffer.format)")
            }
        case .gap(let count, _):
            let channels = source.format.channelCount
            content.gaps.append(content.samples.count / channels...content.samples.count / channels + Int(count))
            content.samples += [Float](repeating: 0, count: Int(count) * channels)
        case .nothing, .notice: continue
        case .end: return content
        }
    }
}

/// Where `sample` lies best in `samples`, in frames of one channel: by correlation within `range`.
func offset(of sample: [Float], in samples: [Float], range: Range<Int>) -> Int? {
    range.max { a, b in correlation(sample, samples, a) < correlation(sample, samples, b) }
}

private func correlation(_ a: [Float], _ b: [Float], _ offset: Int) -> Float {
    var sum: Float = 0
    for index in a.indices where b.indices.contains(index + offset) { sum += a[index] * b[index + offset] }
    return sum
}
