import Foundation
import Steno
import StenoAnalysis
import StenoSoxr
import StenoWhisper
import Synchronization

let streaming = Entry(
    name: "streaming",
    method: """
        Live recognition of a file on a clock of its own: each decode takes the time that it takes, and no audio is there \
        before its time. Latency of a word: from its end in an offline decode, aligned by text, until it is told. With one \
        thread, time is processor time, whatever else the machine does.
        """,
    measure: measureStreaming)

private func measureStreaming(_ settings: Settings) throws -> [Figure] {
    let setup = ".steno"
    let audio = try samples(of: settings.audio ?? setup + "/samples/jfk.wav")
    let model = try WhisperModel(path: setup + "/models/ggml-tiny.en.bin")
    let detector = try SileroModel(path: setup + "/models/ggml-silero-v6.2.0.bin")
    var options = WhisperTranscriber.Options()
    options.threads = settings.threads
    options.streaming = settings.streaming
    let clock = Stopwatch(ofProcessor: settings.threads == 1)
    if settings.hours > 0 {
        return try endure(
            WhisperTranscriber(model: model, detector: detector, options: options), audio, hours: settings.hours, clock)
    }
    let live = try Simulation(
        WhisperTranscriber(model: model, detector: detector, options: options), audio, pace: 1600, clock)
    let memory = memory("VmHWM")
    let perSession = try memoryOfASession(
        WhisperTranscriber(model: model, detector: detector, options: options), Array(audio.prefix(12 * 16_000)))
    options.streaming = nil
    let offline = try Simulation(
        WhisperTranscriber(model: model, detector: detector, options: options), audio, pace: nil, clock)

    let seconds = Double(audio.count) / 16_000
    let pairs = matches(offline.words.map(\.key), live.words.map(\.key))
    let finals = pairs.map { live.words[$1].final - offline.words[$0].end }
    let volatiles = pairs.map { live.words[$1].first - offline.words[$0].end }
    var figures = [
        Figure("decoding time per audio time", unit: "", live.busy / seconds),
        Figure("decodes per minute", unit: "", Double(live.decodes) / seconds * 60),
        Figure("decodes that changed nothing", unit: "%", 100 * Double(live.wasted) / Double(max(1, live.decodes))),
    ]
    for (name, times) in [("final", finals.sorted()), ("volatile", volatiles.sorted())] where !times.isEmpty {
        func part(_ share: Double) -> Double { times[min(times.count - 1, Int(share * Double(times.count)))] }
        figures += [
            Figure("\(name) words: mean", unit: "s", times.reduce(0, +) / Double(times.count)),
            Figure("\(name) words: p50", unit: "s", part(0.5)), Figure("\(name) words: p95", unit: "s", part(0.95)),
            Figure("\(name) words: max", unit: "s", part(1)),
        ]
    }
    // No slow drift: the last quarter beside the first.
    let quarter = finals.count / 4
    if quarter > 0 {
        func mean(_ part: ArraySlice<Double>) -> Double { part.reduce(0, +) / Double(part.count) }
        let (first, last) = (mean(finals.prefix(quarter)), mean(finals.suffix(quarter)))
        figures.append(
            Figure(
                "final words: mean of the last quarter, of the first", unit: "s", last, reference: first,
                ratio: last / first))
    }
    let reference = settings.reference.map { plain($0) } ?? offline.words.map(\.key)
    func errors(_ words: [Word]) -> Double {
        100 * Double(distance(reference, words.map(\.key).filter { !$0.isEmpty })) / Double(max(1, reference.count))
    }
    figures.append(Figure("peak memory of this process, live", unit: "MB", Double(memory) / 1e6))
    figures.append(Figure("memory of a further session", unit: "MB", Double(perSession) / 1e6))
    figures.append(Figure("word error rate", unit: "%", errors(live.words), reference: errors(offline.words)))
    return figures
}

private struct Stopwatch: Sendable {
    /// Whether it shows the processor time of the process, and not the time on the wall.
    var ofProcessor: Bool

    var seconds: Double {
        var time = timespec()
        unsafe clock_gettime(ofProcessor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

/// Bytes, of a line of the process's status.
private func memory(_ name: String) -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix(name) }
    return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) * 1024
}

