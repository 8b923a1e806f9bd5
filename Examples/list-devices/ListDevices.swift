import StenoALSA
import StenoAudio
import StenoPulseAudio

/// Prints the capture devices of each back end; `*` marks what opens without a name.
@main struct ListDevices {
    static func main() {
        show("PulseAudio", prefix: "pulse") { () throws(StenoError) in try PulseAudio.devices() }
        show("ALSA", prefix: "alsa") { () throws(StenoError) in try ALSA.devices() }
    }

    static func show(_ title: String, prefix: String, _ list: () throws(StenoError) -> [CaptureDevice]) {
        print(title)
        do throws(StenoError) {
            let devices = try list()
            if devices.isEmpty { print("  no devices") }
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
                print(device.isDefault ? "*" : " ", cells.joined(separator: "  "))
            }
        } catch {
            print("  \(error.message)")
        }
    }
}
