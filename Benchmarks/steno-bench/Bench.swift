import Foundation
import StenoWhisper

/// Measures parts of Steno, each against a reference in the same run.
@main
struct Bench {
    static let help = """
        Usage: steno-bench [options] [NAME...]

        Runs the benchmarks NAME, or all. To be run in the package's folder, built with -c release.

          --list           what there is
          --runs N         pairs of runs, of which the median counts (default: 5)
          --json FILE      also writes everything to FILE
          --audio FILE     what is transcribed (default: the sample, repeated to a minute)
          --threads N      threads of a decode (default: 2; live, as many as are good)
          --preset NAME    how live recognition decodes: lowLatency, balanced or accurate (default: lowLatency)
          --reference FILE what is said in it, for the word error rate (default: what an offline decode says)
          --hours N        simulates as many hours of audio for drift and memory (retiming, streaming)

        """

    static func main() {
        do {
            try run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            let message = (error as? BenchmarkError)?.message ?? "\(error)"
            FileHandle.standardError.write(Data("steno-bench: \(message)\n".utf8))
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) throws {
        var settings = Settings()
        var names: [String] = []
        var json: String?
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            func value() throws -> String {
                guard let value = rest.popFirst() else { throw BenchmarkError(message: "\(argument) needs a value") }
                return value
            }
            func number<N: LosslessStringConvertible & Comparable & ExpressibleByIntegerLiteral>() throws -> N {
                let text = try value()
                guard let number = N(text), number > 0 else {
                    throw BenchmarkError(message: "\(argument) takes a number above 0, not \(text)")
                }
                return number
            }
            switch argument {
            case "--help", "-h": return print(help, terminator: "")
            case "--list":
                for entry in entries { print("\(entry.name): \(entry.method)") }
                return
            case "--runs": settings.runs = try number()
            case "--json": json = try value()
            case "--audio": settings.audio = try value()
            case "--threads": settings.threads = try number()
            case "--preset":
                let presets = [
                    "lowLatency": WhisperTranscriber.Streaming.lowLatency, "balanced": .balanced, "accurate": .accurate,
                ]
                let name = try value()
                guard let preset = presets[name] else { throw BenchmarkError(message: "there is no preset \(name)") }
                settings.streaming = preset
            case "--hours": settings.hours = try number()
            case "--reference": settings.reference = try String(contentsOfFile: value(), encoding: .utf8)
            default: names.append(argument)
            }
        }
        for name in names where !entries.contains(where: { $0.name == name }) {
            throw BenchmarkError(message: "there is no benchmark \(name); --list tells what there is")
        }
        #if DEBUG
        print("A debug build: these times say little. Build with -c release.\n")
        #endif
        var report = Report()
        for entry in entries where names.isEmpty || names.contains(entry.name) {
            print("\(entry.name): \(entry.method)")
            let figures = try entry.measure(settings)
            print(table(figures) + "\n")
            report.entries.append(.init(name: entry.name, method: entry.method, figures: figures))
        }
        if let json { try report.write(to: json) }
    }

    private static func table(_ figures: [Figure]) -> String {
        func cell(_ value: Double?, _ format: String) -> String { value.map { String(format: format, $0) } ?? "" }
        let rows =
            [["", "ours", "reference", "", "ratio"]]
            + figures.map {
                [$0.name, cell($0.ours, "%.4g"), cell($0.reference, "%.4g"), $0.unit, cell($0.ratio, "%.3f")]
            }
        let widths = (0..<5).map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            "  "
                + row.indices.map { column in
                    let space = String(repeating: " ", count: widths[column] - row[column].count)
                    return column == 0 || column == 3 ? row[column] + space : space + row[column]
                }.joined(separator: "  ")
        }.joined(separator: "\n")
    }
}

/// What `--json` writes.
private struct Report: Encodable {
    struct Entry: Encodable {
        var name: String
        var method: String
        var figures: [Figure]
    }

    var date = Date()
    var processors = ProcessInfo.processInfo.activeProcessorCount
    var processor =
        (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n")
        .first { $0.hasPrefix("model name") }?.split(separator: ": ").last.map(String.init)
    var loadAverage = try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8).split(separator: " ").first.map(
        String.init)
    var entries: [Entry] = []

    func write(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        encoder.dateEncodingStrategy = .iso8601
        try encoder.encode(self).write(to: URL(fileURLWithPath: path))
    }
}
