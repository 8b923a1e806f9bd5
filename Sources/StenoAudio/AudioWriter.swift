/// An audio file that is being recorded, as its back end implements it.
///
/// One thread at a time. At every moment the file is playable, and lacks at most the last second of what was written
/// (law F1).
public protocol AudioWriter: AnyObject {
    /// Appends the frames of `buffer`, which has the format that the writer was made for. Blocks for the system.
    ///
    /// - Throws: ``StenoError``, and then at every call. What was written before stays readable.
    func write(_ buffer: AudioBuffer) throws(StenoError)

    /// Completes the file. A second call does nothing.
    func close() throws(StenoError)
}
