import CALSAFaults
import Foundation
import PulseTestServer
import StenoALSA
import StenoAudio
import StenoTesting
import Testing

/// Real libasound without hardware: `file` plug-ins over `null` deliver a file as fast as it is read, and the `pulse`
/// plug-in is a live device on a daemon of the tests' own.
private final class Sound: Sendable {
    static let shared = try? Sound()
    let server: PulseTestServer
    /// 16-bit samples, counting from 1.
    static let ramp = (0..<480_000).map { Int16($0 % 32_749 + 1) }

    init() throws {
        server = try PulseTestServer(modules: ["module-null-sink sink_name=virt format=s16le rate=48000 channels=2"])
        let folder = server.folder.path
        let bytes = Self.ramp.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
        try Data(bytes).write(to: server.folder.appending(path: "ramp.raw"))
        // Every byte differs from its neighbours, so that a wrong width or order shows.
        try Data((0..<96_000).map { UInt8($0 % 251) }).write(to: server.folder.appending(path: "bytes.raw"))
        let configuration = """
            </usr/share/alsa/alsa.conf>
            pcm.ramp { type file slave.pcm null file /dev/null infile "\(folder)/ramp.raw" format raw
                hint { show on description "A ramp of numbers" } }
            pcm.bytes { type file slave.pcm null file /dev/null infile "\(folder)/bytes.raw" format raw }
            pcm.live { type pulse server "\(server.address)" device "virt.monitor" }
            pcm.dead { type pulse server "unix:\(folder)/nothing" }
            """
        let path = folder + "/asound.conf"
        try configuration.write(toFile: path, atomically: true, encoding: .utf8)
        unsafe setenv("ALSA_CONFIG_PATH", path, 1)
    }
}

