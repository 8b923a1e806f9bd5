import StenoAudio
import StenoTesting
import Synchronization
import Testing

/// Laws T6 and K2 on scripted devices: what is missing is told, where it is missing.
@Suite struct CaptureTimelineTests {
    func run(
        _ device: ScriptedCaptureDevice, _ configuration: CaptureSource.Configuration
    ) async throws -> (Captured, CaptureSource) {
        let source = CaptureSource(configuration: configuration, open: device.open)
        _ = try await source.start()
        let captured = await capture(source)
        let counts = source.statistics
        #expect(captured.misplaced == [])
        #expect(counts.offered == counts.accepted + counts.dropped)
        #expect(captured.frames == counts.accepted)
        return (captured, source)
    }

    @Test func everyFrameArrivesInOrder() async throws {
        let device = ScriptedCaptureDevice(format: mono16, [.frames(1), .frames(2), .nothing, .frames(100_000)])
        let (captured, _) = try await run(device, simulated(ManualClock()))
        #expect(captured.frames == 100_003)
        #expect(captured.error == nil)
        #expect(captured.gaps.isEmpty)
    }

    /// Case 041: the device's rate counts, not the one that somebody asked for.
    @Test func theGrantedFormatIsReported() async throws {
        let granted = AudioFormat(sampleRate: 44_100, channelCount: 6, sampleFormat: .int24)
        let device = ScriptedCaptureDevice(format: granted, [.frames(44_100)])
        let source = CaptureSource(configuration: simulated(ManualClock()), open: device.open)
        #expect(try await source.start() == granted)
        #expect(await capture(source).end == MediaTime(value: 1, timescale: 1))
    }

    /// Case 095: an overrun of the device is missing audio, not an error.
    @Test func aDeviceOverrunIsAGap() async throws {
        let device = ScriptedCaptureDevice(format: mono16, [.frames(1000), .gap(480, .overrun), .frames(1000)])
        let (captured, source) = try await run(device, simulated(ManualClock()))
        #expect(captured.gaps.map(\.frameCount) == [480])
        #expect(captured.gaps.first?.start == MediaTime(frames: 1000, sampleRate: 48_000))
        #expect(captured.end == MediaTime(frames: 2480, sampleRate: 48_000))
        #expect(source.statistics.missing == 480)
    }

    @Test func aFormatChangeStartsANewStretch() async throws {
        let other = AudioFormat(sampleRate: 44_100, channelCount: 2, sampleFormat: .float32, isInterleaved: false)
        let device = ScriptedCaptureDevice(
            format: mono16, [.frames(24_000), .format(other), .frames(44_100), .gap(441, .overrun), .frames(1)])
        let (captured, _) = try await run(device, simulated(ManualClock()))
        #expect(captured.formats == [other])
        #expect(captured.end == MediaTime(value: 3, timescale: 2) + MediaTime(frames: 442, sampleRate: 44_100))
    }

    /// Planar audio through the ring, sample for sample, over its end many times.
    @Test(arguments: [true, false]) func planesStayApart(isInterleaved: Bool) async throws {
        let format = AudioFormat(
            sampleRate: 8000, channelCount: 3, sampleFormat: .int32, isInterleaved: isInterleaved)
        let device = ScriptedCaptureDevice(format: format, [.frames(100_001)])
        let source = CaptureSource(configuration: simulated(ManualClock()), open: device.open)
        _ = try await source.start()
        var wrong = 0
        _ = await capture(source) { event in
            guard case .frames(let buffer, let start) = event else { return }
            for channel in 0..<3 {
                let samples = buffer.samples(of: Int32.self, plane: isInterleaved ? 0 : channel)
                for frame in 0..<buffer.frameCount {
                    let sample = isInterleaved ? samples[frame * 3 + channel] : samples[frame]
                    if Int64(sample) != start.value + Int64(frame + channel) { wrong += 1 }
                }
            }
        }
        #expect(wrong == 0)
    }

    /// Cases 093 and 099: a device that stops delivering is opened (prepared, started) again, and the time is missing.
    @Test func aStalledDeviceIsOpenedAgain() async throws {
        let clock = ManualClock()
        let device = ScriptedCaptureDevice(
            format: mono16, pace: .manual(clock, framesPerSecond: 48_000),
            [.frames(48_000)] + [ScriptedCaptureDevice.Step](repeating: .pass(.milliseconds(100)), count: 40),
            [.frames(48_000)])
        let openedBesideAnother = Atomic(0)
        let source = CaptureSource(configuration: simulated(clock)) { () throws(StenoError) in
            openedBesideAnother.add(device.liveStreamCount, ordering: .relaxed)
            return try device.open()
        }
        _ = try await source.start()
        let captured = await capture(source, counting: false)
        #expect(captured.interruptions == [.deviceTimeout])
        #expect(openedBesideAnother.load(ordering: .relaxed) == 0, "The stalled device is closed first.")
        #expect(captured.frames == 96_000)
        // The watchdog bites after the first read beyond 3 s.
        #expect(captured.gapFrames(.deviceLost) == 48_000 * 31 / 10)
        #expect(source.statistics.reconnections == 1)
        #expect(device.liveStreamCount == 0)
    }

