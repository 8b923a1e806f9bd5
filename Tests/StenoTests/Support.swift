import Foundation
import Steno
import StenoTesting
import Synchronization

/// Whether the long forms of some tests are wanted, which take minutes to hours: set STENO_SOAK to a file for
/// their figures.
let isSoak = ProcessInfo.processInfo.environment["STENO_SOAK"] != nil

/// Appends a figure to the file that STENO_SOAK names.
func report(_ figure: String) {
    guard let path = ProcessInfo.processInfo.environment["STENO_SOAK"] else { return }
    let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    try? (text + figure + "\n").write(toFile: path, atomically: true, encoding: .utf8)
}

/// A configuration of a source that is read as fast as the session takes it.
func waitingConfiguration() -> CaptureSource.Configuration {
    var configuration = CaptureSource.Configuration()
    configuration.dropsWhenFull = false
    configuration.reconnection = nil
    return configuration
}

func source(_ device: ScriptedCaptureDevice) -> CaptureSource {
    CaptureSource(configuration: waitingConfiguration()) { () throws(StenoError) in try device.open() }
}

func temporaryFile(_ type: String = "wav") -> String {
    FileManager.default.temporaryDirectory.appending(path: "steno-\(UUID()).\(type)").path
}

func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }

/// Bytes of this process that are in memory.
func residentBytes() -> Int {
    let fields = (try? String(contentsOfFile: "/proc/self/statm", encoding: .ascii))?.split(separator: " ") ?? []
    return fields.count > 1 ? (Int(fields[1]) ?? 0) * sysconf(Int32(_SC_PAGESIZE)) : 0
}

/// How much memory grew since the first call of ``note()``.
struct MemoryWatch {
    private var first: Int?
    private var largest = 0

    mutating func note() {
        let now = residentBytes()
        first = first ?? now
        largest = max(largest, now)
    }

    var growth: Int { largest - (first ?? largest) }
}

/// A transcriber that says one word for each whole period of audio, keeps none of it, and checks that it is contiguous.
final class PeriodicListener: Sendable {
    struct Heard: Sendable {
        var frames: Int64 = 0
        var said: Int64 = 0
        var misplaced = 0
    }

    private final class Memory: Sendable {
        let heard = Lock(Heard())
    }

    private let memory: Memory
    var heard: Heard { memory.heard.withLock { $0 } }
    let transcriber: ScriptedTranscriber

    /// - Parameters:
    ///   - period: Seconds.
    ///   - delay: How long it takes for a second of audio, in seconds.
    init(period: Int64, delay: Double = 0, prepare: @escaping @Sendable () -> Void = {}) {
        let memory = Memory()
        self.memory = memory
        transcriber = ScriptedTranscriber(keepsCalls: false) { call, session in
            switch call {
            case .prepare: prepare()
            case .accept(let input):
                if delay > 0 { Thread.sleep(forTimeInterval: delay * input.bufferDuration.seconds) }
                let words = memory.heard.withLock { heard in
                    if input.bufferStartTime != MediaTime(frames: heard.frames, sampleRate: 16000) {
                        heard.misplaced += 1
                    }
                    heard.frames += Int64(input.buffer.frameCount)
                    defer { heard.said = heard.frames / (16000 * period) }
                    return heard.said..<heard.frames / (16000 * period)
                }
                for word in words {
                    let range = MediaTimeRange(
                        start: MediaTime(value: word * period, timescale: 1),
                        duration: MediaTime(value: period, timescale: 1))
                    session.send(TranscriptionResult(range: range, text: "w\(word)", isFinal: true))
                }
            case .finalize, .finish: break
            }
        }
    }
}
