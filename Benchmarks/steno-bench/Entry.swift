import StenoWhisper

/// One benchmark: what it measures, how, and what came out.
struct Entry: Sendable {
    let name: String
    /// One sentence: what is measured, against what.
    let method: String
    let measure: @Sendable (Settings) throws -> [Figure]
}

let entries = [transcription, streaming, retiming, conversion, quality]

/// What the command line asks of the entries.
struct Settings {
    /// Pairs of our run and the reference's.
    var runs = 5
    /// What is transcribed; nil for the sample of the set-up, repeated to a minute.
    var audio: String?
    /// Nil for what each entry takes by itself.
    var threads: Int?
    var streaming = WhisperTranscriber.Streaming.lowLatency
    /// Hours of audio for the simulation of drift; 0 leaves it out.
    var hours = 0.0
    /// What is said in the audio; nil where nobody wrote it down.
    var reference: String?
}

/// One number. With a reference that was measured in the same run, the ratio says how much of it ours takes: below 1 is
/// better.
struct Figure: Encodable {
    var name: String
    var unit: String
    var ours: Double
    var reference: Double?
    var ratio: Double?

    init(_ name: String, unit: String, _ ours: Double, reference: Double? = nil, ratio: Double? = nil) {
        self.name = name
        self.unit = unit
        self.ours = ours
        self.reference = reference
        self.ratio = ratio
    }

    /// Medians over pairs; that of the ratios is not the ratio of the medians.
    init(_ name: String, unit: String, pairs: [(ours: Double, reference: Double)]) {
        self.init(
            name, unit: unit, median(pairs.map(\.ours)), reference: median(pairs.map(\.reference)),
            ratio: median(pairs.map { $0.ours / $0.reference }))
    }
}

/// Runs both in turn, each first in every other pair, so that a change of the machine's speed meets both.
func pairs<T>(_ count: Int, _ ours: () throws -> T, _ reference: () throws -> T) rethrows -> [(ours: T, reference: T)] {
    var pairs: [(ours: T, reference: T)] = []
    for index in 0..<count {
        if index.isMultiple(of: 2) {
            pairs.append((try ours(), try reference()))
        } else {
            let other = try reference()
            pairs.append((try ours(), other))
        }
    }
    return pairs
}

struct BenchmarkError: Error {
    var message: String
}

/// The rows of Conversion.swift.
let conversion = Entry(
    name: "conversion",
    method: "Processor time for a second of audio through AudioConverter, against the same work in C on libsoxr."
) { _ in
    try benchmarkConversion().map { row in
        Figure(
            row.name, unit: "us", row.seconds * 1e6, reference: row.referenceSeconds.map { $0 * 1e6 },
            ratio: row.ratio.map { 1 / $0 })
    }
}

let quality = Entry(
    name: "quality", method: "Sines through each resampler to 16 kHz mono: pass band, aliases and images, noise."
) { _ in
    try measureConversionQuality().flatMap { row in
        [
            Figure("\(row.name), ripple", unit: "dB", row.ripple),
            Figure("\(row.name), aliases and images below", unit: "dB", row.rejection),
            Figure("\(row.name), signal to noise in Float32", unit: "dB", row.float32),
            Figure("\(row.name), signal to noise in Int16", unit: "dB", row.int16),
        ]
    }
}
