import ExampleSupport
import Foundation
import StenoModels
import Synchronization

/// A line that is drawn anew on a terminal; elsewhere a line for each tenth.
final class ProgressBar: Sendable {
    private struct State {
        var area = LiveArea()
        var tenths = -1
        var phase: ModelProgress.Phase?
    }

    private let name: String
    private let state = Mutex(State())

    init(_ name: String) { self.name = name }

    func show(_ progress: ModelProgress) {
        state.withLock { state in
            if Terminal.isInteractive {
                state.area.show([line(progress)])
                return
            }
            let tenths = Int((progress.fraction ?? 0) * 10)
            guard state.phase != progress.phase || tenths > state.tenths else { return }
            (state.phase, state.tenths) = (progress.phase, tenths)
            Terminal.say("models: \(text(progress))\n")
        }
    }

    func clear() { state.withLock { $0.area.clear() } }

    private func line(_ progress: ModelProgress) -> String {
        let width = 30
        guard let fraction = progress.fraction else { return text(progress) }
        let filled = Int(fraction * Double(width))
        let bar = String(repeating: "#", count: filled) + String(repeating: " ", count: width - filled)
        return "[\(bar)] \(text(progress))"
    }

    private func text(_ progress: ModelProgress) -> String {
        var parts = ["\(name): \(progress.phase.rawValue)", megabytes(progress.received)]
        if let total = progress.total { parts[1] += " of \(megabytes(total))" }
        if let rate = progress.bytesPerSecond { parts.append("\(megabytes(Int64(rate)))/s") }
        if let remaining = progress.remaining {
            let seconds = Int(remaining / .seconds(1))
            parts.append(String(format: "%d:%02d left", seconds / 60, seconds % 60))
        }
        return parts.joined(separator: ", ")
    }

    private func megabytes(_ bytes: Int64) -> String { String(format: "%.1f MB", Double(bytes) / 1e6) }
}
