import StenoAudio

/// libvosk's C functions, resolved once. Names and shapes are those of vosk_api.h in release 0.3.45.
@safe struct VoskFunctions: Sendable {
    typealias Object = OpaquePointer
    typealias Text = UnsafePointer<CChar>

    let modelNew: @Sendable @convention(c) (Text) -> Object?
    let modelFree: @Sendable @convention(c) (Object) -> Void
    let modelFindWord: @Sendable @convention(c) (Object, Text) -> CInt
    let recognizerNew: @Sendable @convention(c) (Object, Float) -> Object?
    let recognizerNewGrammar: @Sendable @convention(c) (Object, Float, Text) -> Object?
    let recognizerFree: @Sendable @convention(c) (Object) -> Void
    let setMaxAlternatives: @Sendable @convention(c) (Object, CInt) -> Void
    let setWords: @Sendable @convention(c) (Object, CInt) -> Void
    let setPartialWords: @Sendable @convention(c) (Object, CInt) -> Void
    /// Takes samples whose full scale is ±32768.
    let acceptWaveform: @Sendable @convention(c) (Object, UnsafePointer<Float>, CInt) -> CInt
    let result: @Sendable @convention(c) (Object) -> Text?
    let partialResult: @Sendable @convention(c) (Object) -> Text?
    let finalResult: @Sendable @convention(c) (Object) -> Text?
    let setLogLevel: @Sendable @convention(c) (CInt) -> Void
    // Newer than 0.3.45; nil where they lack.
    let setEndpointerMode: (@Sendable @convention(c) (Object, CInt) -> Void)?
    let setEndpointerDelays: (@Sendable @convention(c) (Object, Float, Float, Float) -> Void)?
    /// malloc_trim of the C library that libvosk uses, where it has that.
    let trimHeap: (@Sendable @convention(c) (Int) -> CInt)?

    /// - Parameters:
    ///   - file: The library's name for the error.
    ///   - address: Finds a symbol.
    /// - Throws: `engineIncompatible`, naming the symbol that lacks.
    init(of file: String, address: (String) -> UnsafeMutableRawPointer?) throws(StenoError) {
        func optional<Function>(_ name: String) -> Function? {
            unsafe address(name).map { unsafe unsafeBitCast($0, to: Function.self) }
        }
        func required<Function>(_ name: String) throws(StenoError) -> Function {
            if let function: Function = optional(name) { return function }
            throw StenoError(
                .engineIncompatible, "\(file) is not libvosk, or one older than 0.3.45: it has no symbol \(name)")
        }
        unsafe modelNew = try required("vosk_model_new")
        unsafe modelFree = try required("vosk_model_free")
        unsafe modelFindWord = try required("vosk_model_find_word")
        unsafe recognizerNew = try required("vosk_recognizer_new")
        unsafe recognizerNewGrammar = try required("vosk_recognizer_new_grm")
        unsafe recognizerFree = try required("vosk_recognizer_free")
        unsafe setMaxAlternatives = try required("vosk_recognizer_set_max_alternatives")
        unsafe setWords = try required("vosk_recognizer_set_words")
        unsafe setPartialWords = try required("vosk_recognizer_set_partial_words")
        unsafe acceptWaveform = try required("vosk_recognizer_accept_waveform_f")
        unsafe result = try required("vosk_recognizer_result")
        unsafe partialResult = try required("vosk_recognizer_partial_result")
        unsafe finalResult = try required("vosk_recognizer_final_result")
        setLogLevel = try required("vosk_set_log_level")
        unsafe setEndpointerMode = optional("vosk_recognizer_set_endpointer_mode")
        unsafe setEndpointerDelays = optional("vosk_recognizer_set_endpointer_delays")
        trimHeap = optional("malloc_trim")
    }
}
