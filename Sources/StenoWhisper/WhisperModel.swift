import CWhisper
import StenoAnalysis
public import StenoAudio

/// A Whisper model in memory, for any number of sessions at once (law A10).
///
/// Takes models in ggml's format, quantized ones too. The weights are shared; what a session decodes lives in a state of
/// its own.
//
// @unchecked: whisper.cpp writes to its context only while loading. Everything called on it later reads the weights and
// the vocabulary, and works in the `whisper_state` of one session.
@safe
public final class WhisperModel: @unchecked Sendable {
    /// Where the model was loaded from.
    public let path: String
    /// The size class: `tiny`, `base`, `small`, `medium` or `large`.
    public let kind: String
    /// Whether it knows other languages than English, can tell which one is spoken, and can translate to English.
    public let isMultilingual: Bool
    /// What it understands, as BCP 47 codes in alphabetical order.
    public let languages: [String]

    let context: OpaquePointer

    /// Loads a model. Blocks for as long as reading the file takes.
    ///
    /// - Throws: ``StenoError`` with `model.notFound` when it is missing or cannot be read, and with `model.invalid` when
    ///   it is a directory, empty, a Git LFS pointer, no Whisper model, incomplete or truncated; the message says which.
    public init(path: String) throws(StenoError) {
        precondition(WhisperLog.isTaken)
        let vocabulary = try ModelFile.checkWhisper(path)
        // A library that comes with its back ends as plug-ins has none until they are loaded.
        if ggml_backend_dev_count() == 0 { ggml_backend_load_all() }
        guard ggml_backend_dev_count() > 0 else {
            throw StenoError(.engineNotFound, "whisper.cpp has no back end to compute with, not even a processor.")
        }
        let parameters = unsafe whisper_context_default_params()
        guard let context = unsafe whisper_init_from_file_with_params_no_state(path, parameters) else {
            throw StenoError(.modelInvalid, "The model \(path) has tensors that do not fit its header.")
        }
        self.path = path
        unsafe self.context = context
        kind = unsafe String(cString: whisper_model_type_readable(context))
        isMultilingual = unsafe whisper_is_multilingual(context) != 0
        languages = SpokenLanguage.codes(vocabulary: vocabulary)
    }

    deinit { unsafe whisper_free(context) }
}

/// A Silero model, which tells speech from everything else.
///
/// It is small, so each session loads one of its own; this is the file, checked.
public struct SileroModel: Sendable, Hashable {
    public let path: String

    /// - Throws: ``StenoError`` as for ``WhisperModel/init(path:)``.
    public init(path: String) throws(StenoError) {
        try ModelFile.checkSilero(path)
        self.path = path
    }
}
