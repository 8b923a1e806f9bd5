import CWhisper
import Dispatch
import Glibc
import StenoAnalysis
import StenoAudio
import Synchronization

/// What whisper.cpp made of one window.
struct DecodedWindow {
    struct Segment {
        /// Frames of the window. May reach beyond what was given.
        var range: Range<Int>
        var tokens: [Token]

        /// The same with all times later by so many frames.
        func moved(by frames: Int) -> Segment {
            var moved = self
            moved.range = range.lowerBound + frames..<range.upperBound + frames
            for index in tokens.indices {
                moved.tokens[index].start? += frames
            }
            return moved
        }
    }

    /// A token of the text; marks such as timestamps are left out.
    struct Token {
        var id: Int32
        var bytes: [UInt8]
        var probability: Float
        /// The frame of the window where it begins, if the engine is sure enough of that.
        var start: Int?
    }

    var segments: [Segment]
    /// Where whisper.cpp would go on, in frames of the window; above zero.
    var consumed: Int
    var language: SpokenLanguage
}

/// What one decode does.
struct DecodeRequest {
    var samples: [Float]
    /// Whether the text of earlier windows is the context.
    var usesContext = false
    /// Whether a last text to which the model gave no end is kept. whisper.cpp drops it, for the next window to begin there.
    var keepsOpenEnd = false
    /// The text before, or names to expect.
    var prompt: [Int32] = []
    /// How much the encoder looks at, in its frames of 20 ms; 0 for 30 s, whatever the audio.
    var audioContext = 0
    /// The longest text of a segment; 0 for no limit.
    var maximumTokens = 0
    /// Hypotheses at temperature 0, and attempts above it.
    var beamSize: Int
    var bestOf: Int
    var temperatureIncrement: Float
    var threads: Int
}

/// Runs whisper.cpp over one window after the other: one pass of the encoder for each, with the text so far as context,
/// which together is what one call over the whole audio does.
///
/// No C++ exception crosses into Swift: whisper.cpp throws on files and vocabularies that ``ModelFile`` refuses, and when
/// the system is out of memory or threads, where ggml itself ends the process.
final class WindowDecoder {
    private let transcriber: WhisperTranscriber
    private let isCancelled: @Sendable () -> Bool
    private let state: WhisperState
    /// Signalled after each pass.
    private let wake: DispatchSemaphore
    /// Fixed, or what the first window was found to be in.
    var language: SpokenLanguage?
    private var pass: Pass?

    init(
        _ transcriber: WhisperTranscriber, wake: DispatchSemaphore = DispatchSemaphore(value: 0),
        isCancelled: @escaping @Sendable () -> Bool
    ) throws(StenoError) {
        self.transcriber = transcriber
        self.wake = wake
        self.isCancelled = isCancelled
        self.state = try WhisperState(transcriber.model)
        self.language = transcriber.language
    }

    /// Decodes the start of the samples, as far as one pass reaches. Blocks until it is done, or cancelled.
    func decode(_ request: DecodeRequest) throws(StenoError) -> DecodedWindow {
        try begin(request)
        return try end()
    }

    /// Starts to decode; ``end()`` must follow.
    func begin(_ request: DecodeRequest) throws(StenoError) {
        let pass = Pass(
            state: state, transcriber: transcriber, isCancelled: isCancelled, request: request, language: language)
        // whisper.cpp looks whether it was aborted only between passes of the encoder or decoder, and one pass can take
        // seconds. So it runs on a thread of its own, which is left behind when the session is cancelled: it ends after
        // the pass, and the last reference to the state goes with it.
        try startThread { [wake] in
            pass.run()
            wake.signal()
        }
        self.pass = pass
    }

    /// Whether what was begun is done.
    var isDone: Bool { pass?.isDone == true }

    /// Blocks until what was begun is done, or cancelled.
    func end() throws(StenoError) -> DecodedWindow {
        guard let pass else { preconditionFailure("end() without begin()") }
        defer { self.pass = nil }
        while !pass.isDone && !isCancelled() { _ = wake.wait(timeout: .now() + .milliseconds(20)) }
        if isCancelled() { throw Self.cancelled }
        let code = pass.code.load(ordering: .acquiring)
        guard code == 0, let language = pass.language else {
            throw StenoError(.engineFailed, "whisper.cpp failed to decode a window.", nativeCode: Int(code))
        }
        self.language = language
        let (segments, nextStart) = self.segments()
        var consumed = pass.consumed(lastText: segments.last?.range.upperBound)
        if let nextStart, nextStart > 0 { consumed = min(consumed, nextStart) }
        return DecodedWindow(segments: segments, consumed: consumed, language: language)
    }

