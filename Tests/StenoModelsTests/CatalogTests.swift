import Foundation
import StenoAudio
import StenoModels
import TestSupport
import Testing

@Suite struct CatalogTests {
    @Test func builtIn() throws {
        let catalog = ModelCatalog.builtIn
        // What is written by hand passes the checks for what is read.
        let again = try ModelCatalog(json: JSONEncoder().encode(catalog.entries))
        #expect(again.entries == catalog.entries)
        for entry in catalog.entries {
            #expect(entry.source.hasPrefix("https://") && entry.address.hasPrefix("https://"))
            #expect(
                !entry.licence.isEmpty && entry.address.hasSuffix(entry.fileName + (entry.kind == .vosk ? ".zip" : "")))
        }
        for name in ["tiny", "tiny.en", "base", "small", "medium", "large-v3", "large-v3-turbo", "large-v3-turbo-q5_0"]
        {
            let entry = try #require(catalog[name])
            #expect(entry.digests.map(\.kind) == [.sha256, .sha1])
        }
        #expect(catalog["vosk-small-nl-0.22"]?.digests == [] && catalog["no"] == nil)
    }

    /// The models that Scripts/bootstrap brings are the ones of the catalogue.
    @Test(arguments: ["tiny.en", "silero-v6.2.0"]) func realModels(name: String) async throws {
        let store = ModelStore(.init(folder: root.appending(path: ".steno/models").path))
        #expect(store.status(of: name).state == .installed)
        try await store.verify(name)
    }

    @Test(arguments: [
        ("", "name"), ("..", "name"), (".hidden", "name"), ("a/b", "name"), ("a b", "name"), ("a\\b", "name"),
        ("ä", "name"),
    ])
    func names(name: String, message: String) throws {
        for isFile in [true, false] {
            let entry = entry(name: isFile ? "a" : name, fileName: isFile ? name : "a")
            let error = #expect(throws: StenoError.self) { try ModelCatalog(entries: [entry]) }
            #expect(error?.code == .modelCatalogInvalid && error?.message.contains(message) == true)
        }
    }

    @Test func faults() {
        let faulty = [
            entry(address: "ftp://x/y"), entry(address: "file:relative"), entry(address: "https://x/ y"),
            entry(size: 0),
            entry(digests: [.init(.sha256, "12")]), entry(digests: [.init(.md5, String(repeating: "g", count: 32))]),
        ]
        for entry in faulty {
            #expect { try ModelCatalog(entries: [entry]) } throws: { ($0 as? StenoError)?.code == .modelCatalogInvalid }
        }
        #expect(throws: StenoError.self) { try ModelCatalog(entries: [entry(), entry()]) }
        for json in ["", "{}", "[{}]", "[1]", "null", "[", #"[{"name":"a"}]"#] {
            #expect { try ModelCatalog(json: json.utf8) } throws: { ($0 as? StenoError)?.code == .modelCatalogInvalid }
        }
    }

    private func entry(
        name: String = "a", address: String = "https://x/y", fileName: String = "a", size: Int64? = 1,
        digests: [ModelDigest] = [], languages: [String] = []
    ) -> ModelEntry {
        ModelEntry(
            name: name, kind: .whisper, address: address, fileName: fileName, size: size, digests: digests,
            licence: "x", languages: languages, source: "x")
    }

    @Test func locales() throws {
        let catalog = try ModelCatalog(entries: [
            entry(name: "us", fileName: "1", languages: ["en-US"]),
            entry(name: "in", fileName: "2", languages: ["en-IN"]),
            entry(name: "all", fileName: "3", languages: ["de", "no", "zh"]), entry(name: "any", fileName: "4"),
            entry(name: "tw", fileName: "5", languages: ["zh-Hant-TW"]),
        ])
        func names(_ locale: String) -> [String] {
            catalog.models(for: locale).map { $0.entry.name + ($0.match == .exact ? "" : "~") }
        }
        #expect(
            names("en-US") == ["us", "in~"] && names("EN_in") == ["in", "us~"] && names("en-GB") == ["us~", "in~"])
        #expect(
            names("en") == ["us", "in"] && names("en_US.UTF-8") == ["us", "in~"] && names("de_AT@euro") == ["all"])
        #expect(names("nb-NO") == ["all"] && names("zh-Hant") == ["all", "tw"] && names("zh-CN") == ["all", "tw~"])
        for other in ["fr", "", "-", "e", "eng", "den", "C", "POSIX", "x-US"] { #expect(names(other) == []) }
    }

    @Test func lookingUpIsQuick() {
        let start = ContinuousClock.now
        var found = 0
        for _ in 0..<1000 { found += ModelCatalog.builtIn.models(for: "de-AT").count }
        #expect(found > 1000 && ContinuousClock.now - start < .seconds(5))
    }
}
