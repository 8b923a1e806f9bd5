import Foundation
import Steno

let retiming = Entry(
    name: "retiming",
    method: """
        Processor time for a buffer of 10 ms, 48 kHz stereo Float32, through AnalyzerInputRetimer alone, against \
        AnalyzerInputConverter as a whole with its conversion to 16 kHz mono Int16. With --hours: drift and memory of \
        as much audio.
        """
) { settings in
    let input = ConversionInput(sampleRate: 48000, channelCount: 2)
    let times = try pairs(4 * settings.runs + 1) {
        try timeRetimer()
    } _: {
        try timeInputConverter(input)
    }
    var figures = [Figure("retimer / converter", unit: "ns", pairs: times)]
    if settings.hours > 0 {
        for rate in [44100, 48000] { figures += try simulate(hours: settings.hours, sampleRate: rate) }
    }
    return figures
}

private let target = AudioFormat(sampleRate: 16000, channelCount: 1, sampleFormat: .int16)

/// Nanoseconds for each buffer: placed by its stamp, counted, and its output stamped.
private func timeRetimer() throws -> Double {
    var retimer = AnalyzerInputRetimer(sampleRate: target.sampleRate)
    let count = 100_000
    let start = processorSeconds()
    for index in 0..<count {
        let stamp = MediaTime(frames: Int64(480 * index), sampleRate: 48000)
        _ = try retimer.place(frameCount: 480, sampleRate: 48000, at: stamp)
        retimer.advance(480, sampleRate: 48000)
        _ = retimer.stamp(frameCount: 160)
    }
    let time = processorSeconds() - start
    guard retimer.nextFrame == retimer.sourceFrames else { throw BenchmarkError(message: "the retimer miscounts") }
    return time / Double(count) * 1e9
}

private func timeInputConverter(_ input: ConversionInput) throws -> Double {
    let converter = AnalyzerInputConverter(analyzerFormat: target, resampler: SoxrResamplerFactory())
    let count = 5000
    var frame: Int64 = 0
    func convert(_ buffer: AudioBuffer) throws {
        try converter.convert(buffer, at: MediaTime(frames: frame, sampleRate: 48000)) { _ in }
        frame += Int64(buffer.frameCount)
    }
    for buffer in input.buffers { try convert(buffer) }
    let start = processorSeconds()
    for index in 0..<count { try convert(input.buffers[index % input.buffers.count]) }
    return (processorSeconds() - start) / Double(count) * 1e9
}

/// Feeds hours of audio, and looks after every buffer.
private func simulate(hours: Double, sampleRate: Int) throws -> [Figure] {
    let input = ConversionInput(sampleRate: sampleRate, channelCount: 2)
    let converter = AnalyzerInputConverter(analyzerFormat: target, resampler: SoxrResamplerFactory())
    var (frame, received, worst) = (Int64(0), Int64(0), Int64(0))
    var residentAtStart = 0.0
    let count = Int(hours * 360_000)
    func take(_ input: AnalyzerInput) throws(StenoError) {
        guard input.bufferStartTime == MediaTime(frames: received, sampleRate: 16000) else {
            throw StenoError(
                .audioDisordered, "a buffer starts at \(input.bufferStartTime ?? .zero), not \(received)/16000")
        }
        received += Int64(input.buffer.frameCount)
    }
    for index in 0..<count {
        let buffer = input.buffers[index % input.buffers.count]
        try converter.convert(buffer, at: MediaTime(frames: frame, sampleRate: sampleRate), take)
        frame += Int64(buffer.frameCount)
        worst = max(worst, abs(converter.driftFromSource))
        if index == 1000 { residentAtStart = try residentMemory() }
    }
    let residentAtEnd = try residentMemory()
    try converter.finish(take)
    let expected = MediaTime(frames: frame, sampleRate: sampleRate).frames(at: 16000)
    guard worst <= 1, received == expected else {
        throw BenchmarkError(message: "\(sampleRate) Hz: drift of \(worst) frames, \(received) frames of \(expected)")
    }
    return [
        Figure("\(sampleRate) Hz, \(hours) h: worst drift", unit: "frames", Double(worst)),
        Figure(
            "\(sampleRate) Hz, \(hours) h: memory at the end / after 10 s", unit: "MB", residentAtEnd,
            reference: residentAtStart, ratio: residentAtEnd / residentAtStart),
    ]
}

/// Megabytes of this process in memory.
private func residentMemory() throws -> Double {
    let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
    return (Double(fields[1]) ?? .nan) * Double(sysconf(Int32(_SC_PAGESIZE))) / 1e6
}
