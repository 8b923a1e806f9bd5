/// What one blocking read of a source brought.
public enum CaptureRead: Sendable, Equatable {
    /// The buffer holds frames that follow what came before.
    case frames
    /// This many frames of the source are missing before the next ones, and why.
    case gap(frameCount: Int64, kind: TimelineEvent.Kind)
    /// Nothing came in time; ask again. Keeps a stop prompt while a device is silent.
    case nothing
    /// Something to know about, with one sentence for people; no audio is missing.
    case notice(TimelineEvent.Kind, String)
    /// The source has ended; every later read says so again.
    case end
}

/// What it means when a stream delivers nothing.
public enum CaptureSilence: Sendable, Hashable {
    /// The device should deliver: ``StenoError/Code/deviceTimeout``.
    case fault
    /// It may have nothing to deliver, such as a monitor with nothing playing. From 2 s on the time is a gap of kind
    /// `idle`; before, the audio may only be late.
    case idle
    /// It is known to deliver nothing, such as a suspended device. The time is a gap of kind `idle` from the start.
    case suspended
}

/// A source of audio as its back end implements it: a synchronous stream that one thread reads.
///
/// The core owns the thread: a stream is opened, read and released on one. `read(into:)` blocks, but comes back at least
/// every 100 ms while nothing comes. In the steady state it neither allocates nor takes a lock.
public protocol CaptureStream: AnyObject {
    /// The format that was granted. It may differ from what was asked for, and it may change: each buffer carries the
    /// format of its own frames.
    var format: AudioFormat { get }

    /// Replaces the content of `buffer` with the next frames, at most `buffer.frameCapacity` of them. A buffer in
    /// another format than ``format`` is replaced by one of the same capacity in that format.
    ///
    /// - Throws: ``StenoError``; after an error the stream has ended.
    func read(into buffer: inout AudioBuffer) throws(StenoError) -> CaptureRead

    /// What it means now when nothing comes; a fault unless said.
    var silence: CaptureSilence { get }

    /// How long the source says it is; nil when it does not know, as a live one never does.
    var duration: MediaTime? { get }

    /// What the source found odd about itself so far, such as the warnings of a damaged file.
    var events: [TimelineEvent] { get }
}

extension CaptureStream {
    public var silence: CaptureSilence { .fault }
    public var duration: MediaTime? { nil }
    public var events: [TimelineEvent] { [] }
}
