import CWhisper
import StenoAnalysis
import StenoAudio

/// A language that Whisper knows; between BCP 47 and the names that Whisper gives.
struct SpokenLanguage {
    var name: String
    /// How likely it is; nil where it was not detected.
    var confidence: Float?

    /// In BCP 47.
    var code: String { name == "jw" ? "jv" : name }

    /// What other codes people use for languages that Whisper lists under a name of its own.
    private static let aliases = [
        "jv": "jw", "nb": "no", "iw": "he", "in": "id", "ji": "yi", "fil": "tl", "cmn": "zh", "arb": "ar",
    ]

    /// - Parameter id: A number of Whisper's list; nil outside the list.
    init?(id: Int32, confidence: Float? = nil) {
        guard (0...whisper_lang_max_id()).contains(id), let name = unsafe whisper_lang_str(id) else { return nil }
        self.name = unsafe String(cString: name)
        self.confidence = confidence
    }

    init(name: String) { self.name = name }

    /// What a model with a vocabulary of this size understands, as BCP 47 codes in alphabetical order.
    static func codes(vocabulary: Int32) -> [String] {
        // The last language came with the third large model, which has one token more.
        let count: Int32 = vocabulary < 51865 ? 1 : vocabulary < 51866 ? 99 : 100
        return (0..<count).compactMap { Self(id: $0)?.code }.sorted()
    }

    /// - Parameter tag: BCP 47, such as `EN-us`, `zh_CN` or `zh-Hant`; only the language counts.
    init(tag: String, among languages: [String], ofModelAt path: String) throws(StenoError) {
        let language = tag.lowercased().prefix { $0 != "-" && $0 != "_" }
        name = Self.aliases[String(language)] ?? String(language)
        guard languages.contains(code) else {
            let known = languages.joined(separator: ", ")
            throw StenoError(
                .unsupportedLanguage, "The model \(path) does not know the language \"\(tag)\", but: \(known).")
        }
    }
}