    /// Case 099: a device that never delivers anything is an error.
    @Test func aDeviceThatNeverDeliversIsAnError() async throws {
        let clock = ManualClock()
        let device = ScriptedCaptureDevice(
            format: mono16, pace: .manual(clock, framesPerSecond: 48_000),
            [ScriptedCaptureDevice.Step](repeating: .pass(.milliseconds(100)), count: 100))
        let (captured, _) = try await run(device, simulated(clock))
        #expect(captured.error?.code == .deviceTimeout)
        #expect(device.openCount == 1)
    }

    /// Case 097: loss, a typed interruption, reopening with back-off, the missing time as a gap; the session goes on.
    @Test func aLostDeviceComesBack() async throws {
        let clock = ManualClock()
        let lost = StenoError(.serverLost, "The script stops the server.")
        let device = ScriptedCaptureDevice(
            format: mono16, pace: .manual(clock, framesPerSecond: 48_000),
            [.frames(48_000), .fail(lost)], [.fail(lost)], [.pass(.seconds(2)), .frames(9600)])
        let source = CaptureSource(configuration: simulated(clock), open: device.open)
        _ = try await source.start()
        let captured = await capture(source, counting: false)
        #expect(captured.interruptions == [.serverLost])
        #expect(captured.error == nil)
        #expect(captured.frames == 57_600)
        #expect(captured.gapFrames(.deviceLost) == 2 * 48_000)
        #expect(captured.end == MediaTime(value: 32, timescale: 10))
        #expect(captured.misplaced == [])
        #expect(source.statistics.reconnections == 2)
    }

    @Test func reconnectionCanBeTurnedOff() async throws {
        var configuration = simulated(ManualClock())
        configuration.reconnection = nil
        let device = ScriptedCaptureDevice(
            format: mono16, [.frames(480), .fail(StenoError(.deviceLost, "Unplugged by the script."))], [.frames(1)])
        let (captured, _) = try await run(device, configuration)
        #expect(captured.error?.code == .deviceLost)
        #expect(captured.frames == 480)
        #expect(device.openCount == 1)
    }

    @Test func otherErrorsEndTheCapture() async throws {
        let device = ScriptedCaptureDevice(
            format: mono16, [.frames(480), .fail(StenoError(.devicePermissionDenied, "Revoked by the script."))])
        let (captured, source) = try await run(device, simulated(ManualClock()))
        #expect(captured.error?.code == .devicePermissionDenied)
        var iterator = source.events.makeAsyncIterator()
        #expect(try await iterator.next() == nil, "an error is delivered once")
    }

    /// Case 011, and a monitor with nothing playing: time goes on as gaps of kind `idle`, before, between and after.
    @Test func idleTimeIsOnTheTimeline() async throws {
        let clock = ManualClock()
        let quiet = [ScriptedCaptureDevice.Step](repeating: .pass(.milliseconds(100)), count: 40)
        let device = ScriptedCaptureDevice(
            format: mono16, pace: .manual(clock, framesPerSecond: 48_000),
            [.silence(.idle)] + quiet + [.frames(48_000)] + quiet + [.frames(48_000)])
        let source = CaptureSource(configuration: simulated(clock), open: device.open)
        _ = try await source.start()
        let captured = await capture(source, counting: false)
        #expect(captured.misplaced == [])
        #expect(captured.error == nil)
        #expect(captured.gapFrames(.idle) == 8 * 48_000)
        #expect(captured.end == MediaTime(value: 10, timescale: 1))
        #expect(source.timing?.drift == .zero)
    }

    /// A suspended device delivers nothing, however short the time is.
    @Test func suspendedTimeIsMissing() async throws {
        let clock = ManualClock()
        let device = ScriptedCaptureDevice(
            format: mono16, pace: .manual(clock, framesPerSecond: 48_000),
            [.frames(48_000), .silence(.suspended), .pass(.milliseconds(300)), .silence(.idle), .frames(48_000)])
        let source = CaptureSource(configuration: simulated(clock), open: device.open)
        _ = try await source.start()
        let captured = await capture(source, counting: false)
        #expect(captured.gapFrames(.idle) == 14_400)
    }

