import ChildProcesses
import Foundation
import Steno

let transcription = Entry(
    name: "transcription",
    method: """
        A whole file by `transcribe` and by whisper-cli, as processes: same model, threads and beam; without a detector, \
        with each one's own use of the same detector, and with ours alone. Medians of pairs.
        """,
    measure: measureTranscription)

private func measureTranscription(_ settings: Settings) throws -> [Figure] {
    let setup = ".steno"
    let (cli, model) = (setup + "/bin/whisper-cli", setup + "/models/ggml-tiny.en.bin")
    let detector = setup + "/models/ggml-silero-v6.2.0.bin"
    for file in [productPath("transcribe"), cli, model, detector]
    where !FileManager.default.fileExists(atPath: file) {
        throw BenchmarkError(
            message: "\(file) is missing: run Scripts/bootstrap --tests and swift build -c release in this folder")
    }
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("steno-bench-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let audio = try settings.audio ?? minute(of: setup + "/samples/jfk.wav", in: folder)

    func run(_ arguments: [String]) throws -> ChildProcess.Outcome {
        let errors = folder.appendingPathComponent("errors").path
        let outcome = try ChildProcess(arguments, errors: errors).wait()
        guard outcome.status == 0 else {
            let reason = (try? String(contentsOfFile: errors, encoding: .utf8)) ?? ""
            throw BenchmarkError(message: "\(arguments[0]) ended with \(outcome.status): \(reason)")
        }
        return outcome
    }
    let threads = String(settings.threads ?? 2)
    // whisper-cli's beam is ours: five hypotheses.
    let ours = [productPath("transcribe"), "--model", model, "--threads", threads, audio]
    let reference = [cli, "-np", "-m", model, "-t", threads, "-f", audio]
    var figures: [Figure] = []
    for (name, own, other) in [
        ("no detector", ["--no-detector"], []), ("detector", [], ["--vad", "-vm", detector]), ("our detector", [], []),
    ] {
        let outcomes = try pairs(settings.runs) {
            try run(ours + own)
        } _: {
            try run(reference + other)
        }
        func figure(_ what: String, _ unit: String, _ value: (ChildProcess.Outcome) -> Double) -> Figure {
            Figure("\(name): \(what)", unit: unit, pairs: outcomes.map { (value($0.ours), value($0.reference)) })
        }
        figures += [
            figure("wall time", "s", \.wallSeconds), figure("processor time", "s", \.processorSeconds),
            figure("peak memory", "MB") { Double($0.peakMemory) / 1e6 },
        ]
    }
    return figures
}

/// The sample, again and again, to 60 s.
private func minute(of sample: String, in folder: URL) throws -> String {
    let path = folder.appendingPathComponent("minute.wav").path
    var source = try AudioFileSource(path: sample)
    let writer = try AudioFileWriter(path: path, type: .wav, format: source.format)
    var buffer = AudioBuffer(format: source.format, frameCapacity: source.format.sampleRate)
    while writer.framesWritten < Int64(60 * source.format.sampleRate) {
        if try source.read(into: &buffer) == .end { source = try AudioFileSource(path: sample) }
        try writer.write(buffer)
    }
    try writer.close()
    return path
}
