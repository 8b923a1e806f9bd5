internal import CSndfile
internal import Glibc

/// What libsndfile calls to read a ``ByteInput``, its user data.
func inputCallbacks() -> SF_VIRTUAL_IO {
    unsafe SF_VIRTUAL_IO(
        get_filelen: { unsafe object($0, ByteInput.self).totalLength },
        seek: { unsafe object($2, ByteInput.self).seek($0, from: $1) },
        read: { unsafe sf_count_t(object($2, ByteInput.self).read(into: .init(start: $0, count: Int($1)))) },
        write: { _, _, _ in 0 },
        tell: { unsafe object($0, ByteInput.self).position })
}

/// What libsndfile calls to write a ``ByteOutput``, its user data.
func outputCallbacks() -> SF_VIRTUAL_IO {
    unsafe SF_VIRTUAL_IO(
        get_filelen: { unsafe object($0, ByteOutput.self).size },
        seek: { unsafe object($2, ByteOutput.self).seek($0, from: $1) },
        read: { unsafe sf_count_t(object($2, ByteOutput.self).read(into: .init(start: $0, count: Int($1)))) },
        write: { unsafe sf_count_t(object($2, ByteOutput.self).writePacket(.init(start: $0, count: Int($1)))) },
        tell: { unsafe object($0, ByteOutput.self).position })
}

/// The object behind the user data, which is what was passed to `sf_open_virtual`: never nil, and kept alive by the
/// caller until `sf_close`.
private func object<Object: AnyObject>(_ context: UnsafeMutableRawPointer?, _ type: Object.Type) -> Object {
    unsafe Unmanaged<Object>.fromOpaque(context.unsafelyUnwrapped).takeUnretainedValue()
}
