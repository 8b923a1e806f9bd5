import ChildProcesses
import Foundation
import Steno
import TestSupport
import Testing

/// One run of the program that was built beside this test bundle.
struct Run {
    let status: Int32
    let output: Data
    let errors: String

    var text: String { String(decoding: output, as: UTF8.self) }
}

/// The checkout, where the set-up put the models and the sample.
let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path
let jfk = root + "/.steno/samples/jfk.wav"
let model = root + "/.steno/models/ggml-tiny.en.bin"
let voskModel = root + "/.steno/vosk/model-ko"
let korean = "조금만 생각을 하면서 살면"

/// One thread, so that a decode beside other tests takes no longer than it must.
func arguments(_ arguments: [String]) -> [String] {
    [productPath("transcribe"), "--model", model, "--threads", "1"] + arguments
}

func transcribe(_ extra: String..., input: String = "/dev/null") throws -> Run {
    try run(arguments(extra), input: input)
}

func run(_ command: [String], input: String = "/dev/null") throws -> Run {
    let folder = try Folder()
    let process = try start(command, input: input, in: folder)
    let outcome = process.wait()
    return Run(
        status: outcome.status, output: try Data(contentsOf: URL(fileURLWithPath: folder.path("output"))),
        errors: try String(contentsOfFile: folder.path("errors"), encoding: .utf8))
}

/// A run that goes on; its output is in the folder's `output` and `errors`.
func start(_ command: [String], input: String = "/dev/null", in folder: Folder) throws -> ChildProcess {
    unsafe setenv("STENO_MODELS", root + "/.steno/models", 1)
    unsafe setenv("STENO_VOSK_LIBRARY", root + "/.steno/vosk/lib/libvosk.so", 1)
    return try ChildProcess(command, input: input, output: folder.path("output"), errors: folder.path("errors"))
}

extension Folder {
    /// A file with this content.
    func file(_ name: String, _ content: some Sequence<UInt8>) throws -> String {
        try write(content, name)
    }

    /// A file that one of the tools of the set-up makes.
    func file(_ name: String, by command: (_ path: String) -> [String]) throws -> String {
        let command = command(path(name))
        let outcome = try ChildProcess(command, errors: path("tool-errors")).wait()
        let errors = try String(contentsOfFile: path("tool-errors"), encoding: .utf8)
        try #require(outcome.status == 0, "\(command.joined(separator: " ")): \(errors)")
        return path(name)
    }
}

/// The sample's words, which the smallest model gets right in any encoding.
func expectTheSample(_ text: String, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
    let words = text.lowercased().split { !$0.isLetter }.joined(separator: " ")
    #expect(
        words.contains("what your country can do for you ask what you can do for your country"),
        comment, sourceLocation: sourceLocation)
}