    static let cancelled = StenoError(.cancelled, "The transcription was cancelled.")

    /// What was heard, and where the model began a text that it did not give.
    private func segments() -> ([DecodedWindow.Segment], nextStart: Int?) {
        let context = unsafe transcriber.model.context
        let firstMark = unsafe whisper_token_eot(context)
        let firstTime = unsafe whisper_token_beg(context)
        var segments: [DecodedWindow.Segment] = []
        var nextStart: Int?
        let count = unsafe whisper_full_n_segments_from_state(state.pointer)
        for index in 0..<count {
            let start = unsafe Self.frames(whisper_full_get_segment_t0_from_state(state.pointer, index))
            let end = unsafe Self.frames(whisper_full_get_segment_t1_from_state(state.pointer, index))
            var segment = DecodedWindow.Segment(range: start..<max(start, end), tokens: [])
            let tokenCount = unsafe whisper_full_n_tokens_from_state(state.pointer, index)
            for token in 0..<tokenCount {
                let data = unsafe whisper_full_get_token_data_from_state(state.pointer, index, token)
                // With the open end whisper.cpp keeps all of the text in one segment, the times in it.
                if data.id > firstTime {
                    let time = Self.frames(2 * Int64(data.tid - firstTime))
                    if segment.tokens.isEmpty {
                        nextStart = segments.last.map { max($0.range.upperBound, time) }
                    } else {
                        segment.range = segment.range.lowerBound..<max(segment.range.lowerBound, time)
                        segments.append(segment)
                    }
                    segment = DecodedWindow.Segment(range: time..<max(time, end), tokens: [])
                }
                guard data.id < firstMark, let text = unsafe whisper_token_to_str(context, data.id) else { continue }
                nextStart = nil
                // Two hundredths of a second for each time token. The probabilities are whisper.cpp's own limits.
                let isSure = data.pt > 0.01 && data.ptsum > 0.01
                segment.tokens.append(
                    unsafe DecodedWindow.Token(
                        id: data.id, bytes: Array(UnsafeRawBufferPointer(start: text, count: strlen(text))),
                        probability: data.p, start: isSure ? Self.frames(2 * Int64(data.tid - firstTime)) : nil))
            }
            if !segment.tokens.isEmpty { segments.append(segment) }
        }
        return (segments, nextStart)
    }

    /// Frames of whisper.cpp's hundredths of a second.
    private static func frames(_ hundredths: Int64) -> Int { max(0, Int(hundredths)) * Int(WHISPER_HOP_LENGTH) }
}

/// The memory of one session.
//
// @unchecked: used by one thread at a time: that of a pass while it runs, else that of the session.
@safe
private final class WhisperState: @unchecked Sendable {
    let model: WhisperModel
    /// Nil after a failure in which whisper.cpp freed it.
    fileprivate(set) var pointer: OpaquePointer?

    init(_ model: WhisperModel) throws(StenoError) {
        guard let pointer = unsafe whisper_init_state(model.context) else {
            throw StenoError(.insufficientResources, "whisper.cpp cannot set up a session of \(model.path).")
        }
        self.model = model
        unsafe self.pointer = pointer
    }

    deinit { unsafe whisper_free_state(pointer) }
}

/// One call of whisper.cpp.
//
// @unchecked: `run` writes on its thread, then stores `code`, which is loaded before anything else is read; the rest is
// constant.
private final class Pass: @unchecked Sendable {
    private static let running = Int32.min
    /// What whisper.cpp returned.
    let code = Atomic(running)

    private let state: WhisperState
    private let transcriber: WhisperTranscriber
    private let isCancelled: @Sendable () -> Bool
    private let request: DecodeRequest
    /// What is spoken; found by the pass where it is nil before.
    private(set) var language: SpokenLanguage?

    private var hasEncoded = false
    /// What part of the window is done, in percent, rounded down.
    private var progress = 0

    init(
        state: WhisperState, transcriber: WhisperTranscriber, isCancelled: @escaping @Sendable () -> Bool,
        request: DecodeRequest, language: SpokenLanguage?
    ) {
        self.state = state
        self.transcriber = transcriber
        self.isCancelled = isCancelled
        self.request = request
        self.language = language
    }

    var isDone: Bool { code.load(ordering: .acquiring) != Self.running }

