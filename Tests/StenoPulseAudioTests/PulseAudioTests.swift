import Foundation
import PulseTestServer
import StenoAudio
import StenoPulseAudio
import StenoTesting
import Testing

private let stereo = "module-null-sink sink_name=virt format=s16le rate=48000 channels=2"

/// Against a real daemon with null sinks, whose monitors are live sources.
@Suite(.serialized) struct PulseAudioTests {
    func source(
        _ server: PulseTestServer, _ device: String? = "virt.monitor", request: CaptureFormatRequest = .init(),
        configuration: CaptureSource.Configuration = .init()
    ) -> CaptureSource {
        CaptureSource(configuration: configuration) { [address = server.address] () throws(StenoError) in
            try PulseAudioCaptureStream(device: device, request: request, server: address)
        }
    }

    /// Reads until the source ends or `isDone`, 20 s at most; stops it then.
    func read(_ source: CaptureSource, until isDone: (Recording) -> Bool) async -> Recording {
        var recording = Recording()
        do {
            for try await event in source.events {
                recording.take(event)
                if isDone(recording) || recording.frames > 960_000 { break }
            }
        } catch {
            recording.error = error
        }
        source.stop()
        return recording
    }

    func wait(until isTrue: () -> Bool) async throws {
        for _ in 0..<800 where !isTrue() { try await Task.sleep(for: .milliseconds(10)) }
        #expect(isTrue())
    }

    @Test func whatIsPlayedIsCapturedSampleForSample() async throws {
        let server = try PulseTestServer(modules: [stereo])
        let source = source(server)
        #expect(try await source.start() == AudioFormat(sampleRate: 48_000, channelCount: 2, sampleFormat: .int16))
        let frames = countingFrames(96_000)
        try server.play(frames, sink: "virt")
        let recording = await read(source) { $0.sounding >= 96_000 }
        #expect(recording.sound.elementsEqual(frames))
        // The sink needs up to 2 s before its monitor delivers anything, and that is idle time.
        #expect(recording.gaps.allSatisfy { $0.kind == .idle })
        #expect(recording.misplaced == 0)
        #expect(source.statistics.dropped == 0)
    }

    @Test func theServerConvertsWhatIsAskedFor() async throws {
        let server = try PulseTestServer(modules: [stereo])
        for format in SampleFormat.allCases where format != .float64 {
            let asked = AudioFormat(sampleRate: 16_000, channelCount: 1, sampleFormat: format)
            let request = CaptureFormatRequest(sampleRate: 16_000, channelCount: 1, sampleFormat: format)
            let source = source(server, request: request)
            #expect(try await source.start() == asked)
            source.stop()
        }
    }

    /// Law K4: the source's own format, whatever it is; big-endian samples come in the machine's order.
    @Test(arguments: [
        ("s16be", 2, 44_100, SampleFormat.int16), ("s24le", 1, 96_000, .int24), ("s24be", 3, 8000, .int24),
        ("s24-32be", 2, 48_000, .int24in32), ("s32le", 6, 48_000, .int32), ("float32be", 2, 32_000, .float32),
        ("u8", 8, 11_025, .uint8),
    ])
    func theSourcesOwnFormatIsGranted(name: String, channels: Int, rate: Int, format: SampleFormat) async throws {
        let server = try PulseTestServer(
            modules: ["module-null-sink sink_name=odd format=\(name) rate=\(rate) channels=\(channels)"])
        let source = source(server, "odd.monitor")
        let granted = try await source.start()
        #expect(granted.sampleRate == rate)
        #expect(granted.channelCount == channels)
        #expect(granted.sampleFormat == format)
        let loud = [Int16](repeating: 16_384, count: 48_000)
        try server.play(loud, channelCount: 1, sink: "odd")
        // Half of full scale, whatever the byte order.
        try await wait { source.levels.contains { abs($0.peak - 0.5) < 0.01 } }
        source.stop()
    }

