import Foundation
import StenoAnalysis
public import StenoAudio

/// A Vosk model in memory, for any number of sessions at once, on any threads.
///
/// The memory (some 300 MB for a small model, several GB for a large one) is freed with the last session that uses it.
@safe public final class VoskModel: Sendable {
    /// The folder that the model was loaded from.
    public let path: String
    /// The rate in hertz that the model was trained for.
    public let sampleRate: Int
    /// Whether sessions can be restricted to phrases, see ``VoskTranscriber/setContextualStrings(_:)``. A large model
    /// with one fixed graph cannot.
    public let hasDynamicGraph: Bool
    /// Whether it also takes audio at a lower rate than its own.
    let takesLowerRates: Bool
    let functions: VoskFunctions

    // libvosk reads a model from any number of threads. Its count of the recognizers that hold the model is a plain
    // integer, which only `reference` protects.
    private nonisolated(unsafe) let handle: OpaquePointer
    private let reference = Lock(())

    /// Loads a model. Blocks for some seconds and reads the whole folder.
    ///
    /// - Parameters:
    ///   - path: The folder that holds `am/`, `conf/` and `graph/`.
    ///   - library: nil loads it as ``VoskLibrary/init(path:)`` does by default.
    /// - Throws: ``StenoError`` with `modelNotFound` when there is no such folder; `modelInvalid`, naming the files that
    ///   are missing or empty, or when libvosk refuses the model (it says why on standard error, unless silenced by
    ///   ``VoskLibrary/setLogLevel(_:)``); the codes of ``VoskLibrary/init(path:)``.
    public init(path: String, library: VoskLibrary? = nil) throws(StenoError) {
        let files = try VoskModelFiles(folder: path)
        let functions = if let library { library.functions } else { try VoskLibrary().functions }
        self.path = path
        self.functions = functions
        sampleRate = files.sampleRate
        hasDynamicGraph = files.hasDynamicGraph
        takesLowerRates = files.allowsUpsampling
        guard let handle = unsafe functions.modelNew(path) else {
            throw StenoError(.modelInvalid, "libvosk cannot read the model in \(path)")
        }
        unsafe self.handle = handle
        // Some faults show only here: parts of different models, a graph that cannot be read.
        do {
            _ = try VoskEngine(model: self, sampleRate: sampleRate)
        } catch {
            throw StenoError(.modelInvalid, "the model in \(path) cannot be used: \(error.message)", underlying: error)
        }
    }

    deinit {
        unsafe functions.modelFree(handle)
        // Some hundred MB, which the C library would keep for the process otherwise.
        _ = functions.trimHeap?(0)
    }

    /// Lends the handle to a function that makes or frees a recognizer.
    func withReference<Result>(_ body: (OpaquePointer) -> Result) -> Result {
        reference.withLock { _ in unsafe body(handle) }
    }

    /// Whether the vocabulary holds the word, spelled just so.
    public func contains(word: String) -> Bool {
        unsafe functions.modelFindWord(handle, word) >= 0
    }
}

/// What the folder says before libvosk reads it. libvosk names no file that is missing, loops without end on an empty
/// `model.conf`, and ends the process on some other empty files.
private struct VoskModelFiles {
    let hasDynamicGraph: Bool
    let sampleRate: Int
    let allowsUpsampling: Bool

    init(folder: String) throws(StenoError) {
        func exists(_ file: String) -> Bool { FileManager.default.fileExists(atPath: "\(folder)/\(file)") }
        func isEmpty(_ file: String) -> Bool {
            let attributes = try? FileManager.default.attributesOfItem(
                atPath: URL(filePath: "\(folder)/\(file)").resolvingSymlinksInPath().path)
            return (attributes?[.size] as? Int ?? 0) == 0
        }

        var isFolder: ObjCBool = false
        guard unsafe FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
            throw StenoError(
                .modelNotFound, "there is no folder \(folder); a Vosk model is a folder with am, conf and graph in it")
        }
        hasDynamicGraph = !exists("graph/HCLG.fst")
        var required = ["am/final.mdl", "conf/model.conf", "conf/mfcc.conf"]
        required += hasDynamicGraph ? ["graph/HCLr.fst", "graph/Gr.fst", "graph/disambig_tid.int"] : ["graph/HCLG.fst"]
        if exists("ivector") {
            required += ["final.ie", "final.mat", "final.dubm", "global_cmvn.stats", "splice.conf"].map {
                "ivector/\($0)"
            }
        }
        if exists("rescore/G.carpa") { required.append("rescore/G.fst") }
        var faults = required.filter(isEmpty).map { "\($0) is \(exists($0) ? "empty" : "missing")" }
        if exists("ivector"), !exists("ivector/online_cmvn.conf") {
            faults.append("ivector/online_cmvn.conf is missing")
        }
        guard faults.isEmpty else {
            throw StenoError(
                .modelInvalid, "the Vosk model in \(folder) is incomplete: \(faults.joined(separator: ", "))")
        }

        func options(of file: String) -> [Substring: Substring] {
            let text = (try? String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)) ?? ""
            let options = text.split(whereSeparator: \.isWhitespace).map { $0.split(separator: "=", maxSplits: 1) }
            return options.filter { $0.count == 2 }.reduce(into: [:]) { $0[$1[0]] = $1[1] }
        }
        let values = options(of: "conf/mfcc.conf")
        let rate = values["--sample-frequency"].flatMap { Double($0) } ?? 16000
        guard let sampleRate = Int(exactly: rate), (1000...192_000).contains(sampleRate) else {
            throw StenoError(
                .modelInvalid, "conf/mfcc.conf of the Vosk model in \(folder) has a sample rate of \(rate) Hz")
        }
        self.sampleRate = sampleRate
        allowsUpsampling = values["--allow-upsample"] == "true"

        // libvosk ends the process when the one does not fit the other, as when a line of splice.conf got lost.
        if exists("ivector"), let columns = Self.columnCount(ofMatrixIn: "\(folder)/ivector/final.mat") {
            let splice = options(of: "ivector/splice.conf")
            func number(_ text: Substring?, otherwise standard: Int) -> Int { text.flatMap { Int($0) } ?? standard }
            let frames =
                1 + number(splice["--left-context"], otherwise: 4) + number(splice["--right-context"], otherwise: 4)
            let size = frames * number(values["--num-ceps"], otherwise: 13)
            guard columns == size || columns == size + 1 else {
                throw StenoError(
                    .modelInvalid,
                    "ivector/splice.conf of the Vosk model in \(folder) does not fit ivector/final.mat: it makes "
                        + "\(size) values of \(frames) frames, for a matrix of \(columns) columns")
            }
        }
    }

    /// Kaldi's binary matrix: NUL, `BFM ` or `BDM `, then rows and columns, each after its size in bytes. Nil for others.
    private static func columnCount(ofMatrixIn path: String) -> Int? {
        guard let head = try? FileHandle(forReadingAtPath: path)?.read(upToCount: 15), head.count == 15,
            head.starts(with: "\0BFM \u{4}".utf8) || head.starts(with: "\0BDM \u{4}".utf8), head[10] == 4
        else { return nil }
        return head[11...].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
