/// A stretch of audio in memory: `frameCount` frames in one format.
///
/// A value with copy-on-write storage: a buffer that was handed on never changes under its reader, and one that nobody
/// else holds is filled again without an allocation. Interleaved audio lies frame after frame from byte 0; of planar
/// audio, channel `c` starts at byte `c * frameCapacity * sampleFormat.byteCount`.
public struct AudioBuffer: Sendable {
    public let format: AudioFormat
    /// Frames that the buffer holds now.
    public private(set) var frameCount: Int
    /// Frames for which there is room.
    public private(set) var frameCapacity: Int
    private var storage: [UInt8]

    /// An empty buffer with room for `frameCapacity` frames. Allocates.
    public init(format: AudioFormat, frameCapacity: Int) {
        precondition(frameCapacity >= 0, "a buffer has room for no less than nothing, not \(frameCapacity) frames")
        self.format = format
        self.frameCount = 0
        self.frameCapacity = frameCapacity
        self.storage = [UInt8](repeating: format.sampleFormat.silence, count: frameCapacity * format.bytesPerFrame)
    }

    /// `frameCount` frames of silence. Allocates.
    public static func silence(format: AudioFormat, frameCount: Int) -> AudioBuffer {
        var buffer = AudioBuffer(format: format, frameCapacity: frameCount)
        buffer.frameCount = frameCount
        return buffer
    }

    /// The exact length at the buffer's own rate.
    public var duration: MediaTime { MediaTime(frames: Int64(frameCount), sampleRate: format.sampleRate) }

    /// Makes room for `capacity` frames and keeps what is there. Allocates only when it grows.
    public mutating func reserveCapacity(_ capacity: Int) {
        guard capacity > frameCapacity else { return }
        var grown = AudioBuffer(format: format, frameCapacity: capacity)
        grown.append(self)
        self = grown
    }

    public mutating func removeAll() { frameCount = 0 }

    /// Shortens the buffer to its first `count` frames.
    ///
    /// - Precondition: `count` is in `0...frameCount`.
    public mutating func truncate(to count: Int) {
        precondition((0...frameCount).contains(count), "\(count) frames of \(frameCount)")
        frameCount = count
    }

    /// Appends a range of another buffer's frames in the same format, growing when it must.
    public mutating func append(_ other: AudioBuffer, frames: Range<Int>? = nil) {
        precondition(other.format == format, "appending \(other.format) to \(format)")
        let frames = frames ?? 0..<other.frameCount
        precondition(
            frames.lowerBound >= 0 && frames.upperBound <= other.frameCount, "\(frames) of \(other.frameCount)")
        if frames.isEmpty { return }
        if frameCount + frames.count > frameCapacity {
            reserveCapacity(max(frameCount + frames.count, 2 * frameCapacity))
        }
        let start = frameCount
        let planes = planeCount
        let frameBytes = format.bytesPerFrame / planes
        let capacity = frameCapacity
        unsafe storage.withUnsafeMutableBytes { to in
            unsafe other.storage.withUnsafeBytes { from in
                for plane in 0..<planes {
                    let source = (plane * other.frameCapacity + frames.lowerBound) * frameBytes
                    let target = (plane * capacity + start) * frameBytes
                    unsafe to.baseAddress?.advanced(by: target).copyMemory(
                        from: from.baseAddress.unsafelyUnwrapped + source, byteCount: frames.count * frameBytes)
                }
            }
        }
        frameCount += frames.count
    }

    /// The frames of `range` as a buffer of their own. Allocates.
    public func copy(frames range: Range<Int>) -> AudioBuffer {
        var part = AudioBuffer(format: format, frameCapacity: range.count)
        part.append(self, frames: range)
        return part
    }

    /// Lends the whole storage for reading; the layout is described at the type.
    public func withUnsafeBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try unsafe storage.span.withUnsafeBytes(body)
    }

    /// Lends the whole storage for writing and takes what `body` returns as the new `frameCount`.
    ///
    /// `body` must have written that many frames. Allocates only when another holder still reads the old content.
    public mutating func withUnsafeMutableBytes<E: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(E) -> Int
    ) throws(E) {
        var span = storage.mutableSpan
        let count = try unsafe span.withUnsafeMutableBytes(body)
        precondition((0...frameCapacity).contains(count), "\(count) frames written with room for \(frameCapacity)")
        frameCount = count
    }

    /// Contiguous runs of frames in the storage: one when interleaved, one for each channel when planar.
    var planeCount: Int { format.isInterleaved ? 1 : format.channelCount }
}

/// A Swift number that is the sample of a ``SampleFormat``.
public protocol AudioSample: BitwiseCopyable, Sendable {
    static var sampleFormat: SampleFormat { get }
}

extension UInt8: AudioSample { public static var sampleFormat: SampleFormat { .uint8 } }
extension Int16: AudioSample { public static var sampleFormat: SampleFormat { .int16 } }
extension Int32: AudioSample { public static var sampleFormat: SampleFormat { .int32 } }
extension Float: AudioSample { public static var sampleFormat: SampleFormat { .float32 } }
extension Double: AudioSample { public static var sampleFormat: SampleFormat { .float64 } }

extension AudioBuffer {
    /// A buffer of interleaved samples: `samples.count / channelCount` frames. Allocates.
    ///
    /// - Precondition: `samples` holds whole frames.
    public init<S: AudioSample>(interleaved samples: [S], sampleRate: Int, channelLayout: ChannelLayout = .mono) {
        let channels = channelLayout.channelCount
        precondition(
            samples.count.isMultiple(of: channels), "\(samples.count) samples are no whole frames of \(channels)")
        self.init(
            format: AudioFormat(sampleRate: sampleRate, channelLayout: channelLayout, sampleFormat: S.sampleFormat),
            frameCapacity: samples.count / channels)
        unsafe withUnsafeMutableBytes { bytes in
            unsafe samples.withUnsafeBytes { unsafe bytes.copyMemory(from: $0) }
            return samples.count / channels
        }
    }

    /// Lends the samples of one run of frames: all interleaved samples, or one channel of a planar buffer.
    ///
    /// - Parameter plane: 0 when interleaved, the channel when planar.
    /// - Precondition: `S` is the sample of the buffer's format.
    public func withSamples<S: AudioSample, R, E: Error>(
        of type: S.Type, plane: Int = 0, _ body: (Span<S>) throws(E) -> R
    ) throws(E) -> R {
        precondition(format.sampleFormat == S.sampleFormat, "\(S.self) samples asked of \(format)")
        precondition((0..<planeCount).contains(plane), "plane \(plane) of \(planeCount)")
        let channels = format.channelCount / planeCount
        let (start, count) = (plane * frameCapacity * channels, frameCount * channels)
        return try unsafe withUnsafeBytes { (bytes) throws(E) -> R in
            let samples = unsafe UnsafeBufferPointer(rebasing: bytes.bindMemory(to: S.self)[start..<start + count])
            return try unsafe body(Span(_unsafeElements: samples))
        }
    }

    /// The interleaved samples, or one channel of a planar buffer, as an array. Allocates.
    public func samples<S: AudioSample>(of type: S.Type, plane: Int = 0) -> [S] {
        withSamples(of: S.self, plane: plane) { span in unsafe span.withUnsafeBufferPointer { unsafe Array($0) } }
    }
}