    @Test func devicesAreListed() async throws {
        let server = try PulseTestServer(modules: [
            stereo, "module-null-source source_name=mic rate=44100 channels=1 description=Microphone",
        ])
        try server.control("set-default-source", "mic")
        let devices = try PulseAudio.devices(server: server.address)
        #expect(devices.map(\.name).sorted() == ["mic", "virt.monitor"])
        let mic = try #require(devices.first { $0.name == "mic" })
        #expect(mic.kind == .input)
        #expect(mic.isDefault)
        #expect(mic.format?.sampleRate == 44_100)
        #expect(mic.format?.channelLayout == .mono)
        #expect(devices.first { $0.name == "virt.monitor" }?.kind == .monitor)
    }

    @Test func deviceEvents() async throws {
        let server = try PulseTestServer(modules: [stereo])
        var events = PulseAudio.deviceEvents(server: server.address).makeAsyncIterator()
        // The watcher has to be there before something changes.
        try await Task.sleep(for: .milliseconds(500))
        let module = try server.control("load-module", "module-null-source", "source_name=mic")
        let added = await events.next()
        guard case .added(let device) = added else {
            Issue.record("\(String(describing: added))")
            return
        }
        #expect(device.name == "mic")
        try server.control("set-default-source", "mic")
        // A new source may become the default by itself or by the call.
        guard case .defaultChanged(let now) = await events.next() else {
            Issue.record("no change of the default")
            return
        }
        #expect(now?.name == "mic")
        try server.control("unload-module", module)
        guard case .removed(let gone) = await events.next() else {
            Issue.record("no removal")
            return
        }
        #expect(gone.name == "mic")
    }

    @Test func theDefaultIsFollowed() async throws {
        let server = try PulseTestServer(modules: [stereo, "module-null-sink sink_name=other rate=48000 channels=2"])
        try server.control("set-default-source", "virt.monitor")
        let source = source(server, nil)
        _ = try await source.start()
        try await wait { source.statistics.accepted > 4800 }
        try server.control("set-default-source", "other.monitor")
        let recording = await read(source) { !$0.notices.isEmpty || $0.frames > 480_000 }
        #expect(recording.notices.first?.kind == .deviceChanged)
        #expect(recording.notices.first?.detail.contains("other.monitor") == true)
    }

    /// Case 097: server killed and restarted in mid-capture.
    @Test func theServerIsKilledAndComesBack() async throws {
        let server = try PulseTestServer(modules: [stereo])
        let source = source(server)
        _ = try await source.start()
        try await wait { source.statistics.accepted > 24_000 }
        let cut = ContinuousClock.now
        server.kill()
        try await Task.sleep(for: .milliseconds(700))
        try server.start()
        let restart = ContinuousClock.now
        try await wait { source.statistics.reconnections == 1 }
        let before = source.statistics.accepted
        try await wait { source.statistics.accepted > before + 48_000 }
        source.stop()
        let recording = await read(source) { _ in false }
        #expect(recording.interruptions == [.serverLost])
        #expect(recording.error == nil)
        #expect(recording.misplaced == 0)
        let gap = Double(recording.gaps.filter { $0.kind == .deviceLost }.reduce(0) { $0 + $1.frameCount }) / 48_000
        let away = (restart - cut) / .seconds(1)
        // The time without a server, up to 0.8 s of back-off, and up to 2 s until the new sink delivers.
        #expect(gap > away - 0.15 && gap < away + 3, "\(gap) s missing, \(away) s away")
        let timing = try #require(source.timing)
        #expect(abs(timing.drift / .seconds(1)) < 0.15, "the timeline and the clock are apart by \(timing.drift)")
    }

    @Test func withoutReconnectionTheServersEndIsAnError() async throws {
        let server = try PulseTestServer(modules: [stereo])
        var configuration = CaptureSource.Configuration()
        configuration.reconnection = nil
        let source = source(server, configuration: configuration)
        _ = try await source.start()
        try await wait { source.statistics.accepted > 4800 }
        server.kill()
        let recording = await read(source) { _ in false }
        #expect(recording.error?.code == .serverLost)
    }

