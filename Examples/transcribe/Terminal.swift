import Foundation
import Steno

/// Standard error, with a progress line where it is a terminal.
enum Terminal {
    static let isInteractive = isatty(STDERR_FILENO) == 1

    static func say(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }

    static func clearProgress() {
        if isInteractive { say("\r\u{1B}[K") }
    }
}

/// How far a file is: a bar where the length is known, the time alone where it is not.
struct Progress {
    private let start = ContinuousClock.now
    private let width = 30

    func show(_ time: MediaTime, of total: MediaTime?) {
        guard Terminal.isInteractive else { return }
        let elapsed = (ContinuousClock.now - start) / .seconds(1)
        let speed = String(format: "%.1fx", elapsed > 0 ? time.seconds / elapsed : 0)
        guard let total, total > .zero else { return Terminal.say("\r\u{1B}[K\(Int(time.seconds)) s  \(speed)") }
        let share = min(1, time.seconds / total.seconds)
        let filled = Int(share * Double(width))
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
        Terminal.say("\r\u{1B}[K[\(bar)] \(Int(share * 100)) %  \(Int(time.seconds))/\(Int(total.seconds)) s  \(speed)")
    }
}
