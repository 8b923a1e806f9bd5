import ExampleRecognizers
import ExampleSupport
import Foundation
import Steno

/// Many files into one folder, several at a time, with one model. A file that fails does not stop the others.
struct Batch {
    struct Job: Sendable {
        var input: String
        var output: String
        /// Whether it was found in a folder: then it may be something else than audio.
        var isFound: Bool
    }

    private enum Outcome: Sendable {
        case done(seconds: Double)
        case failed(StenoError)
        case notAudio
    }

    private struct Summary {
        var (done, upToDate, notAudio) = (0, 0, 0)
        var seconds = 0.0
        var failures: [StenoError] = []
        var isInterrupted = false

        /// The code of the failures where they have one in common.
        var code: ExitCode {
            if isInterrupted { return .interrupted }
            let codes = Set(failures.map { ExitCode($0) })
            return codes.count > 1 ? .failed : codes.first ?? .done
        }
    }

    let options: Options
    let folder: String

    func run() async -> ExitCode {
        let start = ContinuousClock.now
        var summary = Summary()
        do throws(StenoError) {
            let all = try jobs()
            var pending = options.isForced ? all : all.filter { !isUpToDate($0) }
            summary.upToDate = all.count - pending.count
            // One that was killed between its last two steps left its checkpoint.
            if !options.isForced { for job in all where isUpToDate(job) { checkpoint(of: job, "").remove() } }
            if !pending.isEmpty {
                var recognizer = options.recognizer
                if recognizer.backend == .whisper, recognizer.threads == nil {
                    recognizer.threads = max(1, ProcessInfo.processInfo.activeProcessorCount / options.jobs)
                }
                let identity = options.identity(of: recognizer)
                try await transcribe(&pending, with: recognizer.load(isLive: false), identity, &summary)
            }
        } catch {
            if error.code == .cancelled {
                summary.isInterrupted = true
            } else {
                summary.failures.append(error)
                Terminal.say("transcribe: \(error.message)\n")
            }
        }
        let elapsed = max(0.001, (ContinuousClock.now - start) / .seconds(1))
        var parts = ["\(summary.done) done"]
        if !summary.failures.isEmpty { parts.append("\(summary.failures.count) failed") }
        if summary.upToDate > 0 { parts.append("\(summary.upToDate) up to date") }
        if summary.notAudio > 0 { parts.append("\(summary.notAudio) not audio") }
        if summary.isInterrupted { parts.append("interrupted") }
        let speed = String(
            format: "%.1f s of audio in %.1f s, %.1fx", summary.seconds, elapsed, summary.seconds / elapsed)
        Terminal.say("transcribe: \(parts.joined(separator: ", ")); \(speed)\n")
        return summary.code
    }

    private func transcribe(
        _ pending: inout [Job],
        with makeTranscriber: @escaping @Sendable () throws(StenoError) -> any TranscriberModule, _ identity: String,
        _ summary: inout Summary
    ) async throws(StenoError) {
        // Files of equal length at a time would do; the longest first leaves the least waiting at the end.
        pending.sort { (size(of: $0.input), $1.input) > (size(of: $1.input), $0.input) }
        let fatal = await withTaskGroup(of: (Job, Outcome).self, returning: StenoError?.self) { group in
            var rest = pending[...]
            func startNext() {
                guard let job = rest.popFirst() else { return }
                group.addTask {
                    do throws(StenoError) {
                        // Not within the tuple: where that throws, an optimized build (Swift 6.3.1) releases `job` twice.
                        let seconds = try await transcribe(job, with: makeTranscriber, identity)
                        return (job, .done(seconds: seconds))
                    } catch {
                        return (job, job.isFound && error.code == .fileNotAudio ? .notAudio : .failed(error))
                    }
                }
            }
            for _ in 0..<options.jobs { startNext() }
            for await (job, outcome) in group {
                switch outcome {
                case .done(let seconds):
                    summary.done += 1
                    summary.seconds += seconds
                case .notAudio: summary.notAudio += 1
                case .failed(let error):
                    // These would meet every other file as well.
                    if [.cancelled, .outputFailed].contains(error.code) {
                        group.cancelAll()
                        return error
                    }
                    summary.failures.append(error)
                    Terminal.say("transcribe: \(job.input): \(error.message)\n")
                }
                startNext()
            }
            return nil
        }
        if let fatal { throw fatal }
    }

