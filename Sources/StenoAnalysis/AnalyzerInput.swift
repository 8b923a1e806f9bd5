public import StenoAudio

/// Audio on its way to the analyzer, and where it lies on the timeline.
public struct AnalyzerInput: Sendable {
    public var buffer: AudioBuffer
    /// When the first frame was, counted from the start of the session; nil means right after the buffer before.
    public var bufferStartTime: MediaTime?

    public init(buffer: AudioBuffer, bufferStartTime: MediaTime? = nil) {
        self.buffer = buffer
        self.bufferStartTime = bufferStartTime
    }

    public var bufferDuration: MediaTime { buffer.duration }
    public var bufferFormat: AudioFormat { buffer.format }
}
