import Glibc
import StenoAudio
import StenoTesting
import Synchronization
import Testing

/// Law K3: `stop()` and `deinit` return within 1 s whatever the device does.
@Suite struct CaptureStopTests {
    let endless = ScriptedCaptureDevice.Step.frames(.max)

    /// Gives a blocked read no end of its own.
    var patient: CaptureSource.Configuration {
        var configuration = CaptureSource.Configuration()
        configuration.stallTimeout = .seconds(60)
        return configuration
    }

    func duration(of body: () -> Void) -> Duration { ContinuousClock().measure(body) }

    @Test func stopWhileDeliveringKeepsWhatWasCaptured() async throws {
        let device = ScriptedCaptureDevice(format: mono16, pace: .realTime, [endless])
        let source = CaptureSource(open: device.open)
        _ = try await source.start()
        while source.statistics.accepted < 9600 { try await Task.sleep(for: .milliseconds(10)) }
        #expect(duration { source.stop() } < .seconds(1))
        #expect(device.liveStreamCount == 0)
        // Case 023: what was captured before the stop comes still.
        let captured = await capture(source)
        #expect(captured.frames == source.statistics.accepted)
        #expect(captured.error == nil)
        #expect(duration { source.stop() } < .milliseconds(400))
    }

    @Test func stopWhileAReadDoesNotComeBack() async throws {
        let device = ScriptedCaptureDevice(format: mono16, [.frames(480), .block])
        defer { device.release() }
        let source = CaptureSource(configuration: patient, open: device.open)
        _ = try await source.start()
        while source.statistics.accepted < 480 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(duration { source.stop() } < .seconds(1))
        let captured = await capture(source)
        #expect(captured.frames == 480)
        #expect(captured.error == nil)
        #expect(
            duration { source.stop() } < .milliseconds(400), "a device that was left behind is not waited for again")
    }

    @Test func aBlockedReadIsATimeout() async throws {
        var configuration = CaptureSource.Configuration()
        configuration.stallTimeout = .seconds(1)
        let device = ScriptedCaptureDevice(format: mono16, [.frames(480), .block, .frames(480)])
        let source = CaptureSource(configuration: configuration, open: device.open)
        _ = try await source.start()
        let captured = await capture(source)
        #expect(captured.error?.code == .deviceTimeout)
        #expect(captured.frames == 480)
        // The thread that was left behind goes away when the read comes back, and adds nothing.
        device.release()
        while device.liveStreamCount > 0 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(source.statistics.accepted == 480)
    }

    @Test func anOpeningThatDoesNotComeBack() async throws {
        var configuration = CaptureSource.Configuration()
        configuration.openTimeout = .milliseconds(300)
        let device = ScriptedCaptureDevice(format: mono16, [])
        let entered = Atomic(0)
        @Sendable func open() throws(StenoError) -> any CaptureStream {
            entered.add(1, ordering: .relaxed)
            while device.openCount == 0 { Thread.sleep() }
            return try device.open()
        }
        let source = CaptureSource(configuration: configuration, open: open)
        let error = await #expect(throws: StenoError.self) { try await source.start() }
        #expect(error?.code == .deviceTimeout)
        let other = CaptureSource(open: open)
        let started = Task { try await other.start() }
        while entered.load(ordering: .relaxed) < 2 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(duration { other.stop() } < .seconds(1))
        let cancelled = await #expect(throws: StenoError.self) { try await started.value }
        #expect(cancelled?.code == .cancelled)
        _ = try device.open()
    }

    @Test func cancellingTheStart() async throws {
        let gate = ScriptedCaptureDevice(format: mono16, [])
        let source = CaptureSource { () throws(StenoError) in
            while gate.openCount == 0 { Thread.sleep() }
            return try gate.open()
        }
        let start = Task { try await source.start() }
        try await Task.sleep(for: .milliseconds(30))
        start.cancel()
        _ = try gate.open()
        await #expect(throws: StenoError.self) { try await start.value }
    }

    @Test func releasingTheSourceStopsIt() async throws {
        let device = ScriptedCaptureDevice(format: mono16, pace: .realTime, [endless])
        var source: CaptureSource? = CaptureSource(open: device.open)
        _ = try await source?.start()
        #expect(device.liveStreamCount == 1)
        #expect(duration { source = nil } < .seconds(1))
        #expect(device.liveStreamCount == 0)
    }

    @Test func stopWhileTheDeviceIsLost() async throws {
        let device = ScriptedCaptureDevice(
            format: mono16, [.frames(480), .fail(StenoError(.deviceLost, "Unplugged by the script."))])
        let source = CaptureSource(open: device.open)
        _ = try await source.start()
        while device.openCount < 4 { try await Task.sleep(for: .milliseconds(5)) }
        #expect(duration { source.stop() } < .milliseconds(500))
        let captured = await capture(source)
        #expect(captured.error == nil)
        #expect(captured.interruptions == [.deviceLost])
    }

    /// After a loss no thread spins: tries come at 50, 100, 200, 400 ms … and cost next to nothing.
    @Test func aLostDeviceIsTriedWithBackOff() async throws {
        let device = ScriptedCaptureDevice(
            format: mono16, [.frames(480), .fail(StenoError(.deviceLost, "Unplugged by the script."))])
        let source = CaptureSource(open: device.open)
        _ = try await source.start()
        try await Task.sleep(for: .seconds(1))
        #expect((3...10).contains(device.openCount))
        source.stop()
    }

    @Test func theReaderCanBeCancelledAndReplaced() async throws {
        let device = ScriptedCaptureDevice(format: mono16, pace: .realTime, [endless])
        let source = CaptureSource(open: device.open)
        _ = try await source.start()
        let reader = Task { await capture(source) }
        try await Task.sleep(for: .milliseconds(200))
        reader.cancel()
        let first = await reader.value
        #expect(first.error?.code == .cancelled)
        source.stop()
        let second = await capture(source, counting: false)
        #expect(second.error == nil)
        #expect(first.frames + second.frames == source.statistics.accepted)
    }

    @Test func aSecondReaderIsRefused() async throws {
        let device = ScriptedCaptureDevice(format: mono16, [.block])
        defer { device.release() }
        let source = CaptureSource(configuration: patient, open: device.open)
        _ = try await source.start()
        // Both wait for the blocked device; the one that comes second is refused, the other one goes on to the end.
        async let one = capture(source)
        async let two = capture(source)
        try await Task.sleep(for: .milliseconds(500))
        source.stop()
        let ends = await [one.error?.code, two.error?.code]
        #expect(ends.filter { $0 == nil }.count == 1)
        #expect(ends.contains(.invalidArgument))
    }

    @Test func theScriptedDeviceKeepsThePromises() async {
        let endless = endless
        let device = ScriptedCaptureDevice(format: mono16, pace: .realTime, [endless], [endless], [endless], [endless])
        #expect(await checkCaptureSource(duration: .milliseconds(300), open: device.open) == [])
    }
}

private enum Thread {
    static func sleep() { usleep(1000) }
}
