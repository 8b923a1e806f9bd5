import Foundation
import Glibc
import StenoAnalysis
import StenoAudio
import StenoVosk
import Testing

/// A library that is not there or does not fit is a typed error each, and never the end of the process.
struct VoskLibraryTests {
    @Test func absent() {
        let error = loading("/nowhere/libvosk.so")
        #expect(error?.code == .engineNotFound)
        #expect(error?.message.contains("/nowhere/libvosk.so") == true)
        #expect(error?.message.contains("Python wheel") == true)
    }

    @Test func textFile() throws {
        try withFile(Data("not a library\n".utf8)) { #expect(loading($0)?.code == .engineNotLibrary) }
        try withFile(Data(repeating: 0x20, count: 1000)) { #expect(loading($0)?.code == .engineNotLibrary) }
    }

    @Test func otherLibrary() throws {
        try withFile(Data()) { other in
            try run("cc", "-shared", "-o", other, "-x", "c", "/dev/null")
            let error = loading(other)
            #expect(error?.code == .engineIncompatible)
            #expect(error?.message.contains("vosk_model_new") == true)
        }
    }

    @Test func otherProcessor() throws {
        var library = try Data(contentsOf: URL(filePath: Fixture.libraryPath))
        library[18] = library[18] == 62 ? 183 : 62
        try withFile(library) {
            let error = loading($0)
            #expect(error?.code == .engineWrongArchitecture)
            #expect(error?.message.contains("AArch64") == true && error?.message.contains("x86-64") == true)
        }
    }

    @Test(arguments: [64, 200, 10_000_000]) func cutShort(bytes: Int) throws {
        try withFile(Data(contentsOf: URL(filePath: Fixture.libraryPath)).prefix(bytes)) {
            let error = loading($0)
            #expect(error?.code == .engineNotLibrary)
            #expect(error?.message.contains("cut short") == true)
        }
    }

    @Test func searchOrder() async {
        await #expect(processExitsWith: .success) {
            let path = Fixture.libraryPath
            unsafe setenv(VoskLibrary.environmentVariable, path, 1)
            #expect((try? VoskLibrary())?.path == path)
            unsafe setenv(VoskLibrary.environmentVariable, "/nowhere/libvosk.so", 1)
            #expect((try? VoskLibrary(path: path))?.path == path)
            #expect(loading(nil)?.message.contains("/nowhere/libvosk.so") == true)
            unsafe unsetenv(VoskLibrary.environmentVariable)
            let error = loading(nil)
            #expect(error?.code == .engineNotFound)
            #expect(error?.message.contains("loader's search") == true)
        }
    }

    /// Release 0.3.45 has no functions for it; a library beside it adds one and keeps what it is called with.
    @Test func endpointing() throws {
        let folder = try Fixture.temporaryFolder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let (source, newer) = (folder.appending(path: "newer.c"), folder.appending(path: "libnewer.so").path)
        try """
        float delays[3];
        void vosk_recognizer_set_endpointer_delays(void *recognizer, float a, float b, float c) {
            delays[0] = a; delays[1] = b; delays[2] = c;
        }
        """.write(to: source, atomically: true, encoding: .utf8)
        try run("cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", newer, source.path, Fixture.libraryPath)

        var options = VoskTranscriber.Options()
        options.endpointing = .delays(noSpeech: .seconds(3), afterSpeech: .milliseconds(500), longest: .seconds(15))
        let refused = #expect(throws: StenoError.self) {
            try VoskTranscriber(model: Fixture.model.get(), options: options)
        }
        #expect(refused?.code == .unsupportedOption)

        let model = try VoskModel(path: Fixture.modelPath, library: VoskLibrary(path: newer))
        _ = try Session(VoskTranscriber(model: model, options: options))
        let delays = unsafe dlsym(dlopen(newer, RTLD_NOW), "delays")?.load(as: (Float, Float, Float).self)
        #expect(try #require(delays) == (3, 0.5, 15))
        options.endpointing = .short
        #expect(throws: StenoError.self) { try VoskTranscriber(model: model, options: options) }
    }
}

private func loading(_ path: String?) -> StenoError? {
    do throws(StenoError) { _ = try VoskLibrary(path: path) } catch { return error }
    return nil
}

private func withFile(_ content: Data, _ body: (String) throws -> Void) throws {
    let folder = try Fixture.temporaryFolder()
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appending(path: "libvosk.so")
    try content.write(to: file)
    try body(file.path)
}