/// What each of three more sessions on one model adds once it has heard `audio`.
private func memoryOfASession(_ transcriber: WhisperTranscriber, _ audio: [Float]) throws -> Int {
    let format = AudioFormat(sampleRate: 16_000, channelLayout: .mono, sampleFormat: .float32)
    let before = memory("VmRSS")
    let sessions = try (0..<3).map { _ in
        let recognizer = try transcriber.makeRecognizer(
            RecognizerSession(format: format, sink: { _ in }, cancelled: { false }))
        try recognizer.accept(
            AnalyzerInput(buffer: AudioBuffer(interleaved: audio, sampleRate: 16_000), bufferStartTime: .zero))
        return recognizer
    }
    return withExtendedLifetime(sessions) { (memory("VmRSS") - before) / 3 }
}

private struct Word {
    var text: String
    var end: Double
    /// When it was told first, and when it was final.
    var first, final: Double
    var key: String { plain(text).joined() }
}

/// One session over the whole audio.
private struct Simulation {
    var words: [Word] = []
    var busy = 0.0
    var decodes = 0
    /// Decodes after which nothing new was told.
    var wasted = 0

    /// - Parameter pace: Frames that come at once; nil for all of them.
    init(_ transcriber: WhisperTranscriber, _ audio: [Float], pace: Int?, _ clock: Stopwatch) throws {
        let sink = Mutex<[(Double, TranscriptionResult)]>([])
        let format = AudioFormat(sampleRate: 16_000, channelLayout: .mono, sampleFormat: .float32)
        let session = RecognizerSession<TranscriptionResult>(
            format: format, sink: { result in sink.withLock { $0.append((clock.seconds, result)) } },
            cancelled: { false })
        let recognizer = try transcriber.makeRecognizer(session)
        var (now, fed) = (0.0, 0)
        var told: [(time: Double, result: TranscriptionResult)] = []
        func run(_ body: () throws -> Void) rethrows {
            let start = clock.seconds
            try body()
            let results = sink.withLock { results in
                defer { results = [] }
                return results
            }
            told += results.map { (now + $0 - start, $1) }
            let spent = clock.seconds - start
            // What only the detector heard takes less.
            if spent > 0.02 {
                decodes += 1
                if results.isEmpty { wasted += 1 }
            }
            busy += spent
            now += spent
        }
        while fed < audio.count {
            let due = min(audio.count, fed + (pace ?? audio.count))
            now = max(now, Double(due) / 16_000)
            let count = pace == nil ? due - fed : max(due, min(audio.count, Int(now * 16_000))) - fed
            try run {
                try recognizer.accept(
                    AnalyzerInput(
                        buffer: AudioBuffer(interleaved: Array(audio[fed..<fed + count]), sampleRate: 16_000),
                        bufferStartTime: MediaTime(frames: Int64(fed), sampleRate: 16_000)))
            }
            fed += count
        }
        try run { try recognizer.finish() }

        var seen: [Int: (key: String, time: Double)] = [:]
        for (time, result) in told {
            for (offset, word) in result.words.enumerated() {
                let (place, key) = (words.count + offset, plain(word.text).joined())
                if seen[place]?.key != key { seen[place] = (key, time) }
            }
            guard result.isFinal else { continue }
            for word in result.words {
                let first = seen[words.count]?.time ?? time
                words.append(Word(text: word.text, end: word.range?.end.seconds ?? 0, first: first, final: time))
            }
        }
    }
}

