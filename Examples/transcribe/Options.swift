import Foundation
import Steno

/// What the command line asks for.
struct Options {
    var model = "tiny.en"
    var language: String?
    /// nil prints lines with their times, for people.
    var format: TranscriptFormat?
    var output = "-"
    var threads: Int?
    var usesDetector = true
    /// A file for each input goes here.
    var outputFolder: String?
    var isRecursive = false
    var isForced = false
    var jobs = 1
    /// Of so many parts of the work, this one, from 1.
    var shard = (index: 1, count: 1)
    var files: [String] = []
    var wantsHelp = false

    static let help = """
        Usage: transcribe [options] [--] FILE...

        Prints what is said in audio files. FILE is WAV, FLAC, MP3, M4A, WebM or whatever else libsndfile or FFmpeg reads;
        - is standard input.

          --backend NAME      the recognizer; whisper is the only one so far
          --model NAME|PATH   a model file, or a name such as tiny.en for ggml-tiny.en.bin in $STENO_MODELS,
                              ./.steno/models or ~/.local/share/steno/models (default: tiny.en)
          --language CODE     the language spoken, such as en or pt-BR (default: the model's, or detected)
          --format FORMAT     txt, vtt, srt, json or jsonl (default: lines with times)
          --output FILE       where the text goes; - is standard output (default: -)
          --threads N         threads for decoding (default: one for each core)
          --no-detector       decode everything, also where the detector hears no speech
          --output-dir DIR    a file for each FILE, which may be a folder; done ones are left out
          --recursive         folders in folders too
          --force             do again what is newer than its FILE
          --jobs N            files at a time (default: 1)
          --shard I/N         of N equal parts of the files, the one with number I
          --help              this text

        Exit codes: 0 done, 64 wrong usage, 65 not audio, 66 no such input, 69 model or engine missing, 70 decoding failed,
        74 output failed, 130 interrupted (what was done by then is written).

        """

    struct UsageError: Error {
        var message: String
    }

    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        var endOfOptions = false
        while let argument = rest.popFirst() {
            guard !endOfOptions, argument.hasPrefix("-"), argument != "-" else {
                files.append(argument)
                continue
            }
            if argument == "--" {
                endOfOptions = true
                continue
            }
            // Both `--name value` and `--name=value`.
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts[0]
            func value() throws(UsageError) -> String {
                if parts.count == 2 { return parts[1] }
                guard let next = rest.popFirst() else { throw UsageError(message: "\(name) needs a value") }
                return next
            }
            func flag() throws(UsageError) {
                if parts.count == 2 { throw UsageError(message: "\(name) takes no value") }
            }
            switch name {
            case "--help", "-h":
                try flag()
                wantsHelp = true
            case "--no-detector":
                try flag()
                usesDetector = false
            case "--recursive":
                try flag()
                isRecursive = true
            case "--force":
                try flag()
                isForced = true
            case "--output-dir": outputFolder = try value()
            case "--jobs":
                let count = try value()
                guard let number = Int(count), (1...64).contains(number) else {
                    throw UsageError(message: "--jobs takes a number from 1 to 64, not \(count)")
                }
                jobs = number
            case "--shard":
                let text = try value()
                let numbers = text.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
                guard numbers.count == 2, numbers[0] > 0, numbers[0] <= numbers[1] else {
                    throw UsageError(message: "--shard takes I/N, such as 1/4, not \(text)")
                }
                shard = (numbers[0], numbers[1])
            case "--model": model = try value()
            case "--language": language = try value()
            case "--output": output = try value()
            case "--backend":
                let backend = try value()
                guard backend == "whisper" else { throw UsageError(message: "no back end is called \(backend)") }
            case "--format":
                let format = try value()
                guard let known = TranscriptFormat(rawValue: format) else {
                    let names = TranscriptFormat.allCases.map(\.rawValue).joined(separator: ", ")
                    throw UsageError(message: "\(format) is not one of \(names)")
                }
                self.format = known
            case "--threads":
                let count = try value()
                guard let threads = Int(count), (1...512).contains(threads) else {
                    throw UsageError(message: "--threads takes a number from 1 to 512, not \(count)")
                }
                self.threads = threads
            default:
                throw UsageError(message: "there is no option \(name)")
            }
        }
        if wantsHelp { return }
        if files.isEmpty { throw UsageError(message: "which file?") }
        guard outputFolder == nil else {
            if output != "-" { throw UsageError(message: "--output and --output-dir exclude each other") }
            if files.contains("-") { throw UsageError(message: "standard input has no name for --output-dir") }
            return
        }
        if isRecursive || isForced || jobs > 1 || shard.count > 1 {
            throw UsageError(message: "--recursive, --force, --jobs and --shard need --output-dir")
        }
        if files.count > 1, let format, ![.text, .jsonLines].contains(format) {
            throw UsageError(message: "several files do not fit into one \(format.rawValue) output; call once for each")
        }
        for file in files where Options.isSameFile(file, output) {
            throw UsageError(message: "the output would overwrite the input \(file)")
        }
    }

    private static func isSameFile(_ a: String, _ b: String) -> Bool {
        var (first, second) = (stat(), stat())
        guard unsafe stat(a, &first) == 0, unsafe stat(b, &second) == 0 else { return false }
        return first.st_mode & S_IFMT == S_IFREG && first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }
}