    @Test func anUnloadedSourceIsLost() async throws {
        let server = try PulseTestServer(modules: [stereo])
        let module = try server.control("load-module", "module-null-source", "source_name=mic")
        var configuration = CaptureSource.Configuration()
        configuration.reconnection = nil
        let source = source(server, "mic", configuration: configuration)
        _ = try await source.start()
        try await wait { source.statistics.accepted > 4800 }
        try server.control("unload-module", module)
        let recording = await read(source) { _ in false }
        #expect(recording.error?.code == .deviceLost)
    }

    @Test func twoClientsHearTheSame() async throws {
        let server = try PulseTestServer(modules: [stereo])
        let (one, two) = (source(server), source(server))
        _ = try await one.start()
        _ = try await two.start()
        let frames = countingFrames(48_000)
        try server.play(frames, sink: "virt")
        async let first = read(one) { $0.sounding >= 48_000 }
        async let second = read(two) { $0.sounding >= 48_000 }
        #expect(await first.sound.elementsEqual(frames))
        #expect(await second.sound.elementsEqual(frames))
    }

    /// Case 099, and a monitor with nothing playing: no hang; zeros, or idle time, on the timeline.
    @Test func anIdleMonitorKeepsTime() async throws {
        let server = try PulseTestServer(modules: [stereo, "module-suspend-on-idle timeout=0"])
        let source = source(server)
        _ = try await source.start()
        try await wait { source.statistics.accepted > 4800 }
        let before = source.statistics.missing
        try server.control("suspend-sink", "virt", "1")
        try await Task.sleep(for: .seconds(2))
        try server.control("suspend-sink", "virt", "0")
        let awake = source.statistics.accepted
        try await wait { source.statistics.accepted > awake + 4800 }
        source.stop()
        let recording = await read(source) { _ in false }
        #expect(recording.error == nil)
        #expect(recording.misplaced == 0)
        #expect(recording.notices.map(\.kind).contains(.deviceSuspended))
        #expect(recording.gaps.allSatisfy { $0.kind == .idle })
        let idle = Double(source.statistics.missing - before) / 48_000
        #expect(idle > 1.8 && idle < 4, "\(idle) s idle")
        let timing = try #require(source.timing)
        #expect(abs(timing.drift / .seconds(1)) < 0.15, "the timeline and the clock are apart by \(timing.drift)")
    }

    /// Law K2: each error its own code.
    @Test func unknownDevice() async throws {
        let server = try PulseTestServer(modules: [stereo])
        let error = await #expect(throws: StenoError.self) { try await source(server, "nobody").start() }
        #expect(error?.code == .noSuchDevice)
    }

    @Test func noServer() async throws {
        let server = try PulseTestServer(modules: [stereo])
        server.kill()
        let error = await #expect(throws: StenoError.self) { try await source(server).start() }
        #expect(error?.code == .noServer)
        let list = #expect(throws: StenoError.self) { try PulseAudio.devices(server: server.address) }
        #expect(list?.code == .noServer)
    }

