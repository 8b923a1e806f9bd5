import CAllocationCounter
import Glibc
import StenoAudio
import StenoTesting
import Synchronization
import Testing

/// Laws K1 and C5: after the first buffers, neither the capture thread nor the reading of events allocates.
@Suite struct CaptureAllocationTests {
    /// Also while the ring overflows because nobody reads.
    @Test(arguments: [true, false]) func theCaptureThreadAllocatesNothing(isRead: Bool) async throws {
        guard allocation_count_supported() else { return }
        let counted = CountedStream()
        let source = CaptureSource { () throws(StenoError) in counted.makeStream() }
        _ = try await source.start()
        if !isRead { while !counted.isDone { try await Task.sleep(for: .milliseconds(10)) } }
        let captured = await capture(source, counting: false)
        #expect(captured.frames + captured.gapFrames(.overrun) == 960 * 400)
        #expect(counted.allocations.load(ordering: .relaxed) == 0)
    }

    /// The whole process, in a process of its own: capture thread, supervisor and consumer. Suspending and
    /// resuming a task allocates in the language's runtime and in libdispatch; nothing else does.
    @Test(arguments: [true, false]) func aBufferAllocatesNothingOnItsWay(isBlocking: Bool) async {
        guard allocation_count_supported() else { return }
        await #expect(processExitsWith: .success) { [isBlocking = isBlocking as Bool] in
            let device = ScriptedCaptureDevice(
                format: AudioFormat(sampleRate: 48_000, channelCount: 2, sampleFormat: .int16), pace: .realTime,
                [.frames(.max)])
            let source = CaptureSource(open: device.open)
            _ = try await source.start()
            var iterator = source.events.makeAsyncIterator()
            func next() async throws { _ = isBlocking ? try source.nextEvent() : try await iterator.next() }
            for _ in 0..<50 { try await next() }
            let before = allocation_count_process()
            for _ in 0..<100 { try await next() }
            let count = allocation_count_process() - before
            #expect(count <= (isBlocking ? 0 : 400), "\(count) allocations for 100 buffers")
        }
    }

    /// A reader that keeps a buffer finds it unchanged, and costs one allocation for each that it keeps.
    @Test func aKeptBufferStaysAsItIs() async throws {
        let device = ScriptedCaptureDevice(format: mono16, [.frames(48_000 * 3)])
        let source = CaptureSource(configuration: simulated(ManualClock()), open: device.open)
        _ = try await source.start()
        var kept: [(AudioBuffer, MediaTime)] = []
        for try await case .frames(let buffer, let start) in source.events { kept.append((buffer, start)) }
        for (buffer, start) in kept {
            buffer.withSamples(of: Int16.self) { samples in
                let expected = samples.indices.allSatisfy {
                    samples[$0] == Int16(truncatingIfNeeded: start.value + Int64($0))
                }
                #expect(expected)
            }
        }
    }
}

/// Counts what the capture thread allocates between its reads, from the 100th on.
private final class CountedStream: Sendable {
    let allocations = Atomic<UInt64>(.max)
    var isDone: Bool { allocations.load(ordering: .relaxed) != .max }

    func makeStream() -> any CaptureStream { Stream(self) }

    private final class Stream: CaptureStream {
        let format = AudioFormat(sampleRate: 48_000, channelCount: 2, sampleFormat: .int16)
        private let owner: CountedStream
        private var reads = 0
        private var first: UInt64 = 0

        init(_ owner: CountedStream) { self.owner = owner }

        func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead {
            reads += 1
            if reads == 100 { first = allocation_count_thread() }
            if reads > 400 {
                owner.allocations.store(allocation_count_thread() - first, ordering: .relaxed)
                return .end
            }
            usleep(1000)
            unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe bytes.storeBytes(of: UInt8(truncatingIfNeeded: reads), as: UInt8.self)
                return 960
            }
            return .frames
        }
    }
}