    /// A server that gets no time to work delivers late: what was taken for missing then is not missing a second time.
    @Test func lateAudioIsTakenOffTheNextGap() async throws {
        let clock = ManualClock()
        let device = ScriptedCaptureDevice(
            format: mono16, pace: .manual(clock, framesPerSecond: 48_000),
            [.silence(.idle), .frames(48_000), .pass(.seconds(3)), .late(3 * 48_000), .frames(48_000)]
                + [.pass(.seconds(4)), .frames(48_000)])
        let source = CaptureSource(configuration: simulated(clock), open: device.open)
        _ = try await source.start()
        let captured = await capture(source, counting: false)
        #expect(captured.misplaced == [])
        // 10 s by the clock, 6 s of frames: only 4 s are missing. The first of the late reads told the first gap's end.
        #expect(captured.gapFrames(.idle) == 4 * 48_000)
        #expect(captured.end == MediaTime(value: 10, timescale: 1))
    }

    /// A pause of a tenth of a second is no idle time: the device has it in its buffer.
    @Test func shortQuietIsNotIdle() async throws {
        let clock = ManualClock()
        let device = ScriptedCaptureDevice(
            format: mono16, pace: .manual(clock, framesPerSecond: 48_000),
            [.silence(.idle), .frames(4800), .pass(.milliseconds(100)), .frames(4800)])
        let (captured, _) = try await run(device, simulated(clock))
        #expect(captured.gaps.isEmpty)
    }

    /// Case 017: media time counts frames; what the device's clock gains is readable.
    @Test func driftIsMeasured() async throws {
        let clock = ManualClock()
        let device = ScriptedCaptureDevice(
            format: AudioFormat(sampleRate: 48_000, channelCount: 1, sampleFormat: .uint8),
            pace: .manual(clock, framesPerSecond: 48_002), [.zeros(300 * 48_002)])
        let source = CaptureSource(configuration: simulated(clock), open: device.open)
        _ = try await source.start()
        let captured = await capture(source)
        #expect(captured.end == MediaTime(frames: 300 * 48_002, sampleRate: 48_000))
        // 5 minutes at 41.7 parts in a million; the first read's length is known to a nanosecond or so only.
        let drift = try #require(source.timing?.drift)
        #expect(abs((drift - .microseconds(12_500)) / .microseconds(1)) < 2)
    }

    @Test func digitalZerosAreNoticedOnce() async throws {
        let device = ScriptedCaptureDevice(
            format: mono16, [.frames(100), .zeros(48_000 * 11), .frames(2), .zeros(48_000 * 9)])
        let source = CaptureSource(configuration: simulated(ManualClock()), open: device.open)
        _ = try await source.start()
        let captured = await capture(source, counting: false)
        #expect(captured.notices.map(\.kind) == [.digitalSilence])
        let range = try #require(captured.notices.first?.range)
        #expect(range.start == MediaTime(frames: 100, sampleRate: 48_000))
        #expect(range.duration.seconds >= 10)
    }

    @Test func levelsOfEachChannel() async throws {
        let stereo = AudioFormat(sampleRate: 1000, channelCount: 2, sampleFormat: .float32)
        // Counts 0…49 and 1…50 in steps of 2^-20.
        let device = ScriptedCaptureDevice(format: stereo, [.frames(50)])
        let source = CaptureSource(configuration: simulated(ManualClock()), open: device.open)
        _ = try await source.start()
        _ = await capture(source)
        let levels = source.levels
        #expect(levels.map(\.peak) == [49.0 / 1_048_576, 50.0 / 1_048_576])
        let rms = (Float((1...50).reduce(0) { $0 + $1 * $1 }) / 50).squareRoot() / 1_048_576
        #expect(abs(levels[1].rms - rms) < 1e-9)
    }

    @Test(arguments: [SampleFormat.uint8, .int16, .int24, .int24in32, .int32])
    func levelsOfEachSampleFormat(format: SampleFormat) async throws {
        let device = ScriptedCaptureDevice(
            format: AudioFormat(sampleRate: 400, channelCount: 1, sampleFormat: format), [.frames(100)])
        let source = CaptureSource(configuration: simulated(ManualClock()), open: device.open)
        _ = try await source.start()
        _ = await capture(source)
        // Reads of 8 frames fill windows of 24, and the last one counts 72…95; 8-bit silence is 128.
        let fullScale: [SampleFormat: Float] = [.uint8: 0x80, .int16: 0x8000, .int32: 0x8000_0000]
        let loudest: Float = format == .uint8 ? 56 : 95
        #expect(source.levels.first?.peak == loudest / (fullScale[format] ?? 0x80_0000))
    }
}
