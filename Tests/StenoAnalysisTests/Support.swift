import StenoAnalysis
import StenoAudio
import StenoTesting
import Synchronization
import Testing

/// `count` buffers of silence, each `frames` long at 16 kHz, with stamps where given.
func inputs(_ count: Int, frames: Int = 1600, stamps: [MediaTime?] = []) -> [AnalyzerInput] {
    (0..<count).map { index in
        AnalyzerInput(
            buffer: .silence(format: ScriptedTranscriber.usualFormat, frameCount: frames),
            bufferStartTime: index < stamps.count ? stamps[index] : nil)
    }
}

/// A sequence that delivers these inputs and then ends, unless it is to stay open.
func sequence(_ inputs: [AnalyzerInput], staysOpen: Bool = false) -> AsyncStream<AnalyzerInput> {
    let (stream, continuation) = AsyncStream.makeStream(of: AnalyzerInput.self)
    for input in inputs { continuation.yield(input) }
    if staysOpen {
        openSequences.withLock { $0.append(continuation) }
    } else {
        continuation.finish()
    }
    return stream
}

/// Keeps sequences open: one whose continuation is released ends.
private let openSequences = Lock<[AsyncStream<AnalyzerInput>.Continuation]>([])

func frame(_ value: Int64) -> MediaTime { MediaTime(value: value, timescale: 16000) }

func collect(_ results: ModuleOutput<TranscriptionResult>.Results) async throws(StenoError) -> [TranscriptionResult] {
    var collected: [TranscriptionResult] = []
    for try await result in results { collected.append(result) }
    return collected
}

/// The code of the error that `body` throws, or nil.
func code(of body: () async throws(StenoError) -> Void) async -> StenoError.Code? {
    do throws(StenoError) { try await body() } catch { return error.code }
    return nil
}

/// A transcriber that answers each buffer with a volatile result and makes all of it one final result when asked to.
///
/// - Parameter fault: called before each answer; may block or throw.
func dictation(
    fault: @escaping @Sendable (ScriptedTranscriber.Call) throws -> Void = { _ in }
) -> ScriptedTranscriber {
    let fed = Lock((start: MediaTime.zero, end: MediaTime.zero))
    return ScriptedTranscriber { call, session in
        try fault(call)
        switch call {
        case .prepare: break
        case .accept(let input):
            let range = fed.withLock { fed in
                fed.end = (input.bufferStartTime ?? fed.end) + input.bufferDuration
                return MediaTimeRange(start: fed.start, end: fed.end)
            }
            session.send(TranscriptionResult(range: range, text: "so far", isFinal: false))
        case .finalize(let time):
            let range = fed.withLock { fed in
                defer { fed.start = time }
                return MediaTimeRange(start: fed.start, end: time)
            }
            session.send(TranscriptionResult(range: range, text: "final", isFinal: true))
        case .finish:
            let range = fed.withLock { MediaTimeRange(start: $0.start, end: $0.end) }
            session.send(TranscriptionResult(range: range, text: "last", isFinal: true))
        }
    }
}
