import StenoAudio
import StenoTesting
import Testing

/// Law K1 and principle 6: a slow consumer loses only what the ring cannot hold, and every lost frame is told.
@Suite struct CaptureOverloadTests {
    @Test func aStalledConsumerFindsTheGapWhereItIs() async throws {
        let device = ScriptedCaptureDevice(format: mono16, [.frames(48_000 * 10)])
        let source = CaptureSource(open: device.open)
        _ = try await source.start()
        while source.statistics.offered < 480_000 { try await Task.sleep(for: .milliseconds(1)) }
        let captured = await capture(source)
        #expect(captured.misplaced == [])
        // The ring holds 4 s; the rest was dropped at its end.
        #expect(captured.frames == 4 * 48_000)
        #expect(captured.gaps.map(\.kind) == [.overrun])
        #expect(captured.gaps.first?.start == MediaTime(value: 4, timescale: 1))
        #expect(captured.gapFrames(.overrun) == 288_000)
        #expect(captured.end == MediaTime(value: 10, timescale: 1))
        #expect(source.statistics.dropped == 6 * 48_000)
    }

    @Test func aSlowConsumerLosesNothingUncounted() async throws {
        let device = ScriptedCaptureDevice(format: mono16, [.frames(48_000 * 60)])
        let source = CaptureSource(open: device.open)
        _ = try await source.start()
        let captured = await capture(source) { _ in try? await Task.sleep(for: .microseconds(500)) }
        #expect(captured.misplaced == [])
        #expect(captured.end == MediaTime(value: 60, timescale: 1))
        #expect(captured.gapFrames(.overrun) == source.statistics.dropped)
        #expect(captured.frames + source.statistics.dropped == 60 * 48_000)
    }

    /// More gaps than the queue of marks holds, and nobody reads: they are merged, none is forgotten.
    @Test func aFloodOfGapsKeepsItsSum() async throws {
        let flood = (0..<1000).flatMap { _ in [ScriptedCaptureDevice.Step.frames(10), .gap(1, .overrun)] }
        let device = ScriptedCaptureDevice(format: mono16, flood)
        let source = CaptureSource(open: device.open)
        _ = try await source.start()
        while source.statistics.missing < 1000 { try await Task.sleep(for: .milliseconds(1)) }
        let captured = await capture(source)
        #expect(captured.misplaced == [])
        #expect(captured.end == MediaTime(frames: 11_000, sampleRate: 48_000))
        #expect(captured.frames == source.statistics.accepted)
        #expect(captured.gapFrames(.overrun) == source.statistics.missing + source.statistics.dropped)
    }

    /// 1600 scripts. At 100 Hz the ring is small, and reads are of 2 frames; every counting frame must be in its place.
    @Test(arguments: 0..<8) func randomScriptsBalance(seed: UInt64) async throws {
        var random = SplitMix(state: seed)
        for _ in 0..<200 {
            var configuration = CaptureSource.Configuration()
            configuration.dropsWhenFull = Bool.random(using: &random)
            let rate = [100, 48_000].randomElement(using: &random)!
            let format = AudioFormat(sampleRate: rate, channelCount: 1, sampleFormat: .int16)
            let device = ScriptedCaptureDevice(format: format, script(&random))
            let source = CaptureSource(configuration: configuration, open: device.open)
            _ = try await source.start()
            let isSlow = Int.random(in: 0..<4, using: &random) == 0
            let captured = await capture(source) { _ in
                let counts = source.statistics
                #expect(counts.offered == counts.accepted + counts.dropped)
                if isSlow { await Task.yield() }
            }
            let counts = source.statistics
            #expect(captured.misplaced == [])
            #expect(captured.error == nil)
            #expect(captured.frames == counts.accepted)
            #expect(counts.offered == counts.accepted + counts.dropped)
            let missing = captured.gaps.reduce(0) { $0 + $1.frameCount }
            #expect(missing == counts.missing + counts.dropped)
            #expect(captured.end == MediaTime(frames: counts.offered + counts.missing, sampleRate: rate))
        }
    }

    private func script(_ random: inout SplitMix) -> [ScriptedCaptureDevice.Step] {
        (0..<Int.random(in: 0...40, using: &random)).map { _ in
            switch Int.random(in: 0..<10, using: &random) {
            case 0: .gap(Int64.random(in: 1...5000, using: &random), [.overrun, .gap].randomElement(using: &random)!)
            case 1: .nothing
            case 2: .notice(.deviceChanged, "by the script")
            case 3: .frames(Int.random(in: 0...4000, using: &random))
            default: .frames(Int.random(in: 0...300, using: &random))
            }
        }
    }
}

struct SplitMix: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
