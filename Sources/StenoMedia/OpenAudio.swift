public import StenoAudio
internal import StenoFiles

/// Opens a file with the reader that its content asks for, whatever its name: libsndfile's ``AudioFileSource`` where
/// that reads it, else ``MediaFileSource``.
///
/// - Parameter track: Which audio track, counted from 0; nil for the one that the file proposes, or the first.
/// - Throws: As either reader; when neither reads the file, the error of the one that knows its kind.
public func openAudio(path: String, track: Int? = nil) throws(StenoError) -> sending any CaptureStream {
    try openAudio(ByteInput(path: path), track: track)
}

/// Reads an open descriptor from where it stands, seekable or a pipe, with the reader that its content asks for.
///
/// - Parameters:
///   - name: What to call it in messages.
///   - closesDescriptor: Whether the descriptor is closed in the end, also when this throws.
/// - Throws: As ``openAudio(path:track:)``.
public func openAudio(
    descriptor: Int32, name: String = "standard input", closesDescriptor: Bool = false, track: Int? = nil
) throws(StenoError) -> sending any CaptureStream {
    try openAudio(ByteInput(descriptor: descriptor, name: name, closesDescriptor: closesDescriptor), track: track)
}

private func openAudio(_ input: sending ByteInput, track: Int?) throws(StenoError) -> sending any CaptureStream {
    let first: StenoError
    do throws(StenoError) {
        let source = try AudioFileSource(input: input)
        guard (track ?? 0) == 0 else {
            throw StenoError(
                .invalidArgument, "\(quoted(input.name)) has 1 audio track; there is no track \(track ?? 0)")
        }
        return source
    } catch {
        first = error
    }
    switch first.code {
    case .fileUnsupported, .fileDamaged, .fileNotAudio: break
    default: throw first
    }
    do throws(StenoError) {
        return try MediaFileSource(input: input, track: track)
    } catch {
        // What libsndfile knows and could not read is its to explain.
        throw first.code == .fileDamaged && error.code != .invalidArgument ? first : error
    }
}
