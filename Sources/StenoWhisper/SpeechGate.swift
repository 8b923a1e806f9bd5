import CWhisper
import StenoAnalysis
import StenoAudio

/// Decides from the detector's probabilities what is speech: a pure state machine.
///
/// It opens after a little speech, and then what came shortly before passes too; it closes some time after the last
/// speech. A short pause passes whole, so that the engine hears a sentence as it was spoken. Counts are chunks of the
/// detector, 32 ms each.
struct SpeechGate {
    /// Chunks of speech that open the gate. Words of 0.2 s must pass, clicks need not.
    static let opening = 2

    /// Speech begins at this probability. It ends somewhat below, so that it does not flutter.
    let beginning: Float
    /// Chunks that pass from before the speech, and after it.
    let before, after: Int
    /// The longest time for which the gate closes without leaving out what came meanwhile.
    let longestPause: Int

    private(set) var isOpen = false
    /// Chunks of speech in a row while closed; chunks without speech in a row while open.
    private var run = 0
    /// Chunks that did not pass since the gate closed.
    private var pause = Int.max / 2

    init(beginning: Float = 0.5, before: Int = 10, after: Int = 12, longestPause: Int = 0) {
        self.beginning = beginning
        (self.before, self.after) = (before, after)
        self.longestPause = longestPause
    }

    /// Takes the probability of the next chunk. Returns how many chunks pass, back from this one.
    mutating func chunksToPass(_ probability: Float) -> Int {
        if isOpen {
            run = probability < beginning - min(0.15, beginning / 2) ? run + 1 : 0
            if run <= after { return 1 }
            (isOpen, run, pause) = (false, 0, 1)
        } else {
            run = probability < beginning ? 0 : run + 1
            pause += 1
            if run == Self.opening {
                defer { (isOpen, run) = (true, 0) }
                return pause <= longestPause ? pause : min(pause, run + before)
            }
        }
        return 0
    }
}

/// Lets speech pass and holds back everything else, with bounded memory.
@safe
final class SpeechFilter {
    static let chunkLength = 512

    private let detector: OpaquePointer
    private let closed: SpeechGate
    private var gate: SpeechGate
    /// Audio that has not passed; the last of it, less than a chunk, the detector has not heard.
    private var held: [Float] = []
    private var heard = 0

    /// Blocks: loads the detector.
    ///
    /// - Parameter gate: Decides what passes; as it is at the beginning of the audio.
    init(_ model: SileroModel, gate: SpeechGate) throws(StenoError) {
        var parameters = whisper_vad_default_context_params()
        // The network is too small to share.
        parameters.n_threads = 1
        guard let detector = unsafe whisper_vad_init_from_file_with_params(model.path, parameters) else {
            throw StenoError(.modelInvalid, "whisper.cpp cannot load the detector \(model.path).")
        }
        unsafe self.detector = detector
        closed = gate
        self.gate = gate
        reset()
    }

    /// Whether speech goes on.
    var isOpen: Bool { gate.isOpen }

    deinit { unsafe whisper_vad_free(detector) }

    /// Takes audio and hands on what is speech: `pass` gets samples and how many frames lie between the first of them
    /// and the end of `samples`.
    func filter(
        _ samples: ArraySlice<Float>, pass: (ArraySlice<Float>, _ framesBeforeEnd: Int) throws(StenoError) -> Void
    ) throws(StenoError) {
        held += samples
        let chunks = (held.count - heard) / Self.chunkLength
        if chunks == 0 { return }
        for probability in try probabilities(held[heard..<heard + chunks * Self.chunkLength]) {
            heard += Self.chunkLength
            let count = min(gate.chunksToPass(probability) * Self.chunkLength, heard)
            if count > 0 { try pass(held[heard - count..<heard], held.count - heard + count) }
            // What may still pass when the gate opens with the next chunk.
            let kept =
                gate.isOpen
                ? 0 : min(heard, max(gate.longestPause, gate.before + SpeechGate.opening) * Self.chunkLength)
            held.removeFirst(heard - kept)
            heard = kept
        }
    }

    /// Ends the audio: the rest of less than a chunk is judged, and everything begins anew.
    func finish(pass: (ArraySlice<Float>, _ framesBeforeEnd: Int) throws(StenoError) -> Void) throws(StenoError) {
        let rest = held.count - heard
        if rest > 0 {
            let silence = [Float](repeating: 0, count: Self.chunkLength - rest)
            let probability = try probabilities(held[heard...] + silence)[0]
            let chunks = gate.chunksToPass(probability)
            if chunks > 0 {
                let count = min((chunks - 1) * Self.chunkLength + rest, held.count)
                try pass(held[(held.count - count)...], count)
            }
        }
        reset()
    }

    private func reset() {
        gate = closed
        held.removeAll(keepingCapacity: true)
        heard = 0
        unsafe whisper_vad_reset_state(detector)
    }

    private func probabilities(_ samples: ArraySlice<Float>) throws(StenoError) -> [Float] {
        let isDetected = unsafe samples.withUnsafeBufferPointer {
            unsafe whisper_vad_detect_speech_no_reset(detector, $0.baseAddress, Int32($0.count))
        }
        let count = samples.count / Self.chunkLength
        guard isDetected, unsafe Int(whisper_vad_n_probs(detector)) == count,
            let first = unsafe whisper_vad_probs(detector)
        else { throw StenoError(.engineFailed, "The detector failed.") }
        return unsafe Array(UnsafeBufferPointer(start: first, count: count))
    }
}
