import Foundation
import StenoAnalysis
import StenoAudio
import StenoWhisper
import Testing

@Suite struct ModelTests {
    @Test func saysWhatItIs() throws {
        let model = try Fixtures.model.get()
        #expect(model.kind == "tiny")
        #expect(!model.isMultilingual)
        #expect(model.languages == ["en"])
    }

    @Test(arguments: ["EN-us", "en", "en_GB"])
    func takesEveryKindOfEnglish(tag: String) throws {
        #expect(throws: Never.self) { try makeTranscriber { $0.language = tag } }
        let path = try Fixtures.model.get().path
        #expect(throws: Never.self) { try WhisperTranscriber.check(language: tag, ofModelAt: path) }
    }

    @Test(arguments: ["zh-CN", "xx", "", "-", "english"])
    func refusesWhatItDoesNotKnow(tag: String) throws {
        let error = #expect(throws: StenoError.self) { try makeTranscriber { $0.language = tag } }
        #expect(error?.code == .unsupportedLanguage)
        #expect(error?.message.hasSuffix("but: en.") == true)
        let path = try Fixtures.model.get().path
        let unloaded = #expect(throws: StenoError.self) {
            try WhisperTranscriber.check(language: tag, ofModelAt: path)
        }
        #expect(unloaded?.message == error?.message)
    }

    @Test func refusesOptionsThatItCannotMeet() {
        func code(_ change: (inout WhisperTranscriber.Options) -> Void) -> StenoError.Code? {
            #expect(throws: StenoError.self) { try makeTranscriber(change) }?.code
        }
        #expect(code { $0.translate = true } == .unsupportedOption)
        #expect(code { $0.initialPrompt = String(repeating: "Steno ", count: 200) } == .unsupportedOption)
        #expect(code { $0.initialPrompt = String(repeating: "x", count: 1000) } == .unsupportedOption)
        #expect(code { $0.beamSize = 9 } == .invalidArgument)
        #expect(code { $0.threads = 0 } == .invalidArgument)
        #expect(code { $0.temperature = .nan } == .invalidArgument)
    }

    /// A file that is no usable model, and a part of the sentence that says why.
    struct BadModel: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var reason: String
        var content: @Sendable () throws -> Data
    }

    static func whisper(_ count: Int) throws -> Data {
        let file = try FileHandle(forReadingFrom: URL(filePath: Fixtures.modelPath))
        return try #require(try file.read(upToCount: count))
    }

    static func damaged(at offset: Int, _ bytes: [UInt8]) throws -> Data {
        var data = try whisper(1_000_000)
        data.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        return data
    }

    static let badModels = [
        BadModel(testDescription: "empty", reason: "is empty") { Data() },
        BadModel(testDescription: "three bytes", reason: "not in ggml's format") { Data("lmg".utf8) },
        BadModel(testDescription: "text", reason: "not in ggml's format") { Data("<!DOCTYPE html><html>".utf8) },
        BadModel(testDescription: "Git LFS pointer", reason: "Git LFS pointer") {
            Data("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 77704715\n".utf8)
        },
        BadModel(testDescription: "the magic alone", reason: "truncated") { Data("lmgg".utf8) },
        BadModel(testDescription: "ends in the header", reason: "truncated") { try whisper(30) },
        BadModel(testDescription: "ends in the mel filter", reason: "truncated") { try whisper(1000) },
        BadModel(testDescription: "ends in the vocabulary", reason: "truncated") { try whisper(100_000) },
        BadModel(testDescription: "ends in a tensor", reason: "truncated") { try whisper(1_000_000) },
        BadModel(testDescription: "no Whisper model", reason: "no Whisper model") {
            try Data(contentsOf: URL(filePath: Fixtures.detectorPath))
        },
        // The 12th number of the header is the type of the weights; the count of tokens follows the mel filter bank.
        BadModel(testDescription: "unknown weights", reason: "weights of a type") { try damaged(at: 44, [77]) },
        BadModel(testDescription: "no heads", reason: "no Whisper model") { try damaged(at: 16, [0]) },
        BadModel(testDescription: "too many tokens", reason: "vocabulary") { try damaged(at: 64378, [9]) },
    ]

    @Test(arguments: badModels)
    func refusesBadModels(bad: BadModel) throws {
        let file = try Fixtures.temporary("bin")
        try bad.content().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let error = #expect(throws: StenoError.self) { try WhisperModel(path: file.path) }
        #expect(error?.code == .modelInvalid)
        #expect(error?.message.contains(bad.reason) == true, "\(error?.message ?? "")")
    }

    @Test func refusesWhatIsNoFile() {
        let missing = #expect(throws: StenoError.self) { try WhisperModel(path: "/nowhere/ggml-tiny.en.bin") }
        #expect(missing?.code == .modelNotFound)
        let folder = #expect(throws: StenoError.self) { try WhisperModel(path: NSTemporaryDirectory()) }
        #expect(folder?.code == .modelInvalid)
        #expect(folder?.message.contains("directory") == true)
        let device = #expect(throws: StenoError.self) { try WhisperModel(path: "/dev/zero") }
        #expect(device?.code == .modelInvalid)
    }

    @Test func refusesBadDetectors() throws {
        let whole = try Data(contentsOf: URL(filePath: Fixtures.detectorPath))
        func reason(_ data: Data) throws -> String {
            let file = try Fixtures.temporary("bin")
            try data.write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let error = #expect(throws: StenoError.self) { try SileroModel(path: file.path) }
            #expect(error?.code == .modelInvalid)
            return error?.message ?? ""
        }
        #expect(try reason(Self.whisper(1000)).contains("no Silero detector"))
        #expect(try reason(whole.prefix(500_000)).contains("truncated"))
        // The last tensor with its head.
        #expect(try reason(whole.dropLast(132_152)).contains("incomplete"))
    }
}
