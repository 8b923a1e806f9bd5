import Glibc
public import StenoAnalysis
public import StenoAudio

/// Hears the keys of a telephone (DTMF): each is a result of one word, volatile while it sounds and final when it ends.
/// A key is two tones, one for its row and one for its column (ITU-T Q.23). Goertzel's algorithm (1958) tells how strong a
/// tone is. A window of 25 ms, moved on by 5 ms, holds a key when two tones make up 0.6 of its energy.
public final class ToneSpotter: TranscriberModule {
    public let output = ModuleOutput<TranscriptionResult>()
    public let compatibleAudioFormats = [AudioFormat(sampleRate: 8000, channelCount: 1, sampleFormat: .float32)]
    public let capabilities: TranscriberCapabilities = [.volatileResults, .wordTimes]
    public init() {}
    public func makeRecognizer(_ session: RecognizerSession<TranscriptionResult>) -> any SpeechRecognizer {
        KeyRecognizer(session)
    }
}

private final class KeyRecognizer: SpeechRecognizer {
    private static let keys = ["123A", "456B", "789C", "*0#D"].map { $0.map(String.init) }
    private static let rows = [697, 770, 852, 941].map(resonance)
    private static let columns = [1209, 1336, 1477, 1633].map(resonance)
    private static func resonance(_ frequency: Float) -> Float { 2 * cos(2 * .pi * frequency / 8000) }
    private let session: RecognizerSession<TranscriptionResult>
    private var window: [Float] = []
    private var windowStart: Int64 = 0
    /// The key that sounds: where the first window and the last that held it start, and what was said of it.
    private var heard: (key: String, first: Int64, last: Int64, isTold: Bool, isFinal: Bool)?
    init(_ session: RecognizerSession<TranscriptionResult>) { self.session = session }

    func accept(_ input: AnalyzerInput) {
        let first = input.bufferStartTime?.frames(at: 8000) ?? windowStart + Int64(window.count)
        if first != windowStart + Int64(window.count) {
            finish()
            (window, windowStart) = ([], first)
        }
        for sample in input.buffer.samples(of: Float.self) where !session.isCancelled {
            window.append(sample)
            guard window.count == 200 else { continue }
            hear(keyInWindow())
            window.removeFirst(40)
            windowStart += 40
        }
    }

    func finalize(through time: MediaTime) { tell(isFinal: true) }
    func finish() { hear(nil) }

    private func hear(_ key: String?) {
        if heard?.key != key {
            tell(isFinal: true)
            heard = key.map { ($0, windowStart, windowStart, false, false) }
        }
        heard?.last = windowStart
        tell(isFinal: false)
    }

    /// By ITU-T Q.24 a tone of 40 ms is a key and one of 24 ms is none. At its edges it fills 0.6 of a window, 15 ms.
    private func tell(isFinal: Bool) {
        guard let heard, isFinal ? !heard.isFinal : !heard.isTold, heard.last - heard.first >= 216 else { return }
        func time(_ frame: Int64) -> MediaTime { MediaTime(frames: frame, sampleRate: 8000) }
        let range = MediaTimeRange(start: time(heard.first + 80), end: time(heard.last + 120))
        let word = TranscribedWord(heard.key, range: range)
        session.send(TranscriptionResult(range: range, text: heard.key, words: [word], isFinal: isFinal))
        self.heard = (heard.key, heard.first, heard.last, true, isFinal)
    }

    private func keyInWindow() -> String? {
        let (rows, columns) = (Self.rows.map(power), Self.columns.map(power))
        let (row, column) = (rows.max() ?? 0, columns.max() ?? 0)
        let (y, x) = (rows.firstIndex(of: row) ?? 0, columns.firstIndex(of: column) ?? 0)
        let energy = window.reduce(0) { $0 + $1 * $1 } / Float(window.count)
        // Louder than -60 dB, and the two at most 8 dB apart.
        let isKey = energy > 1e-6 && row + column > 0.6 * energy && min(row, column) * 6.3 > max(row, column)
        return isKey ? Self.keys[y][x] : nil
    }

    /// Goertzel: the mean square of the part of the window that has one frequency.
    private func power(_ resonance: Float) -> Float {
        let (a, b) = window.reduce((Float(0), Float(0))) { ($1 + resonance * $0.0 - $0.1, $0.0) }
        return 2 * (a * a + b * b - resonance * a * b) / Float(window.count * window.count)
    }
}
