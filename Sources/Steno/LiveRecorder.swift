import Foundation
import StenoAnalysis
import StenoAudio
import StenoConversion
import StenoFiles
import StenoSoxr

/// Takes what a source captures, writes it to the file first, and hands on what the file holds by then.
///
/// On a thread of its own, since source and disk block. Nothing that happens to the transcription reaches it: it pushes
/// into a backlog that never makes it wait.
actor LiveRecorder: AnalysisObserver {
    private let executor = BlockingExecutor(label: "steno.recorder")
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    /// What can be read of the recorder at any time.
    struct Progress: Sendable {
        /// The length of the timeline: of the file, unless gaps are kept out of it.
        var duration = MediaTime.zero
        var isPaused = false
        /// Why nothing comes at the moment; the source tries to get its device back.
        var interruption: StenoError?
        /// Why the capture ended, other than by a stop.
        var captureError: StenoError?
        /// Why the file ended before the capture did.
        var fileError: StenoError?
        var events: [TimelineEvent] = []
        var lag = LagWatch()
    }

    private let source: CaptureSource
    private let format: AudioFormat
    private let gapPolicy: GapPolicy
    private let progress: Lock<Progress>
    private var file: (any AudioWriter)?
    /// Where the file's frames go next.
    let backlog: Backlog

    private var sourceFormat: AudioFormat
    /// Makes the file's format of frames in another one, after the source changed its format.
    private var adapter: FormatAdapter?
    private var silence: AudioBuffer
    /// The end of the timeline in frames of ``format``.
    private var position: Int64 = 0
    /// Frames that came while it was paused.
    private var pausedFrames: Int64 = 0

    /// - Parameters:
    ///   - format: what the source delivers and the file holds.
    ///   - memoryDuration: seconds of audio that may wait in memory for the analyzer.
    ///   - lag: finds where the analyzer is late.
    private init(
        source: CaptureSource, format: AudioFormat, file: sending (any AudioWriter)?, store: SpilledAudio?,
        gapPolicy: GapPolicy, memoryDuration: Double, lag: LagWatch
    ) {
        progress = Lock(Progress(lag: lag))
        self.source = source
        self.format = format
        self.file = file
        self.gapPolicy = gapPolicy
        sourceFormat = format
        backlog = Backlog(
            format: format, frameCapacity: Int(memoryDuration * Double(format.sampleRate)), store: store)
        silence = AudioBuffer.silence(format: format, frameCount: format.sampleRate)
    }

    /// Makes the file. Blocks, and so runs on a thread of its own.
    static func open(
        source: CaptureSource, format: AudioFormat, recording: LiveSession.Recording?, gapPolicy: GapPolicy,
        memoryDuration: Double, lag: LagWatch
    ) async throws(StenoError) -> LiveRecorder {
        try await Opener().open(source, format, recording, gapPolicy, memoryDuration, lag)
    }

    private actor Opener {
        private let executor = BlockingExecutor(label: "steno.opener")
        nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

        func open(
            _ source: CaptureSource, _ format: AudioFormat, _ recording: LiveSession.Recording?,
            _ gapPolicy: GapPolicy, _ memoryDuration: Double, _ lag: LagWatch
        ) throws(StenoError) -> LiveRecorder {
            guard let recording else {
                return LiveRecorder(
                    source: source, format: format, file: nil, store: nil, gapPolicy: gapPolicy,
                    memoryDuration: memoryDuration, lag: lag)
            }
            let file = try recording.makeWriter(recording.path, format)
            let store: SpilledAudio
            if let (offset, stored) = (file as? AudioFileWriter)?.plainAudio {
                store = try SpilledAudio(path: recording.path, offset: offset, stored: stored, format: format)
            } else {
                let folder = URL(fileURLWithPath: recording.path).deletingLastPathComponent().path
                store = try SpilledAudio(spoolIn: folder, format: format)
            }
            return LiveRecorder(
                source: source, format: format, file: file, store: store, gapPolicy: gapPolicy,
                memoryDuration: memoryDuration, lag: lag)
        }
    }

    nonisolated var currentProgress: Progress { progress.withLock { $0 } }

    nonisolated func setPaused(_ isPaused: Bool) { progress.withLock { $0.isPaused = isPaused } }

    nonisolated func noted(_ event: TimelineEvent) {
        // The gaps that the analyzer sees are noted here already.
        if event.kind != .gap { progress.withLock { $0.events.note(event) } }
    }

    nonisolated func accepted(through time: MediaTime) {
        progress.withLock { progress in
            if let event = progress.lag.accept(through: time) { progress.events.note(event) }
        }
    }

    /// Goes on without the analyzer.
    nonisolated func abandonAnalysis() {
        backlog.abandon()
        progress.withLock { progress in
            if let event = progress.lag.stop() { progress.events.note(event) }
        }
    }

    /// Records until the source ends or the file fails. Afterwards the file is complete and the backlog has its end.
    func run() {
        do throws(StenoError) {
            while let event = try source.nextEvent() {
                guard attempt({ () throws(StenoError) in try take(event) }) else { break }
            }
        } catch {
            progress.withLock { $0.captureError = error }
        }
        _ = attempt { () throws(StenoError) in
            try adapter?.finish { (buffer) throws(StenoError) in try write(buffer) }
        }
        _ = attempt { () throws(StenoError) in try file?.close() }
        backlog.finish()
    }

    /// The first failure of the file ends the capture; what was written stays.
    private func attempt(_ body: () throws(StenoError) -> Void) -> Bool {
        guard currentProgress.fileError == nil else { return false }
        do throws(StenoError) {
            try body()
            return true
        } catch {
            progress.withLock { $0.fileError = error }
            source.stop()
            try? file?.close()
            return false
        }
    }

    private func take(_ event: CaptureEvent) throws(StenoError) {
        switch event {
        case .frames(let buffer, _):
            if currentProgress.isPaused {
                pausedFrames += frames(Int64(buffer.frameCount), of: buffer.format)
                return
            }
            progress.withLock { $0.interruption = nil }
            if pausedFrames > 0 {
                let count = pausedFrames
                pausedFrames = 0
                try addGap(count, .pause, "")
            }
            if buffer.format == format, adapter == nil { return try write(buffer) }
            if adapter == nil { adapter = FormatAdapter(to: format) }
            try adapter?.convert(buffer) { (buffer) throws(StenoError) in try write(buffer) }
        case .gap(let event, let count):
            let count = frames(count, of: sourceFormat)
            if currentProgress.isPaused { pausedFrames += count } else { try addGap(count, event.kind, event.detail) }
        case .formatChanged(let new, _):
            note(.formatChanged, frames: 0, "from \(sourceFormat) to \(new); the recording stays in \(format)")
            sourceFormat = new
        case .interrupted(let error, _):
            progress.withLock { $0.interruption = error }
        case .notice(let event):
            note(event.kind, frames: 0, event.detail)
        }
    }

    /// Missing audio: silence in the file, or a gap that only the timeline knows (law T6).
    private func addGap(_ count: Int64, _ kind: TimelineEvent.Kind, _ detail: String) throws(StenoError) {
        note(kind, frames: count, detail)
        switch gapPolicy {
        case .keep:
            backlog.pushGap(frameCount: count, kind: kind)
            advance(count, isGap: true)
        case .fill:
            var rest = count
            while rest > 0 {
                let length = min(rest, Int64(silence.frameCount))
                try write(length == silence.frameCount ? silence : silence.copy(frames: 0..<Int(length)))
                rest -= length
            }
        }
    }

    /// The file first; only what it took goes on.
    private func write(_ buffer: AudioBuffer) throws(StenoError) {
        try file?.write(buffer)
        backlog.push(buffer)
        advance(Int64(buffer.frameCount))
    }

    private func advance(_ count: Int64, isGap: Bool = false) {
        position += count
        let end = MediaTime(frames: position, sampleRate: format.sampleRate)
        progress.withLock { progress in
            progress.duration = end
            progress.lag.record(through: end, isGap: isGap)
        }
    }

    private func note(_ kind: TimelineEvent.Kind, frames: Int64, _ detail: String) {
        let range = MediaTimeRange(
            start: MediaTime(frames: position, sampleRate: format.sampleRate),
            duration: MediaTime(frames: frames, sampleRate: format.sampleRate))
        progress.withLock { $0.events.note(TimelineEvent(kind, range: range, detail: detail)) }
    }

    /// A count of a source's frames in frames of the file.
    private func frames(_ count: Int64, of source: AudioFormat) -> Int64 {
        MediaTime(frames: count, sampleRate: source.sampleRate).frames(at: format.sampleRate)
    }
}

