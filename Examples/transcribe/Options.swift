import ExampleRecognizers
import ExampleSupport
import Foundation
import Steno
import StenoMedia

/// What the command line asks for.
struct Options {
    var recognizer = RecognizerChoice()
    /// What the files hold that have no header; nil where they have one.
    var raw: RawFormat?
    /// nil prints lines with their times, for people.
    var format: TranscriptFormat?
    var output = "-"
    /// Where a long file's work is kept until it is done.
    var checkpoint: String?
    /// A file for each input goes here.
    var outputFolder: String?
    var isRecursive = false
    var isForced = false
    var jobs = 1
    /// Of so many parts of the work, this one, from 1.
    var shard = (index: 1, count: 1)
    var files: [String] = []

    static let help = """
        Usage: transcribe [options] [--] FILE...

        Prints what is said in audio files. FILE is WAV, FLAC, MP3, M4A, WebM or whatever else libsndfile or FFmpeg reads;
        - is standard input.

        \(RecognizerChoice.help)
          --raw FORMAT,RATE,CHANNELS
                              each FILE is samples without a header, such as s16le,16000,1; FORMAT is one of
                              \(RawFormat.names)
          --format FORMAT     txt, vtt, srt, json or jsonl (default: lines with times)
          --output FILE       where the text goes; - is standard output (default: -)
          --resume CHECKPOINT keep what is done of one long FILE in the file CHECKPOINT, and go on from there after an
                              interruption; with --output-dir that is done by itself
          --threads N         threads for decoding (default: one for each core); not for vosk
          --no-detector       decode everything, also where the detector hears no speech; not for vosk
          --output-dir DIR    a file for each FILE, which may be a folder; done ones are left out
          --recursive         folders in folders too
          --force             do again what is newer than its FILE
          --jobs N            files at a time (default: 1)
          --shard I/N         of N equal parts of the files, the one with number I
          --help              this text

        Exit codes: 0 done, 64 wrong usage, 65 not audio, 66 no such input, 69 model or engine missing, 70 decoding failed,
        74 output failed, 130 interrupted by Ctrl-C or SIGTERM (what was done by then is written; a second one ends at once).

        """

    /// Nil when only the help is wanted.
    init?(_ arguments: [String]) throws(ArgumentReader.UsageError) {
        var reader = ArgumentReader(arguments)
        while let argument = try reader.next() {
            switch argument {
            case .operand(let file): files.append(file)
            case .option("--help"), .option("-h"): return nil
            case .option("--raw"): raw = try RawFormat(reader.value())
            case .option("--format"): format = try reader.choice()
            case .option("--output"): output = try reader.value()
            case .option("--no-detector"): recognizer.usesDetector = false
            case .option("--resume"): checkpoint = try reader.value()
            case .option("--output-dir"): outputFolder = try reader.value()
            case .option("--recursive"): isRecursive = true
            case .option("--force"): isForced = true
            case .option("--jobs"):
                let count = try reader.value()
                guard let number = Int(count), (1...64).contains(number) else {
                    throw .init("--jobs takes a number from 1 to 64, not \(count)")
                }
                jobs = number
            case .option("--shard"):
                let text = try reader.value()
                let numbers = text.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
                guard numbers.count == 2, numbers[0] > 0, numbers[0] <= numbers[1] else {
                    throw .init("--shard takes I/N, such as 1/4, not \(text)")
                }
                shard = (numbers[0], numbers[1])
            case .option("--threads"):
                let count = try reader.value()
                guard let threads = Int(count), (1...512).contains(threads) else {
                    throw .init("--threads takes a number from 1 to 512, not \(count)")
                }
                recognizer.threads = threads
            case .option(let name):
                guard try recognizer.take(name, from: &reader) else { throw reader.unknownOption }
            }
        }
        try recognizer.check()
        if files.isEmpty { throw .init("which file?") }
        guard outputFolder == nil else {
            if checkpoint != nil { throw .init("--output-dir resumes by itself, without --resume") }
            if output != "-" { throw .init("--output and --output-dir exclude each other") }
            if files.contains("-") { throw .init("standard input has no name for --output-dir") }
            return
        }
        if isRecursive || isForced || jobs > 1 || shard.count > 1 {
            throw .init("--recursive, --force, --jobs and --shard need --output-dir")
        }
        if files.count > 1, let format, ![.text, .jsonLines].contains(format) {
            throw .init("several files do not fit into one \(format.rawValue) output; call once for each")
        }
        if checkpoint != nil, files.count > 1 || files == ["-"] {
            throw .init("--resume is for one file, and not for standard input")
        }
        for file in files where isSameFile(file, output) {
            throw .init("the output would overwrite the input \(file)")
        }
    }
    /// - Parameter file: `-` is standard input.
    func open(_ file: String) throws(StenoError) -> sending any CaptureStream {
        if let raw { return try raw.open(file) }
        return file == "-" ? try openAudio(descriptor: STDIN_FILENO) : try openAudio(path: file)
    }

    /// What the text of a file depends on besides its audio, for a checkpoint.
    func identity(of recognizer: RecognizerChoice) -> String {
        recognizer.identity + (raw.map { ", raw \($0.text)" } ?? "")
    }
}
