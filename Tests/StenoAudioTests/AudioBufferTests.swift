import StenoAudio
import Testing

struct AudioBufferTests {
    @Test func aBufferThatWasHandedOnDoesNotChange() {
        var buffer = AudioBuffer(interleaved: [1, 2, 3, 4] as [Int16], sampleRate: 8000, channelLayout: .stereo)
        let kept = buffer
        unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe bytes.storeBytes(of: 9, as: Int16.self)
            return 1
        }
        #expect(kept.samples(of: Int16.self) == [1, 2, 3, 4])
        #expect(buffer.samples(of: Int16.self) == [9, 2])
    }

    @Test func planarFramesStayTogetherWhenABufferGrows() {
        let format = AudioFormat(sampleRate: 8000, channelCount: 2, sampleFormat: .int16, isInterleaved: false)
        var source = AudioBuffer(format: format, frameCapacity: 3)
        unsafe source.withUnsafeMutableBytes { bytes in
            for (index, sample) in ([1, 2, 3, -1, -2, -3] as [Int16]).enumerated() {
                unsafe bytes.storeBytes(of: sample, toByteOffset: 2 * index, as: Int16.self)
            }
            return 3
        }
        var target = AudioBuffer(format: format, frameCapacity: 1)
        target.append(source, frames: 1..<3)
        target.append(source)
        #expect(target.samples(of: Int16.self, plane: 0) == [2, 3, 1, 2, 3])
        #expect(target.samples(of: Int16.self, plane: 1) == [-2, -3, -1, -2, -3])
        #expect(target.duration == MediaTime(value: 5, timescale: 8000))
    }

    @Test func silenceIsSilentInEveryFormat() {
        for format in SampleFormat.allCases {
            let buffer = AudioBuffer.silence(
                format: AudioFormat(sampleRate: 8000, channelCount: 1, sampleFormat: format), frameCount: 2)
            let bytes = unsafe buffer.withUnsafeBytes { unsafe [UInt8]($0) }
            #expect(bytes == [UInt8](repeating: format.silence, count: 2 * format.byteCount))
        }
    }

    @Test func speakersFollowTheChannelOrder() {
        #expect(ChannelLayout.surround51.speaker(ofChannel: 3) == .lowFrequency)
        #expect(ChannelLayout.surround51.speaker(ofChannel: 4) == .backLeft)
        #expect(ChannelLayout.discrete(3).speaker(ofChannel: 0) == nil)
        #expect(ChannelLayout(speakers: [.frontLeft, .frontRight]) == .stereo)
        #expect(ChannelLayout(speakers: []) == nil)
    }
}
