import Foundation
import StenoAudio
import StenoTesting
import Testing

/// What a program writes to its standard output: 16-bit samples of one channel at 48 kHz.
final class ProgramStream: CaptureStream {
    let format = AudioFormat(sampleRate: 48000, channelCount: 1, sampleFormat: .int16)
    private let program = Process()
    private let pipe = Pipe()

    init(_ command: [String]) throws(StenoError) {
        program.executableURL = URL(filePath: "/usr/bin/env")
        program.arguments = command
        program.standardInput = FileHandle.nullDevice
        program.standardOutput = pipe
        do {
            try program.run()
        } catch {
            throw StenoError(.noSuchDevice, "\(command) cannot be started: \(error)", underlying: error)
        }
    }

    deinit { program.terminate() }

    func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead {
        let descriptor = pipe.fileHandleForReading.fileDescriptor
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&request, 1, 100) > 0 else { return .nothing }
        if buffer.format != format { buffer = AudioBuffer(format: format, frameCapacity: buffer.frameCapacity) }
        var count = 0
        unsafe buffer.withUnsafeMutableBytes { bytes in
            count = unsafe Foundation.read(descriptor, bytes.baseAddress, bytes.count)
            // The other half of a sample is on its way.
            if count > 0, !count.isMultiple(of: 2) { count += unsafe Foundation.read(descriptor, &bytes[count], 1) }
            return max(0, count / 2)
        }
        if count < 0 { throw StenoError(.deviceFailed, "the pipe cannot be read", nativeCode: Int(errno)) }
        if count == 0 { throw StenoError(.deviceLost, "the program ended") }
        return .frames
    }
}

@Suite(.timeLimit(.minutes(1)))
struct ProgramStreamTests {
    static let tone = [
        "ffmpeg", "-v", "quiet", "-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-f", "s16le", "-",
    ]

    @Test func itKeepsThePromises() async {
        #expect(await checkCaptureSource { () throws(StenoError) in try ProgramStream(Self.tone) } == [])
    }

    @Test func aProgramThatEndsIsALostDevice() async throws {
        var configuration = CaptureSource.Configuration()
        configuration.reconnection = nil
        let source = CaptureSource(configuration: configuration) { () throws(StenoError) in
            try ProgramStream(["head", "-c", "9600", "/dev/zero"])
        }
        _ = try await source.start()
        var frames = 0
        let error = await #expect(throws: StenoError.self) {
            for try await case .frames(let buffer, _) in source.events { frames += buffer.frameCount }
        }
        #expect(frames == 4800)
        #expect(error?.code == .deviceLost)
    }
}
