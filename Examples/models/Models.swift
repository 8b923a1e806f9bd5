import ExampleSupport
import Foundation
import StenoAudio
import StenoModels

/// Lists, installs, checks and removes models. Nothing else in Steno downloads.
@main
struct ModelsProgram {
    static let help = """
        Usage: models [options] list
               models [options] install NAME...
               models [options] verify [NAME...]
               models [options] remove NAME...

        list     what there is to have, and what is here
        install  fetches models, or goes on fetching them; Ctrl-C stops, and what came stays
        verify   reads models through and compares them with their digests; without names, all that are here
        remove   takes models away, and what is left of unfinished installations

        Options:
          --language TAG  list only models for this language, such as de or pt-BR
          --folder PATH   where the models are; else $STENO_MODELS, or ~/.local/share/steno/models
          --mirror URL    where to fetch them from instead: https, http or file; else $STENO_MODELS_MIRROR
          --offline       fetch nothing; else $STENO_OFFLINE
          --help

        The exit code is 0 when all went well, 64 for a wrong command line, 65 for a damaged model, 69 when a model cannot
        be had, or is not installed and so cannot be verified or removed, 74 when the disk or the output fails, 75 when
        somebody else is installing the model, 130 when it was interrupted.

        """

    static func main() async {
        let command: Command
        do {
            command = try Command(Array(CommandLine.arguments.dropFirst()))
        } catch {
            Terminal.say("models: \(error.message); models --help tells what there is\n")
            exit(ExitCode.usage.rawValue)
        }
        let work = Task { await run(command) }
        let interrupts = onInterrupt { work.cancel() }
        let code = await work.value
        withExtendedLifetime(interrupts) {}
        exit(code)
    }

    private static func run(_ command: Command) async -> Int32 {
        let store = ModelStore(command.options)
        var code: Int32 = 0
        func attempt(_ name: String, _ body: () async throws(StenoError) -> Void) async {
            do throws(StenoError) {
                try await body()
            } catch {
                Terminal.say("models: \(name): \(error.message)\n")
                code = max(code, exitCode(error))
            }
        }
        switch command.action {
        case .help: return printAll(help, by: "models").rawValue
        case .list: return printAll(list(store, language: command.language), by: "models").rawValue
        case .install:
            for name in command.names {
                await attempt(name) { () async throws(StenoError) in
                    let bar = ProgressBar(name)
                    defer { bar.clear() }
                    let path = try await store.install(name) { bar.show($0) }
                    bar.clear()
                    try TextOutput(path: "-").write(path + "\n")
                }
            }
        case .verify:
            let names = command.names.isEmpty ? store.options.catalog.entries.map(\.name) : command.names
            var found = names.count
            for name in names {
                await attempt(name) { () async throws(StenoError) in
                    do throws(StenoError) {
                        try await store.verify(name)
                    } catch {
                        guard command.names.isEmpty, error.code == .modelNotInstalled else { throw error }
                        found -= 1
                        return
                    }
                    try TextOutput(path: "-").write("\(name): right\n")
                }
            }
            if found == 0 { Terminal.say("models: no model is installed in \(store.options.folder)\n") }
        case .remove:
            for name in command.names {
                await attempt(name) { () async throws(StenoError) in try store.remove(name) }
            }
        }
        return code
    }

    private static func list(_ store: ModelStore, language: String?) -> String {
        let catalog = store.options.catalog
        let entries = language.map { catalog.models(for: $0).map(\.entry) } ?? catalog.entries
        let rows = entries.map { entry in
            let status = store.status(of: entry.name)
            let size = entry.size.map { "\(($0 + 500_000) / 1_000_000) MB" } ?? "?"
            let languages =
                entry.languages.count > 3
                ? "\(entry.languages.count) languages" : entry.languages.joined(separator: " ")
            let columns = [
                entry.name.padding(to: 28), status.state.rawValue.padding(to: 12), size.padding(to: 9),
                languages.padding(to: 14),
                entry.licence,
            ]
            return columns.joined(separator: " ") + "\n"
        }
        return rows.joined()
    }

    private static func exitCode(_ error: StenoError) -> Int32 {
        let code: ExitCode =
            switch error.code {
            case .cancelled: .interrupted
            case .modelUnknown, .modelStoreOffline, .modelDownloadFailed, .modelNotInstalled: .unavailable
            case .modelChecksumMismatch, .modelArchiveInvalid: .notAudio
            case .modelStoreFull, .modelStoreFailed, .outputFailed: .outputFailed
            case .modelStoreBusy: .busy
            default: .failed
            }
        return code.rawValue
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}

private struct Command {
    enum Action: String, CaseIterable { case list, install, verify, remove, help }

    var action = Action.help
    var names: [String] = []
    var language: String?
    var options = ModelStore.Options.fromEnvironment()

    init(_ arguments: [String]) throws(ArgumentReader.UsageError) {
        var reader = ArgumentReader(arguments)
        var words: [String] = []
        while let argument = try reader.next() {
            switch argument {
            case .option("--help"): return
            case .option("--language"): language = try reader.value()
            case .option("--folder"): options.folder = try reader.value()
            case .option("--mirror"): options.mirror = try reader.value()
            case .option("--offline"): options.isOffline = true
            case .option: throw reader.unknownOption
            case .operand(let word): words.append(word)
            }
        }
        guard let first = words.first, let action = Action(rawValue: first) else {
            throw .init("what to do? list, install, verify or remove")
        }
        (self.action, names) = (action, Array(words.dropFirst()))
        let needsNames = action == .install || action == .remove
        guard needsNames != names.isEmpty || action == .verify else {
            throw .init(needsNames ? "\(first) which model?" : "\(first) takes no names")
        }
    }
}
