import ExampleSupport
import Foundation
import Steno

/// How far a file is, on a terminal: a bar where the length is known, the time alone where it is not.
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

    static func clear() {
        if Terminal.isInteractive { Terminal.say("\r\u{1B}[K") }
    }
}