/// Hears the audio again and again for hours, on the clock of a simulation, and keeps nothing: memory, and the latency of
/// final results against the end of their own last word, for every five minutes of audio.
private func endure(_ transcriber: WhisperTranscriber, _ audio: [Float], hours: Double, _ clock: Stopwatch) throws
    -> [Figure]
{
    let told = Mutex<[(instant: Double, end: Double)]>([])
    let format = AudioFormat(sampleRate: 16_000, channelLayout: .mono, sampleFormat: .float32)
    let session = RecognizerSession<TranscriptionResult>(
        format: format,
        sink: { result in
            guard result.isFinal, let end = result.words.last?.range?.end else { return }
            told.withLock { $0.append((clock.seconds, end.seconds)) }
        }, cancelled: { false })
    let recognizer = try transcriber.makeRecognizer(session)
    let total = Int(hours * 3600 * 16_000)
    var (now, fed) = (0.0, 0)
    var latencies: [Double] = []
    var stretches: [(memory: Double, latency: Double)] = []
    while fed < total {
        now = max(now, Double(fed + 1600) / 16_000)
        let part = (fed..<min(total, Int(now * 16_000))).map { audio[$0 % audio.count] }
        let start = clock.seconds
        try recognizer.accept(
            AnalyzerInput(
                buffer: AudioBuffer(interleaved: part, sampleRate: 16_000),
                bufferStartTime: MediaTime(frames: Int64(fed), sampleRate: 16_000)))
        told.withLock { told in
            latencies += told.map { now + $0.instant - start - $0.end }
            told.removeAll(keepingCapacity: true)
        }
        now += clock.seconds - start
        fed += part.count
        guard fed >= (stretches.count + 1) * 300 * 16_000 || fed == total else { continue }
        stretches.append((Double(memory("VmRSS")) / 1e6, latencies.reduce(0, +) / Double(max(1, latencies.count))))
        latencies.removeAll(keepingCapacity: true)
        let line = stretches.last.map { String(format: "%.1f MB, %.2f s", $0.memory, $0.latency) } ?? ""
        FileHandle.standardError.write(Data("after \(fed / 16_000) s of audio: \(line)\n".utf8))
    }
    try recognizer.finish()
    let (first, rest) = (stretches[0], stretches.dropFirst())
    return [
        Figure("memory after 5 min; most, later", unit: "MB", first.memory, reference: rest.map(\.memory).max()),
        Figure(
            "mean latency in the first 5 min; worst, later", unit: "s", first.latency,
            reference: rest.map(\.latency).max()),
    ]
}

private func samples(of path: String) throws -> [Float] {
    let source = try AudioFileSource(path: path)
    let target = AudioFormat(sampleRate: 16_000, channelLayout: .mono, sampleFormat: .float32)
    let converter = AudioConverter(to: target, resampler: SoxrResamplerFactory())
    var (buffer, output) = (
        AudioBuffer(format: source.format, frameCapacity: source.format.sampleRate),
        AudioBuffer(format: target, frameCapacity: 0)
    )
    var samples: [Float] = []
    while try source.read(into: &buffer) != .end {
        try converter.convert(buffer, into: &output)
        samples += output.samples(of: Float.self)
    }
    try converter.finish(into: &output)
    return samples + output.samples(of: Float.self)
}

/// Lower case, without punctuation.
private func plain(_ text: String) -> [String] {
    text.lowercased().split(whereSeparator: \.isWhitespace).map { $0.filter { $0.isLetter || $0.isNumber } }
        .filter { !$0.isEmpty }
}

private func distance(_ a: [String], _ b: [String]) -> Int { Int(table(a, b)[a.count][b.count]) }

/// Positions of equal words in an alignment with the least edits.
private func matches(_ a: [String], _ b: [String]) -> [(Int, Int)] {
    let table = table(a, b)
    var (i, j) = (a.count, b.count)
    var pairs: [(Int, Int)] = []
    while i > 0, j > 0 {
        if table[i][j] == table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1) {
            (i, j) = (i - 1, j - 1)
            if a[i] == b[j] { pairs.append((i, j)) }
        } else if table[i][j] == table[i - 1][j] + 1 {
            i -= 1
        } else {
            j -= 1
        }
    }
    return pairs.reversed()
}

private func table(_ a: [String], _ b: [String]) -> [[Int32]] {
    var rows = [Array(0...Int32(b.count))]
    for i in a.indices {
        var row = [Int32(i) + 1]
        for j in b.indices {
            row.append(min(rows[i][j] + (a[i] == b[j] ? 0 : 1), rows[i][j + 1] + 1, row[j] + 1))
        }
        rows.append(row)
    }
    return rows
}