    func run() {
        let options = transcriber.options
        var parameters = unsafe whisper_full_default_params(WHISPER_SAMPLING_GREEDY)
        unsafe parameters.strategy = request.beamSize > 1 ? WHISPER_SAMPLING_BEAM_SEARCH : WHISPER_SAMPLING_GREEDY
        unsafe parameters.beam_search.beam_size = Int32(request.beamSize)
        unsafe parameters.greedy.best_of = Int32(request.bestOf)
        unsafe parameters.n_threads = Int32(request.threads)
        unsafe parameters.translate = options.translate
        unsafe parameters.temperature = options.temperature
        unsafe parameters.temperature_inc = request.temperatureIncrement
        unsafe parameters.entropy_thold = options.entropyThreshold
        unsafe parameters.logprob_thold = options.logProbabilityThreshold
        unsafe parameters.no_speech_thold = options.noSpeechThreshold
        unsafe parameters.no_context = !request.usesContext
        unsafe parameters.n_max_text_ctx = Int32(max(options.contextLimit, request.prompt.count + 1))
        unsafe parameters.audio_ctx = Int32(request.audioContext)
        unsafe parameters.max_tokens = Int32(request.maximumTokens)
        unsafe parameters.single_segment = request.keepsOpenEnd
        unsafe parameters.print_progress = false

        let this = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe parameters.abort_callback_user_data = unsafe this
        unsafe parameters.abort_callback = { unsafe Pass.of($0).isCancelled() }
        unsafe parameters.progress_callback_user_data = unsafe this
        unsafe parameters.progress_callback = { unsafe Pass.of($3).progress = Int($2) }
        // The second pass of the encoder would be the next window.
        unsafe parameters.encoder_begin_callback_user_data = unsafe this
        unsafe parameters.encoder_begin_callback = {
            let pass = unsafe Pass.of($2)
            defer { pass.hasEncoded = true }
            return !pass.hasEncoded && !pass.isCancelled()
        }

        let code = unsafe request.prompt.withUnsafeBufferPointer { prompt in
            unsafe parameters.prompt_tokens = prompt.baseAddress
            unsafe parameters.prompt_n_tokens = Int32(prompt.count)
            return unsafe request.samples.withUnsafeBufferPointer { samples in
                var count = Int32(samples.count)
                if language == nil {
                    let code = unsafe detectLanguage(samples)
                    guard code == 0 else { return code }
                    // What whisper.cpp made of the samples is in the state.
                    count = 0
                }
                return unsafe (language?.name ?? "").withCString { language in
                    unsafe parameters.language = language
                    return unsafe whisper_full_with_state(
                        state.model.context, state.pointer, parameters, samples.baseAddress, count)
                }
            }
        }
        // On this one failure the state is freed already.
        if code == -7 { unsafe state.pointer = nil }
        self.code.store(code, ordering: .releasing)
    }

    /// Finds out what is spoken, as whisper.cpp does when it is not told, which keeps the probability for itself and
    /// looks at one language more than models before the third large one know. Returns the code that a whole decode
    /// would.
    private func detectLanguage(_ samples: UnsafeBufferPointer<Float>) -> Int32 {
        let (context, threads) = unsafe (state.model.context, Int32(request.threads))
        let heard = unsafe whisper_pcm_to_mel_with_state(
            context, state.pointer, samples.baseAddress, Int32(samples.count), threads)
        guard heard == 0 else { return -2 }
        var probabilities = [Float](repeating: 0, count: Int(whisper_lang_max_id()) + 1)
        let found = unsafe whisper_lang_auto_detect_with_state(context, state.pointer, 0, threads, &probabilities)
        guard found >= 0 else { return -3 }
        let known = probabilities.prefix(state.model.languages.count)
        let best = known.indices.max { known[$0] < known[$1] } ?? 0
        language = SpokenLanguage(id: Int32(best), confidence: known[best] / known.reduce(0, +))
        return 0
    }

    private static func of(_ pointer: UnsafeMutableRawPointer?) -> Pass {
        unsafe Unmanaged<Pass>.fromOpaque(pointer.unsafelyUnwrapped).takeUnretainedValue()
    }

    /// Where whisper.cpp would begin its next window. It tells only the percentage, but there are two places it chooses:
    /// where the last text ended, or the end of the window when nothing more was in it. Else (text that it dropped as
    /// silence) the earliest place with that percentage is taken.
    func consumed(lastText: Int?) -> Int {
        let hop = Int(WHISPER_HOP_LENGTH)
        let length = max(1, 1 + (request.samples.count - Int(WHISPER_N_FFT) / 2) / hop)
        let window = min(length, Int(WHISPER_CHUNK_SIZE) * 100)
        let earliest = (progress * length + 99) / 100
        let place = [lastText.map { $0 / hop } ?? 0, window].first { 100 * $0 / length == progress } ?? earliest
        return place > 0 && place < length ? min(place * hop, request.samples.count) : request.samples.count
    }
}