    /// A daemon without anonymous access, whose cookie this client does not have.
    @Test func theServerRefusesTheClient() async throws {
        let server = try PulseTestServer(modules: [stereo])
        let closed = server.folder.appending(path: "closed").path
        let cookie = server.folder.appending(path: "cookie").path
        try server.control(
            "load-module", "module-native-protocol-unix", "socket=\(closed)", "auth-cookie=\(cookie)",
            "auth-group-enable=0")
        // The daemon's own user needs no cookie, so another one asks.
        let (address, folder) = ("unix:" + closed, server.folder.path)
        await #expect(processExitsWith: .success) { [address = address as String, folder = folder as String] in
            unsafe chmod(folder, 0o755)
            unsafe chmod(String(address.dropFirst(5)), 0o777)
            guard setuid(65_534) == 0 else { exit(2) }
            unsafe setenv("HOME", "/nonexistent", 1)
            do throws(StenoError) {
                _ = try PulseAudio.devices(server: address)
                exit(3)
            } catch {
                exit(error.code == .devicePermissionDenied ? 0 : 4)
            }
        }
    }

    /// Case 101: a socket that this user may not use is not "no server".
    @Test func theSocketIsForbidden() async throws {
        let server = try PulseTestServer(modules: [stereo])
        let (address, folder) = (server.address, server.folder.path)
        await #expect(processExitsWith: .success) { [address = address as String, folder = folder as String] in
            unsafe chmod(folder, 0o700)
            guard setuid(65_534) == 0 else { exit(2) }
            do throws(StenoError) {
                _ = try PulseAudioCaptureStream(server: address)
                exit(3)
            } catch {
                exit(error.code == .devicePermissionDenied ? 0 : 4)
            }
        }
    }

    @Test func aSilentServerIsATimeout() async throws {
        let server = try PulseTestServer(modules: [stereo])
        server.freeze(true)
        defer { server.freeze(false) }
        let error = await #expect(throws: StenoError.self) { try await source(server).start() }
        #expect(error?.code == .deviceTimeout)
    }

    /// Law K3 in the states that only a real server makes: connecting to one that does not answer, and capturing from
    /// one that stopped answering.
    @Test func stopWithinASecondWhateverTheServerDoes() async throws {
        let server = try PulseTestServer(modules: [stereo])
        let running = source(server)
        _ = try await running.start()
        try await wait { running.statistics.accepted > 4800 }
        server.freeze(true)
        defer { server.freeze(false) }
        let opening = source(server)
        let start = Task { try await opening.start() }
        try await Task.sleep(for: .milliseconds(300))
        for source in [running, opening] {
            #expect(ContinuousClock().measure { source.stop() } < .seconds(1))
        }
        await #expect(throws: StenoError.self) { try await start.value }
    }

    @Test func theBackEndKeepsThePromises() async throws {
        let server = try PulseTestServer(modules: [stereo])
        let address = server.address
        let problems = await checkCaptureSource { () throws(StenoError) in
            try PulseAudioCaptureStream(device: "virt.monitor", server: address)
        }
        #expect(problems == [])
    }
}

/// What a source delivered, as 16-bit stereo.
struct Recording {
    var samples: [Int16] = []
    var frames: Int64 = 0
    var gaps: [(kind: TimelineEvent.Kind, frameCount: Int64)] = []
    var notices: [TimelineEvent] = []
    var interruptions: [StenoError.Code] = []
    var error: StenoError?
    var misplaced = 0
    private var end = MediaTime.zero
    /// Frames that are not silent.
    var sounding = 0

    mutating func take(_ event: CaptureEvent) {
        switch event {
        case .frames(let buffer, let start):
            if start != end { misplaced += 1 }
            end = start + buffer.duration
            frames += Int64(buffer.frameCount)
            guard buffer.format.sampleFormat == .int16, buffer.format.channelCount == 2 else { return }
            let new = buffer.samples(of: Int16.self)
            samples += new
            sounding += stride(from: 0, to: new.count, by: 2).count { new[$0] != 0 }
        case .gap(let gap, let frameCount):
            if gap.range.start != end { misplaced += 1 }
            end = gap.range.end
            gaps.append((gap.kind, frameCount))
        case .notice(let notice): notices.append(notice)
        case .interrupted(let error, _): interruptions.append(error.code)
        case .formatChanged: break
        }
    }

    /// From the first sample that is not silent to the last.
    var sound: ArraySlice<Int16> {
        guard let first = samples.firstIndex(where: { $0 != 0 }), let last = samples.lastIndex(where: { $0 != 0 })
        else {
            return []
        }
        return samples[first...last]
    }
}
