import ExampleRecognizers
import ExampleSupport
import Foundation
import Steno

/// What the command line asks for.
struct Options {
    var recognizer = RecognizerChoice()
    /// nil prints lines with their times, for people.
    var format: TranscriptFormat?
    var output = "-"
    var files: [String] = []

    static let help = """
        Usage: transcribe [options] [--] FILE...

        Prints what is said in audio files. FILE is WAV, FLAC, MP3, Ogg or whatever else libsndfile reads; - is standard
        input.

        \(RecognizerChoice.help)
          --format FORMAT     txt, vtt, srt, json or jsonl (default: lines with times)
          --output FILE       where the text goes; - is standard output (default: -)
          --threads N         threads for decoding (default: one for each core); not for vosk
          --no-detector       decode everything, also where the detector hears no speech; not for vosk
          --help              this text

        Exit codes: 0 done, 64 wrong usage, 65 not audio, 66 no such input, 69 model or engine missing, 70 decoding failed,
        74 output failed, 130 interrupted (what was done by then is written).

        """

    /// Nil when only the help is wanted.
    init?(_ arguments: [String]) throws(ArgumentReader.UsageError) {
        var reader = ArgumentReader(arguments)
        while let argument = try reader.next() {
            switch argument {
            case .operand(let file): files.append(file)
            case .option("--help"), .option("-h"): return nil
            case .option("--format"): format = try reader.choice()
            case .option("--output"): output = try reader.value()
            case .option("--no-detector"): recognizer.usesDetector = false
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
        if files.count > 1, let format, ![.text, .jsonLines].contains(format) {
            throw .init("several files do not fit into one \(format.rawValue) output; call once for each")
        }
        for file in files where Options.isSameFile(file, output) {
            throw .init("the output would overwrite the input \(file)")
        }
    }

    private static func isSameFile(_ a: String, _ b: String) -> Bool {
        var (first, second) = (stat(), stat())
        guard unsafe stat(a, &first) == 0, unsafe stat(b, &second) == 0 else { return false }
        return first.st_mode & S_IFMT == S_IFREG && first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }
}