@Suite(.serialized) struct ALSATests {
    private let sound: Sound
    init() throws { sound = try #require(Sound.shared) }

    func source(_ device: String, request: CaptureFormatRequest = .init(), isLive: Bool = true) -> CaptureSource {
        var configuration = CaptureSource.Configuration()
        configuration.dropsWhenFull = isLive
        return CaptureSource(configuration: configuration) { () throws(StenoError) in
            try ALSACaptureStream(device: device, request: request)
        }
    }

    func wait(until isTrue: () -> Bool) async throws {
        for _ in 0..<800 where !isTrue() { try await Task.sleep(for: .milliseconds(10)) }
        #expect(isTrue())
    }

    @Test(arguments: [1, 2, 5]) func aFileIsCapturedSampleForSample(channels: Int) async throws {
        let request = CaptureFormatRequest(sampleRate: 44_100, channelCount: channels, sampleFormat: .int16)
        let source = source("ramp", request: request, isLive: false)
        let granted = AudioFormat(sampleRate: 44_100, channelCount: channels, sampleFormat: .int16)
        #expect(try await source.start() == granted)
        var samples: [Int16] = []
        for try await event in source.events {
            guard case .frames(let buffer, _) = event else { continue }
            samples += buffer.samples(of: Int16.self)
            if samples.count >= Sound.ramp.count { break }
        }
        source.stop()
        #expect(samples.prefix(Sound.ramp.count).elementsEqual(Sound.ramp))
    }

    /// Law K4: each sample format, in both byte orders, comes out as the same numbers.
    @Test(arguments: [SampleFormat.int16, .int24, .int24in32, .int32, .float32, .float64, .uint8], [false, true])
    func sampleFormatsAndByteOrders(format: SampleFormat, isSwapped: Bool) throws {
        if format == .uint8, isSwapped { return }
        let request = CaptureFormatRequest(sampleRate: 8000, channelCount: 3, sampleFormat: format)
        let stream = try ALSACaptureStream(device: "bytes", request: request, swapsBytes: isSwapped)
        #expect(stream.format == AudioFormat(sampleRate: 8000, channelCount: 3, sampleFormat: format))
        var buffer = AudioBuffer(format: stream.format, frameCapacity: 100)
        #expect(try stream.read(into: &buffer) == .frames)
        let width = format.byteCount
        let count = buffer.frameCount * 3 * width
        #expect(count > 0)
        let bytes = unsafe buffer.withUnsafeBytes { unsafe Array($0.prefix(count)) }
        let expected = (0..<count).map { index in
            let place = index % width
            return UInt8((isSwapped ? index - place + width - 1 - place : index) % 251)
        }
        #expect(bytes == expected)
    }

    @Test func askedAndGrantedDiffer() async throws {
        let stream = try ALSACaptureStream(device: "live")
        #expect(stream.format == AudioFormat(sampleRate: 48_000, channelCount: 2, sampleFormat: .int16))
        let capabilities = try ALSA.capabilities(of: "live")
        // The plug-in has 1 to 32 channels and rates from 1 Hz to 384 kHz or less.
        #expect(capabilities.channelCounts.contains(2))
        #expect(capabilities.sampleFormats.contains(.int16))
        let many = CaptureFormatRequest(sampleRate: 999_999, channelCount: 5000, sampleFormat: .float64)
        let granted = try ALSACaptureStream(device: "live", request: many).format
        #expect(granted.sampleRate == capabilities.sampleRates.upperBound)
        #expect(granted.channelCount == capabilities.channelCounts.upperBound)
        #expect(granted.sampleFormat == .int16)
    }

    @Test func devicesAreListed() throws {
        let ramp = try #require(try ALSA.devices().first { $0.name == "ramp" })
        #expect(ramp.description == "A ramp of numbers")
        #expect(ramp.kind == .input)
        #expect(!ramp.isDefault)
    }

    @Test func aLiveDeviceIsCapturedSampleForSample() async throws {
        let source = source("live")
        _ = try await source.start()
        try await wait { source.statistics.accepted > 0 }
        let frames = countingFrames(48_000)
        try sound.server.play(frames, sink: "virt")
        try await Task.sleep(for: .seconds(2.5))
        source.stop()
        var samples: [Int16] = []
        var missing: Int64 = 0
        for try await event in source.events {
            if case .frames(let buffer, _) = event { samples += buffer.samples(of: Int16.self) }
            if case .gap(_, let frameCount) = event { missing += frameCount }
        }
        let first = try #require(samples.firstIndex { $0 != 0 })
        #expect(samples[first...].prefix(frames.count).elementsEqual(frames))
        #expect(missing == 0)
    }

    /// Cases 093 and 095: after an overrun the device is prepared and started again, and the gap has the length that the
    /// clock says. (The sound server itself buffers too much for an overrun of its own making.)
    @Test func anOverrunIsRecoveredAndMeasured() throws {
        let stream = try ALSACaptureStream(device: "live")
        var buffer = AudioBuffer(format: stream.format, frameCapacity: 960)
        func readOne() throws -> CaptureRead {
            for _ in 0..<100 {
                let read = try stream.read(into: &buffer)
                if read != .nothing { return read }
            }
            return .nothing
        }
        while buffer.frameCount == 0 { _ = try readOne() }
        let begin = ContinuousClock.now
        for _ in 0..<20 { #expect(try readOne() == .frames) }
        usleep(1_000_000)
        fail_next_alsa_read(-EPIPE)
        var gaps: [Int64] = []
        var frames = 20 * 960
        while frames < 48_000 {
            switch try readOne() {
            case .frames: frames += buffer.frameCount
            case .gap(let frameCount, let kind):
                #expect(kind == .overrun)
                gaps.append(frameCount)
            default: break
            }
        }
        #expect(gaps.count == 1, "data came after the overrun")
        let seconds = Double(gaps.reduce(0, +) + Int64(frames)) / 48_000
        let elapsed = (ContinuousClock.now - begin) / .seconds(1)
        #expect(abs(seconds - elapsed) < 0.15, "\(seconds) s for \(elapsed) s")
    }

    @Test func theServerBehindItIsKilledAndComesBack() async throws {
        let source = source("live")
        _ = try await source.start()
        try await wait { source.statistics.accepted > 4800 }
        sound.server.kill()
        try await Task.sleep(for: .milliseconds(500))
        try sound.server.start()
        try await wait { source.statistics.reconnections > 0 }
        let before = source.statistics.accepted
        try await wait { source.statistics.accepted > before + 4800 }
        source.stop()
        var interruptions: [StenoError.Code] = []
        var missing: Int64 = 0
        for try await event in source.events {
            if case .interrupted(let error, _) = event { interruptions.append(error.code) }
            if case .gap(let gap, let frameCount) = event, gap.kind == .deviceLost { missing += frameCount }
        }
        #expect(interruptions == [.deviceLost])
        #expect(missing > 24_000)
        let drift = try #require(source.timing?.drift)
        #expect(abs(drift / .seconds(1)) < 0.6, "the timeline and the clock are apart by \(drift)")
    }

    /// Law K2: each error its own code.
    @Test(arguments: [
        ("nobody", StenoError.Code.noSuchDevice), ("hw:7,0", .noSuchDevice), ("dead", .noServer),
    ])
    func errors(device: String, code: StenoError.Code) async throws {
        let error = await #expect(throws: StenoError.self) { try await source(device).start() }
        #expect(error?.code == code)
        #expect(error?.message.contains(device) == true)
    }

    @Test func aDeviceThatIsUnpluggedIsLost() throws {
        let stream = try ALSACaptureStream(device: "ramp")
        var buffer = AudioBuffer(format: stream.format, frameCapacity: 960)
        #expect(try stream.read(into: &buffer) == .frames)
        fail_next_alsa_read(-ENODEV)
        let error = #expect(throws: StenoError.self) { try stream.read(into: &buffer) }
        #expect(error?.code == .deviceLost)
        #expect(error?.nativeCode == Int(-ENODEV))
    }

    /// No hardware here is busy or forbidden; the system's codes for it are known.
    @Test func errorsOfHardware() {
        #expect(ALSA.openError(-EBUSY, device: "hw:0").code == .deviceBusy)
        #expect(ALSA.openError(-EACCES, device: "hw:0").code == .devicePermissionDenied)
    }

    @Test func invalidRequests() {
        for request in [CaptureFormatRequest(sampleRate: 0), CaptureFormatRequest(channelCount: -1)] {
            let error = #expect(throws: StenoError.self) { try ALSACaptureStream(device: "ramp", request: request) }
            #expect(error?.code == .invalidArgument)
        }
    }

    /// Case 101: ALSA says "no such card" of a card that this user may not see.
    @Test func aForbiddenCardIsNotAnAbsentOne() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "steno-snd-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for (name, mode) in [("timer", 0o600), ("seq", 0o600), ("controlC0", 0o600)] {
            _ = FileManager.default.createFile(
                atPath: folder + "/" + name, contents: nil, attributes: [.posixPermissions: mode])
        }
        #expect(ALSA.forbiddenNode(in: folder) == nil)
        await #expect(processExitsWith: .success) { [folder = folder as String] in
            guard setuid(65_534) == 0 else { exit(2) }
            exit(ALSA.forbiddenNode(in: folder) == folder + "/controlC0" ? 0 : 3)
        }
    }

    @Test func theBackEndKeepsThePromises() async {
        let problems = await checkCaptureSource { () throws(StenoError) in try ALSACaptureStream(device: "live") }
        #expect(problems == [])
    }
}
