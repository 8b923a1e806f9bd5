import Foundation
package import Steno

/// What a session shows of itself on one line: how long it has been, how loud it is, what is wrong.
package func statusLine(_ status: LiveSession.Status) -> String {
    var parts = [clockTime(status.duration), meter(status.levels)]
    if status.phase != .capturing { parts.append(status.phase.rawValue) }
    if status.lag >= MediaTime(value: 2, timescale: 1) { parts.append("\(Int(status.lag.seconds)) s behind") }
    if status.statistics.dropped > 0 { parts.append("\(status.statistics.dropped) frames lost") }
    if let interruption = status.interruption { parts.append(interruption.message) }
    return parts.joined(separator: "  ")
}

private func clockTime(_ time: MediaTime) -> String {
    let seconds = Int(time.seconds)
    return String(format: "%02d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The loudest channel from -60 dB to full scale: its mean as `#`, its peak as `-`.
private func meter(_ levels: [ChannelLevel]) -> String {
    guard let loudest = levels.max(by: { $0.rms < $1.rms }) else { return "[                    ]" }
    func decibels(_ level: Float) -> Float { max(-60, 20 * log10(max(level, 1e-9))) }
    func cells(_ level: Float) -> Int { min(20, Int((decibels(level) + 60) / 3)) }
    let (mean, peak) = (cells(loudest.rms), max(cells(loudest.peak), cells(loudest.rms)))
    let bar = String(repeating: "#", count: mean) + String(repeating: "-", count: peak - mean)
    return "[" + bar + String(repeating: " ", count: 20 - peak) + "]"
        + String(format: " %3d dB", Int(decibels(loudest.rms)))
}
