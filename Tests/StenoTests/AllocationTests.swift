import CAllocationCounter
import Foundation
import Steno
import StenoTesting
import Testing

@Suite("Law C5: in the steady state nothing is allocated for a buffer", .serialized)
struct AllocationTests {
    /// All the way: capture thread, ring, recorder, file, backlog, converter, analyzer, the module's thread; also while
    /// the recognizer lags, so that queues are full and the recording is read back.
    @Test(.enabled(if: allocation_count_supported()), arguments: [false, true])
    func fromTheDeviceToTheRecognizer(isSlow: Bool) async {
        // A process of its own: what is counted is the whole process, and other tests run beside this one.
        await #expect(processExitsWith: .success) { [isSlow = isSlow as Bool] in
            let format = AudioFormat(sampleRate: 48000, channelCount: 2, sampleFormat: .int16)
            let device = ScriptedCaptureDevice(format: format, pace: .realTime, [.frames(.max)])
            let path = temporaryFile()
            defer { remove(path) }
            let transcriber = ScriptedTranscriber(keepsCalls: false) { call, _ in
                if isSlow, case .accept(let input) = call {
                    Thread.sleep(forTimeInterval: 4 * input.bufferDuration.seconds)
                }
            }
            let source = CaptureSource { () throws(StenoError) in try device.open() }
            let session = LiveSession(
                source: source, recording: .init(path: path), transcriber: transcriber,
                options: .init(memoryDuration: 0.2, analyzer: .init(queueDuration: 0.1)))
            try await session.start()
            try await Task.sleep(for: .seconds(4))
            let (before, framesBefore) = (allocation_count_process(), source.statistics.accepted)
            try await Task.sleep(for: .seconds(3))
            let (after, framesAfter) = (allocation_count_process(), source.statistics.accepted)
            let buffers = (framesAfter - framesBefore) / 960
            #expect(buffers > 100)
            // The sleep itself allocates some times, however long it is.
            #expect(after - before < 20, "\(after - before) allocations for \(buffers) buffers")
            let lag = await session.status.lag
            #expect((lag > MediaTime(value: 2, timescale: 1)) == isSlow)
            await session.cutShort()
            _ = await session.stop()
        }
    }
}
