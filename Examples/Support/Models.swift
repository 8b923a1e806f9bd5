import Foundation

/// Where models are looked for: in `$STENO_MODELS`, `./.steno/models` and `~/.local/share/steno/models`.
package enum Models {
    package static func path(of nameOrPath: String) -> String {
        if nameOrPath.contains("/") || FileManager.default.fileExists(atPath: nameOrPath) { return nameOrPath }
        return find("ggml-\(nameOrPath).bin")
    }

    package static func detectorPath() -> String { find("ggml-silero-v6.2.0.bin") }

    /// The first place that has the file; else the one that Scripts/bootstrap fills, which the error then names.
    private static func find(_ name: String) -> String {
        let environment = ProcessInfo.processInfo.environment
        let data = environment["XDG_DATA_HOME"] ?? (environment["HOME"] ?? "") + "/.local/share"
        let folders = [environment["STENO_MODELS"], ".steno/models", data + "/steno/models"].compactMap { $0 }
        let candidates = folders.map { $0 + "/" + name }
        return candidates.first { FileManager.default.fileExists(atPath: $0) } ?? candidates[candidates.count - 2]
    }
}