/// Keeps a recording in one format when its source changes: by conversion, and where channels have no mapping by way of
/// their mix.
private final class FormatAdapter {
    private let direct: AudioConverter
    private let toMono: AudioConverter
    private let fromMono: AudioConverter
    private var mono: AudioBuffer
    private var output: AudioBuffer
    private var mixes = false

    init(to format: AudioFormat) {
        let monoFormat = AudioFormat(sampleRate: format.sampleRate, channelCount: 1, sampleFormat: .float32)
        direct = AudioConverter(to: format, resampler: SoxrResamplerFactory())
        toMono = AudioConverter(to: monoFormat, resampler: SoxrResamplerFactory())
        fromMono = AudioConverter(to: format, resampler: SoxrResamplerFactory())
        mono = AudioBuffer(format: monoFormat, frameCapacity: 0)
        output = AudioBuffer(format: format, frameCapacity: 0)
    }

    func convert(_ buffer: AudioBuffer, _ body: (AudioBuffer) throws(StenoError) -> Void) throws(StenoError) {
        if !mixes {
            do throws(StenoError) {
                try direct.convert(buffer, into: &output)
                return try body(output)
            } catch {
                guard error.code == .unsupportedConversion else { throw error }
                try finish(body)
                mixes = true
            }
        }
        try toMono.convert(buffer, into: &mono)
        try fromMono.convert(mono, into: &output)
        try body(output)
    }

    func finish(_ body: (AudioBuffer) throws(StenoError) -> Void) throws(StenoError) {
        if mixes {
            try toMono.finish(into: &mono)
            try fromMono.convert(mono, into: &output)
            try body(output)
            try fromMono.finish(into: &output)
        } else {
            try direct.finish(into: &output)
        }
        try body(output)
    }
}
