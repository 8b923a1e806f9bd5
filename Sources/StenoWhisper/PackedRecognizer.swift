import Dispatch
import StenoAnalysis
import StenoAudio

/// One session of whole-file decoding of speech: what the detector lets pass is packed into windows, which are cut where it
/// is quiet and decoded side by side.
final class PackedRecognizer: SpeechRecognizer {
    private static let sampleRate = WhisperRecognizer.sampleRate
    private static let passLength = WhisperRecognizer.passLength
    /// A window is cut in its last third.
    private static let cutZone = passLength / 3
    /// A second between sentences is heard as it is.
    private static let gate = SpeechGate(longestPause: 32)

    private let session: RecognizerSession<TranscriptionResult>
    private let transcriber: WhisperTranscriber
    private let filter: SpeechFilter
    private var results: FileResults
    /// Speech that is in no window yet.
    private var packed = SpeechWindow()
    private struct Window {
        let passes: WindowPasses
        var isRunning = true
        var heard: [HeardWindow] = []
    }
    /// Windows whose results were not sent, in order.
    private var windows: [Window] = []
    /// The n-th window goes to the n-th of them, in turn.
    private var states: [WindowPasses] = []
    private var begun = 0
    private let wake = DispatchSemaphore(value: 0)
    private var language: SpokenLanguage?
    /// The frame after the last one accepted.
    private var nextFrame: Int64?

    init(
        _ transcriber: WhisperTranscriber, detector: SileroModel, _ session: RecognizerSession<TranscriptionResult>
    ) throws(StenoError) {
        self.session = session
        self.transcriber = transcriber
        filter = try SpeechFilter(detector, gate: Self.gate)
        results = FileResults(session, transcriber.options)
        language = transcriber.language
    }

    func accept(_ input: AnalyzerInput) throws {
        let samples = input.floats
        let start = input.bufferStartTime?.frames(at: Self.sampleRate) ?? nextFrame ?? 0
        if let end = nextFrame, start > end {
            if start - end <= WhisperRecognizer.longestFilledGap {
                try take([Float](repeating: 0, count: Int(start - end)), at: end)
            } else {
                try filter.finish(pass: append)
            }
        }
        try take(samples, at: start)
    }

    func finalize(through time: MediaTime) throws { try finish() }

    func finish() throws {
        if session.isCancelled { throw WindowDecoder.cancelled }
        try filter.finish(pass: append)
        if packed.count > 0 { try begin(packed.takeFirst(packed.count), isLast: true) }
        while !windows.isEmpty {
            while windows.contains(where: \.isRunning) { try endPass() }
            sendDone()
            try goOn(windows.indices, threads: transcriber.threads / max(1, windows.count { !$0.passes.isDone }))
        }
    }

    /// Takes audio second by second, so that a long buffer can be cancelled too and needs no more memory.
    private func take(_ samples: [Float], at start: Int64) throws(StenoError) {
        for first in stride(from: 0, to: samples.count, by: Self.sampleRate) {
            if session.isCancelled { throw WindowDecoder.cancelled }
            let part = samples[first..<min(first + Self.sampleRate, samples.count)]
            nextFrame = start + Int64(part.endIndex)
            try filter.filter(part, pass: append)
        }
    }

    private func append(_ samples: ArraySlice<Float>, framesBeforeEnd: Int) throws(StenoError) {
        let start = (nextFrame ?? 0) - Int64(framesBeforeEnd)
        var rest = samples
        while !rest.isEmpty {
            let part = rest.prefix(Self.passLength - packed.count)
            packed.append(part, at: start + Int64(rest.startIndex - samples.startIndex))
            rest = rest.dropFirst(part.count)
            if packed.count == Self.passLength {
                try begin(packed.takeFirst(packed.quietFrame(inLast: Self.cutZone)), isLast: false)
            }
        }
    }

    // MARK: Decoding

    /// Begins to decode a window. What comes of it depends on the audio and the options, and not on which is done first:
    /// whisper.cpp's search draws lots, which go on with the state, and other threads round sums otherwise. So how many
    /// threads a pass has follows from its place: the last windows wait for each other, and those that go on share all.
    private func begin(_ window: SpeechWindow, isLast: Bool) throws(StenoError) {
        let isOnly = isLast && windows.isEmpty
        let limit = transcriber.parallelWindows
        // What is spoken is found out with the first pass.
        while windows.count >= (language == nil ? 1 : limit) {
            // Those that are known not to be among the last; behind this one there is another, unless it is the last.
            let others = windows.indices.prefix(max(0, windows.count - limit + (isLast ? 1 : 2)))
            try goOn(others, threads: transcriber.threads / limit)
            try endPass()
            sendDone()
        }
        if states.count < limit {
            states.append(
                try WindowPasses(transcriber, isSpeech: true, wake: wake) { [session] in session.isCancelled })
        }
        let passes = states[begun % limit]
        begun += 1
        passes.window = window
        passes.hasContext = false
        passes.decoder.language = language
        windows.append(Window(passes: passes))
        try passes.begin(
            isEnd: true, prompt: transcriber.prompt, threads: transcriber.threads / (isOnly ? 1 : limit))
    }

    /// Begins the next pass of those of these windows that need one.
    private func goOn(_ indices: Range<Int>, threads: Int) throws(StenoError) {
        for index in indices where !windows[index].isRunning && !windows[index].passes.isDone {
            windows[index].isRunning = true
            try windows[index].passes.begin(isEnd: true, prompt: [], threads: threads)
        }
    }

    /// Waits for the end of a pass.
    private func endPass() throws(StenoError) {
        func next() -> Int? { windows.firstIndex { $0.isRunning && $0.passes.decoder.isDone } }
        while next() == nil && !session.isCancelled { _ = wake.wait(timeout: .now() + .milliseconds(20)) }
        guard let index = next() else { throw WindowDecoder.cancelled }
        let passes = windows[index].passes
        windows[index].heard.append(try passes.end())
        windows[index].isRunning = false
        language = passes.decoder.language
    }

    /// Sends the results of the windows that are done, in order.
    private func sendDone() {
        while let first = windows.first, !first.isRunning, first.passes.isDone {
            for heard in first.heard { results.send(heard) }
            windows.removeFirst()
        }
    }
}

extension SpeechWindow {
    /// Where the last `count` samples are best cut: in the middle of the last 0.3 s that are quiet, or else quietest.
    func quietFrame(inLast count: Int) -> Int {
        let (hop, width) = (WhisperRecognizer.sampleRate / 100, 30)
        let powers = stride(from: 0, to: samples.count, by: hop).map { first in
            samples[first..<min(first + hop, samples.count)].reduce(0) { $0 + $1 * $1 }
        }
        // 18 dB below the loud parts.
        let quiet = powers.sorted()[powers.count * 9 / 10] / 64
        func stretch(_ first: Int) -> ArraySlice<Float> { powers[first..<first + width] }
        let places = (powers.count - count / hop)...(powers.count - width)
        let best =
            places.last { stretch($0).allSatisfy { $0 <= quiet } }
            ?? places.min { stretch($0).reduce(0, +) < stretch($1).reduce(0, +) } ?? places.upperBound
        return (best + width / 2) * hop
    }
}
