import Foundation
import Glibc
import StenoAnalysis
import StenoAudio

/// One libvosk recognizer. One thread at a time.
@safe final class VoskEngine {
    private let model: VoskModel
    private let handle: OpaquePointer
    /// Frames that were accepted since the recognizer was made: where the times of its words count from.
    private(set) var frameCount: Int64 = 0

    /// - Parameter grammar: The phrases as a JSON array, not empty; nil for the model's whole vocabulary.
    init(
        model: VoskModel, sampleRate: Int, grammar: String? = nil, options: VoskTranscriber.Options = .init()
    ) throws(StenoError) {
        let functions = model.functions
        let made = unsafe model.withReference { model in
            if let grammar {
                unsafe functions.recognizerNewGrammar(model, Float(sampleRate), grammar)
            } else {
                unsafe functions.recognizerNew(model, Float(sampleRate))
            }
        }
        guard let handle = unsafe made else {
            throw StenoError(.engineFailed, "libvosk made no recognizer of the model")
        }
        self.model = model
        unsafe self.handle = handle
        // Always, whatever the options say: the words tell where in the audio the text is.
        unsafe functions.setWords(handle, 1)
        unsafe functions.setPartialWords(handle, options.volatileResults == .words ? 1 : 0)
        if options.maximumAlternatives > 0 {
            // libvosk counts the best reading too.
            unsafe functions.setMaxAlternatives(handle, CInt(clamping: options.maximumAlternatives + 1))
        }
        switch options.endpointing {
        case .model: break
        case .short: unsafe functions.setEndpointerMode?(handle, 1)
        case .long: unsafe functions.setEndpointerMode?(handle, 2)
        case .veryLong: unsafe functions.setEndpointerMode?(handle, 3)
        case .delays(let noSpeech, let afterSpeech, let longest):
            unsafe functions.setEndpointerDelays?(
                handle, Float(noSpeech / .seconds(1)), Float(afterSpeech / .seconds(1)), Float(longest / .seconds(1)))
        }
    }

    deinit {
        unsafe model.withReference { _ in unsafe model.functions.recognizerFree(handle) }
    }

    /// Decodes a second of silence. With the whole vocabulary the first frames take about that long, for they unfold much
    /// of the model's graph: better before there is speech that waits.
    func warmUp(sampleRate: Int) throws(StenoError) {
        _ = try accept([Float](repeating: 0, count: sampleRate))
        _ = try finalResult()
    }

    /// Decodes samples whose full scale is ±32768 and says whether an utterance ended.
    func accept(_ samples: [Float]) throws(StenoError) -> Bool {
        let status: CInt = unsafe samples.withUnsafeBufferPointer { samples in
            guard let start = samples.baseAddress else { return CInt(0) }
            return unsafe model.functions.acceptWaveform(handle, start, CInt(samples.count))
        }
        guard status >= 0 else {
            throw StenoError(.engineFailed, "libvosk failed to decode audio", nativeCode: Int(status))
        }
        frameCount += Int64(samples.count)
        return status > 0
    }

    /// The utterance so far.
    func partialResult() throws(StenoError) -> VoskOutput { try unsafe output(of: model.functions.partialResult) }

    /// The utterance that ended, as far as it is decoded. Audio that waits for its context belongs to the next one.
    func result() throws(StenoError) -> VoskOutput { try unsafe output(of: model.functions.result) }

    /// The utterance with all audio that was accepted. Frees most of what the recognizer holds; word times go on.
    func finalResult() throws(StenoError) -> VoskOutput { try unsafe output(of: model.functions.finalResult) }

    private func output(of function: (OpaquePointer) -> UnsafePointer<CChar>?) throws(StenoError) -> VoskOutput {
        // libvosk prints numbers in the C locale of the thread: with a decimal comma, that is no JSON.
        let previous = unsafe uselocale(Self.plainLocale)
        let json = unsafe function(handle).map { unsafe String(cString: $0) }
        _ = unsafe uselocale(previous)
        do {
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            return try decoder.decode(VoskOutput.self, from: Data((json ?? "").utf8))
        } catch {
            throw StenoError(
                .engineFailed, "libvosk gave a result that is no JSON: \(json ?? "none")", underlying: error)
        }
    }

    // Never changed or freed, so any thread may use it.
    private nonisolated(unsafe) static let plainLocale = unsafe newlocale(1 << LC_NUMERIC, "C", nil)
}

/// A result as libvosk writes it. Its shape depends on what was asked for: `partial`, `text` or `alternatives`.
struct VoskOutput: Decodable {
    struct Word: Decodable {
        var word: String
        /// Seconds since the recognizer was made, over all utterances.
        var start, end: Double
        /// Absent in alternatives.
        var conf: Float?
    }

    private var partial, text: String?
    private var result, partialResult: [Word]?
    private var alternatives: [VoskOutput]?

    /// The most likely reading.
    var best: (text: String, words: [Word]) {
        if let first = alternatives?.first { return first.best }
        return (Self.spoken(partial ?? text ?? ""), (result ?? partialResult ?? []).filter { Self.isSpoken($0.word) })
    }

    /// The other readings that differ, most likely first.
    var others: [String] {
        var seen: Set = [best.text, ""]
        return (alternatives ?? []).map(\.best.text).filter { seen.insert($0).inserted }
    }

    /// What Vosk's models write for sound that is none of their words.
    static let unknownWord = "[unk]"

    private static func isSpoken(_ word: some StringProtocol) -> Bool {
        word != unknownWord && word != "<unk>" && word != "<UNK>" && word != "!SIL"
    }

    private static func spoken(_ text: String) -> String {
        text.split(separator: " ").filter(isSpoken).joined(separator: " ")
    }
}
