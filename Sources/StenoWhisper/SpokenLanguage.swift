import CWhisper
import StenoAnalysis
import StenoAudio

/// Between BCP 47 and the names that Whisper gives to languages.
enum SpokenLanguage {
    /// What other codes people use for languages that Whisper lists under a name of its own.
    private static let aliases = [
        "jv": "jw", "nb": "no", "iw": "he", "in": "id", "ji": "yi", "fil": "tl", "cmn": "zh", "arb": "ar",
    ]

    /// The BCP 47 code of a number of Whisper's list; nil outside the list.
    static func code(of id: Int32) -> String? {
        guard (0...whisper_lang_max_id()).contains(id), let name = unsafe whisper_lang_str(id) else { return nil }
        let code = unsafe String(cString: name)
        return code == "jw" ? "jv" : code
    }

    /// What a model with a vocabulary of this size understands, as BCP 47 codes in alphabetical order.
    static func codes(vocabulary: Int32) -> [String] {
        // The last language came with the third large model, which has one token more.
        let count: Int32 = vocabulary < 51865 ? 1 : vocabulary < 51866 ? 99 : 100
        return (0..<count).compactMap(code).sorted()
    }

    /// Whisper's name for a BCP 47 tag such as `EN-us`, `zh_CN` or `zh-Hant`, of which only the language counts.
    static func name(
        of tag: String, among languages: [String], ofModelAt path: String
    ) throws(StenoError) -> String {
        let language = tag.lowercased().prefix { $0 != "-" && $0 != "_" }
        let name = aliases[String(language)] ?? String(language)
        guard languages.contains(name == "jw" ? "jv" : name) else {
            let known = languages.joined(separator: ", ")
            throw StenoError(
                .unsupportedLanguage, "The model \(path) does not know the language \"\(tag)\", but: \(known).")
        }
        return name
    }
}
