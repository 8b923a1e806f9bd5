import ExampleSupport
import Foundation
import StenoALSA
import StenoAudio
import StenoPulseAudio

/// Prints the capture devices of each back end; `*` marks what opens without a name.
@main struct ListDevices {
    static func main() {
        let text =
            list("PulseAudio", prefix: "pulse") { () throws(StenoError) in try PulseAudio.devices() }
            + list("ALSA", prefix: "alsa") { () throws(StenoError) in try ALSA.devices() }
        exit(printAll(text, by: "list-devices").rawValue)
    }

    private static func list(
        _ title: String, prefix: String, _ devices: () throws(StenoError) -> [CaptureDevice]
    ) -> String {
        var lines = [title]
        do throws(StenoError) {
            let devices = try devices()
            if devices.isEmpty { lines.append("  no devices") }
            let rows = devices.map { device in
                [
                    "\(prefix):\(device.name)", device.kind.rawValue, device.format?.description ?? "",
                    device.description,
                ]
            }
            // The last column needs no padding.
            let widths = (0..<3).map { column in rows.map { $0[column].count }.max() ?? 0 } + [0]
            for (device, row) in zip(devices, rows) {
                let cells = zip(row, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
                lines.append("\(device.isDefault ? "*" : " ") \(cells.joined(separator: "  "))")
            }
        } catch {
            lines.append("  \(error.message)")
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