    /// Returns the seconds of audio. The output appears whole, or not at all.
    private func transcribe(
        _ job: Job, with makeTranscriber: @escaping @Sendable () throws(StenoError) -> any TranscriberModule,
        _ identity: String
    ) async throws(StenoError) -> Double {
        let target = URL(fileURLWithPath: job.output)
        let folder = target.deletingLastPathComponent()
        let partial = folder.appendingPathComponent(".\(target.lastPathComponent).partial").path
        let checkpoint = checkpoint(of: job, identity)
        if options.isForced { checkpoint.remove() }
        var output = Output(path: partial, format: options.format ?? .text)
        do throws(StenoError) {
            let input = job.input
            let transcription = FileTranscription(
                checkpoint: checkpoint, transcriber: makeTranscriber
            ) { () throws(StenoError) in
                let source = try options.open(input)
                try makeFolder(folder)
                return source
            }
            let transcript = try await transcription.run { update in
                if case .notice(let text) = update { Terminal.say("transcribe: \(input): \(text)\n") }
            }
            for segment in transcript.segments { try output.append(segment) }
            try output.end(transcript)
            guard unsafe rename(partial, job.output) == 0 else {
                let reason = unsafe String(cString: strerror(errno))
                throw StenoError(.outputFailed, "cannot write \(job.output): \(reason)")
            }
            checkpoint.remove()
            for event in transcript.events where event.kind == .fileWarning {
                Terminal.say("transcribe: \(job.input): \(event.detail)\n")
            }
            return transcript.duration.seconds
        } catch {
            unsafe _ = unlink(partial)
            throw error
        }
    }

    private func checkpoint(of job: Job, _ identity: String) -> TranscriptionCheckpoint {
        let target = URL(fileURLWithPath: job.output)
        let name = ".\(target.lastPathComponent).checkpoint"
        return TranscriptionCheckpoint(
            path: target.deletingLastPathComponent().appendingPathComponent(name).path, audioPath: job.input,
            identity: identity)
    }

    private func makeFolder(_ url: URL) throws(StenoError) {
        do {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        } catch {
            throw StenoError(.outputFailed, "cannot make \(url.path): \(error.localizedDescription)", underlying: error)
        }
    }
}

// What there is to do.
extension Batch {
    /// The files of this shard, in an order that depends on nothing but their names.
    func jobs() throws(StenoError) -> [Job] {
        var inputs: [(path: String, name: String, isFound: Bool)] = []
        for file in options.files {
            var isFolder: ObjCBool = false
            if unsafe FileManager.default.fileExists(atPath: file, isDirectory: &isFolder), isFolder.boolValue {
                for name in try names(in: file) { inputs.append((file + "/" + name, name, true)) }
            } else {
                inputs.append((file, URL(fileURLWithPath: file).lastPathComponent, false))
            }
        }
        // talk.wav becomes talk.vtt, unless there is a talk.mp3 too.
        let suffix = (options.format ?? .text).rawValue
        func short(_ name: String) -> String { URL(fileURLWithPath: "/" + name).deletingPathExtension().path }
        let counts = Dictionary(inputs.map { (short($0.name), 1) }, uniquingKeysWith: +)
        var outputs: [String: String] = [:]
        var jobs: [Job] = []
        for input in inputs {
            let stem = counts[short(input.name)] == 1 ? short(input.name) : "/" + input.name
            let output = folder + stem + "." + suffix
            if let other = outputs.updateValue(input.path, forKey: output) {
                throw StenoError(.invalidArgument, "\(other) and \(input.path) would both become \(output)")
            }
            jobs.append(Job(input: input.path, output: output, isFound: input.isFound))
        }
        jobs.sort { $0.output < $1.output }
        let (index, count) = options.shard
        return jobs.enumerated().filter { $0.offset % count == index - 1 }.map(\.element)
    }

    /// Files in a folder by their paths in it, but hidden ones and the outputs.
    private func names(in input: String) throws(StenoError) -> [String] {
        guard let enumerator = FileManager.default.enumerator(atPath: input) else {
            throw StenoError(.fileNotFound, "\(input) cannot be listed")
        }
        let outputs = URL(fileURLWithPath: folder).standardizedFileURL.path + "/"
        var names: [String] = []
        while let name = enumerator.nextObject() as? String {
            let path = URL(fileURLWithPath: input + "/" + name).standardizedFileURL.path
            let isFolder = enumerator.fileAttributes?[.type] as? FileAttributeType == .typeDirectory
            let isHidden = name.split(separator: "/").last?.hasPrefix(".") == true
            if isFolder {
                if isHidden || !options.isRecursive || path + "/" == outputs { enumerator.skipDescendants() }
            } else if !isHidden, !path.hasPrefix(outputs) {
                names.append(name)
            }
        }
        return names
    }

    private func isUpToDate(_ job: Job) -> Bool {
        var (input, output) = (stat(), stat())
        guard unsafe stat(job.input, &input) == 0, unsafe stat(job.output, &output) == 0 else { return false }
        let (made, changed) = (output.st_mtim, input.st_mtim)
        return (made.tv_sec, made.tv_nsec) >= (changed.tv_sec, changed.tv_nsec)
    }

    private func size(of path: String) -> Int {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}
