import Foundation
import StenoAnalysis
import StenoAudio
import StenoVosk
import Testing

struct VoskModelTests {
    static let required = [
        "am/final.mdl", "conf/model.conf", "conf/mfcc.conf", "graph/HCLr.fst", "graph/Gr.fst",
        "graph/disambig_tid.int", "ivector/final.ie", "ivector/final.mat", "ivector/final.dubm",
        "ivector/global_cmvn.stats", "ivector/splice.conf",
    ]

    @Test func complete() throws {
        let model = try Fixture.model.get()
        #expect(model.sampleRate == 16000)
        #expect(model.hasDynamicGraph)
        #expect(model.contains(word: "생각을"))
        #expect(!model.contains(word: "생각을하면서살면"))
    }

    @Test func noFolder() throws {
        #expect(try loading(URL(filePath: "/nowhere/model"))?.code == .modelNotFound)
        #expect(try loading(URL(filePath: #filePath))?.code == .modelNotFound)
    }

    @Test(arguments: required + ["ivector/online_cmvn.conf"]) func missing(file: String) throws {
        let error = try loading(changed: file) { try FileManager.default.removeItem(at: $0) }
        #expect(error?.code == .modelInvalid)
        #expect(error?.message.contains("\(file) is missing") == true)
    }

    @Test(arguments: required) func empty(file: String) throws {
        let error = try loading(changed: file) { try replace($0, with: Data()) }
        #expect(error?.code == .modelInvalid)
        #expect(error?.message.contains("\(file) is empty") == true)
    }

    @Test(arguments: ["am/final.mdl", "ivector/final.ie", "graph/HCLr.fst", "conf/mfcc.conf"])
    func otherContent(file: String) throws {
        let error = try loading(changed: file) { try replace($0, with: Data("<html>404 not found</html>\n".utf8)) }
        #expect(error?.code == .modelInvalid)
    }

    @Test(arguments: ["--left-context=3\n", "--right-context=3\n", "# nothing\n"])
    func cutShortBetweenLines(splice: String) throws {
        let error = try loading(changed: "ivector/splice.conf") { try replace($0, with: Data(splice.utf8)) }
        #expect(error?.code == .modelInvalid)
        #expect(error?.message.contains("does not fit ivector/final.mat") == true)
    }

    @Test func cutShort() throws {
        let error = try loading(changed: "am/final.mdl") { file in
            try replace(file, with: Data(contentsOf: file).prefix(5_000_000))
        }
        #expect(error?.code == .modelInvalid)
    }
}

private func replace(_ file: URL, with content: Data) throws {
    try FileManager.default.removeItem(at: file)
    try content.write(to: file)
}

private func loading(changed file: String, _ change: (URL) throws -> Void) throws -> StenoError? {
    let folder = try Fixture.modelCopy { try change($0.appending(path: file)) }
    defer { try? FileManager.default.removeItem(at: folder) }
    return try loading(folder)
}

private func loading(_ folder: URL) throws -> StenoError? {
    let library = try Fixture.library.get()
    library.setLogLevel(-3)
    do throws(StenoError) { _ = try VoskModel(path: folder.path, library: library) } catch { return error }
    return nil
}
