import Foundation
public import StenoAudio

/// A digest that somebody published for a file.
public struct ModelDigest: Sendable, Hashable, Codable {
    public enum Kind: String, Sendable, Codable, CaseIterable { case sha256, sha1, md5 }

    public let kind: Kind
    /// Lower case hexadecimal.
    public let value: String

    public init(_ kind: Kind, _ value: String) {
        self.kind = kind
        self.value = value.lowercased()
    }
}

/// A model that can be had, as public material states it.
public struct ModelEntry: Sendable, Hashable, Codable {
    public enum Kind: String, Sendable, Codable, CaseIterable {
        /// A Whisper model in ggml's format: a file.
        case whisper
        /// A Silero speech detector in ggml's format: a file.
        case detector
        /// A Vosk model: a folder, which comes as a ZIP archive.
        case vosk
    }

    /// What it is called here: `tiny.en`.
    public let name: String
    public let kind: Kind
    /// Where it is: `https`, `http` or `file`.
    public let address: String
    /// What it is called in the store: a file, or the folder that the archive holds.
    public let fileName: String
    /// Bytes of the download; nil where nobody says.
    public let size: Int64?
    /// All that are published, each of which must be right; empty where there is none. Then the store records one.
    public let digests: [ModelDigest]
    public let licence: String
    /// BCP 47 tags; without a region a tag stands for all of them. Empty: any language, for a detector.
    public let languages: [String]
    /// Where size, digests and licence are stated.
    public let source: String

    public init(
        name: String, kind: Kind, address: String, fileName: String, size: Int64?, digests: [ModelDigest],
        licence: String, languages: [String], source: String
    ) {
        self.name = name
        self.kind = kind
        self.address = address
        self.fileName = fileName
        self.size = size
        self.digests = digests
        self.licence = licence
        self.languages = languages
        self.source = source
    }
}

/// The models that a ``ModelStore`` can install.
public struct ModelCatalog: Sendable {
    public let entries: [ModelEntry]
    private let indexByName: [String: Int]
    /// By language the entries that have it, and for which region.
    private let indicesByLanguage: [String: [(index: Int, region: String?)]]

    /// - Throws: `modelCatalogInvalid` when a name is there twice, or an entry could harm: a file name with a slash, an
    ///   address that is no `https`, `http` or `file`, a digest of the wrong length.
    public init(entries: [ModelEntry]) throws(StenoError) {
        var names: Set<String> = []
        var fileNames: Set<String> = []
        for entry in entries {
            if let fault = entry.fault {
                throw StenoError(.modelCatalogInvalid, "The catalogue's entry \(entry.name.debugDescription) \(fault).")
            }
            guard names.insert(entry.name).inserted, fileNames.insert(entry.fileName).inserted else {
                throw StenoError(.modelCatalogInvalid, "The catalogue has \(entry.name.debugDescription) twice.")
            }
        }
        self.init(checked: entries)
    }

    /// Reads a catalogue: a JSON array of entries with the fields of ``ModelEntry``.
    ///
    /// - Throws: `modelCatalogInvalid`.
    public init(json: some Sequence<UInt8>) throws(StenoError) {
        let entries: [ModelEntry]
        do {
            entries = try JSONDecoder().decode([ModelEntry].self, from: Data(json))
        } catch {
            throw StenoError(.modelCatalogInvalid, "The catalogue is no list of models: \(error)", underlying: error)
        }
        try self.init(entries: entries)
    }

    init(checked entries: [ModelEntry]) {
        self.entries = entries
        indexByName = Dictionary(entries.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
        var indices: [String: [(index: Int, region: String?)]] = [:]
        for (index, entry) in entries.enumerated() {
            for tag in entry.languages {
                let locale = Locale(tag)
                indices[locale.language, default: []].append((index, locale.region))
            }
        }
        indicesByLanguage = indices
    }

    public subscript(name: String) -> ModelEntry? { indexByName[name].map { entries[$0] } }

    /// How well a model fits a locale.
    public enum Match: Sendable, Hashable {
        case exact
        /// The same language as it is spoken elsewhere.
        case otherRegion
    }

    /// The models for a locale such as `de-AT`, `zh_Hant_TW` or `en_GB.UTF-8`, in the order of the catalogue with the exact
    /// ones first. Never one of another language.
    public func models(for locale: String) -> [(entry: ModelEntry, match: Match)] {
        let wanted = Locale(locale)
        let found = (indicesByLanguage[wanted.language] ?? []).map { index, region in
            (index, wanted.region == nil || region == nil || region == wanted.region ? Match.exact : .otherRegion)
        }
        return (found.filter { $0.1 == .exact } + found.filter { $0.1 == .otherRegion }).map { (entries[$0], $1) }
    }

    /// Language and region of a tag, in the catalogue's spelling.
    private struct Locale {
        let language: String
        let region: String?

        init(_ tag: String) {
            let parts = tag.prefix { $0 != "." && $0 != "@" }.lowercased().split { $0 == "-" || $0 == "_" }
            let language = parts.first.map(String.init) ?? ""
            self.language = Self.aliases[language] ?? language
            region = parts.dropFirst().first { $0.count == 2 || ($0.count == 3 && $0.allSatisfy(\.isNumber)) }
                .map(String.init)
        }

        private static let aliases = [
            "nb": "no", "iw": "he", "in": "id", "ji": "yi", "jw": "jv", "fil": "tl", "cmn": "zh", "arb": "ar",
        ]
    }
}

extension ModelEntry {
    /// What forbids to use it; nil when nothing does.
    fileprivate var fault: String? {
        for (what, name) in [("name", name), ("file name", fileName)] {
            let isSafe = name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x2F && $0 != 0x5C }
            guard isSafe, !name.isEmpty, !name.hasPrefix("."), name.utf8.count <= 200 else {
                return "has a \(what) that is no plain file name"
            }
        }
        guard ["https://", "http://", "file:///"].contains(where: address.hasPrefix),
            !address.contains(where: \.isWhitespace)
        else { return "has an address that is neither https, http nor file: \(address.debugDescription)" }
        if let size, size <= 0 { return "has a size of \(size) bytes" }
        for digest in digests {
            guard digest.value.utf8.count == digest.kind.byteCount * 2,
                digest.value.allSatisfy({ $0.isHexDigit && !$0.isUppercase })
            else { return "has a \(digest.kind.rawValue) digest that is none: \(digest.value.debugDescription)" }
        }
        return nil
    }
}

extension ModelDigest.Kind {
    var byteCount: Int {
        switch self {
        case .sha256: 32
        case .sha1: 20
        case .md5: 16
        }
    }
}
