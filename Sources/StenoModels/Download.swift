internal import CCurl
import Foundation
internal import StenoAudio

/// Fetches one address into a file, in as many requests as it takes, each of which goes on where the one before ended.
///
/// What lies in the file is only continued when the server says that it is still the same: by its entity tag or its date,
/// also where it ignores the condition of the request. Blocks; one thread.
@safe final class Download {
    private let address: String
    private let path: String
    /// Bytes by the catalogue.
    private let expectedSize: Int64?
    private let options: ModelStore.Options
    private let isCancelled: @Sendable () -> Bool
    private let report: (_ received: Int64, _ total: Int64?) throws(StenoError) -> Void

    private let descriptor: Int32
    /// What the file's content belongs to.
    private var origin = Origin()
    /// Where the next byte goes.
    private var offset: Int64 = 0

    // Of the request at work.
    private var requestedOffset: Int64 = 0
    private var response = Response()
    private var hasBegun = false
    private var mustRestart = false
    private var failure: StenoError?

    private struct Origin: Codable {
        var validator: String?
        var total: Int64?
    }

    private struct Response {
        var status = 0
        var length: Int64?
        /// Of a part: where it begins.
        var start: Int64?
        /// Of a part, or of one that cannot be had: how long the whole is.
        var total: Int64?
        var tag: String?
        var date: String?
        var isHTML = false
        /// What tells this content from another. A weak tag does not.
        var validator: String? { tag.flatMap { $0.hasPrefix("W/") ? nil : $0 } ?? date }
    }

    /// - Parameter report: called with what the file holds, several times a second; an error that it throws ends the work.
    init(
        _ address: String, to path: String, expectedSize: Int64?, options: ModelStore.Options,
        isCancelled: @escaping @Sendable () -> Bool,
        report: @escaping (_ received: Int64, _ total: Int64?) throws(StenoError) -> Void
    ) throws(StenoError) {
        self.address = address
        self.path = path
        self.expectedSize = expectedSize
        self.options = options
        self.isCancelled = isCancelled
        self.report = report
        descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw .store(errno, "writing", path) }
        if let data = FileManager.default.contents(atPath: path + ".origin"),
            let known = try? JSONDecoder().decode(Origin.self, from: data)
        {
            origin = known
            offset = max(0, Int64(lseek(descriptor, 0, SEEK_END)))
        }
    }

    deinit { close(descriptor) }

    /// Returns when the file holds all that the server has, on the disk.
    func run() throws(StenoError) {
        guard Self.isReady else { throw StenoError(.modelDownloadFailed, "libcurl cannot be set up.") }
        var (highest, attempts, total) = (offset, 0, 0)
        while true {
            if isCancelled() { throw StenoError(.cancelled, "The download was cancelled.") }
            do throws(StenoError) {
                if try request() { break }
            } catch {
                guard error.code == .modelDownloadFailed, error.nativeCode == nil else { throw error }
                // One that brings something may be tried for long.
                attempts = offset > highest ? 1 : attempts + 1
                highest = max(highest, offset)
                total += 1
                guard attempts <= options.retries, total <= 1000 else { throw error }
                try wait(options.retryDelay * (1 << min(attempts - 1, 5)))
            }
        }
        guard fsync(descriptor) == 0 else { throw .store(errno, "writing", path) }
        try report(offset, offset)
    }

    /// Throws away what came so far.
    func restart() throws(StenoError) {
        origin = Origin()
        offset = 0
        guard ftruncate(descriptor, 0) == 0 else { throw .store(errno, "writing", path) }
    }

    private static let isReady = steno_curl_global_init() == CURLE_OK

    private func wait(_ duration: Duration) throws(StenoError) {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            if isCancelled() { throw StenoError(.cancelled, "The download was cancelled.") }
            usleep(20_000)
        }
    }

    /// One request: true when the file is complete, false when another request is to begin at once.
    ///
    /// - Throws: `modelDownloadFailed` without a native code when trying again may help.
    private func request() throws(StenoError) -> Bool {
        let isFile = address.hasPrefix("file:")
        if isFile || (origin.validator == nil && !options.resumesWithoutValidator) { try restart() }
        (requestedOffset, response, hasBegun, mustRestart, failure) = (offset, Response(), false, false, nil)
        guard let curl = unsafe curl_easy_init() else {
            throw StenoError(.insufficientResources, "There is no memory for a download.")
        }
        defer { unsafe curl_easy_cleanup(curl) }
        var headers: UnsafeMutablePointer<curl_slist>?
        defer { unsafe curl_slist_free_all(headers) }
        let code = unsafe perform(curl, &headers)
        if isCancelled() { throw StenoError(.cancelled, "The download was cancelled.") }
        if let failure { throw failure }
        if mustRestart {
            try restart()
            return false
        }
        let status = isFile ? 200 : response.status
        let isBody = status == 200 || status == 206
        if isBody, code == CURLE_OK {
            if hasBegun || begin() { return true }
            if let failure { throw failure }
            try restart()
            return false
        }
        if status == 416, requestedOffset > 0 {
            if response.total == requestedOffset { return true }
            try restart()
            return false
        }
        if [408, 425, 429].contains(status) || status >= 500 { throw transient("The server answers \(status).") }
        // What libcurl could not follow, it says below.
        if status >= 400 || (status > 0 && !isBody && code == CURLE_OK) {
            throw permanent("The server answers \(status).", status)
        }
        let text = unsafe String(cString: curl_easy_strerror(code))
        switch code {
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT, CURLE_TOO_MANY_REDIRECTS, CURLE_FILE_COULDNT_READ_FILE,
            CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE:
            throw permanent(text + ".", Int(code.rawValue))
        default: throw transient(text + ".")
        }
    }

    private func perform(
        _ curl: UnsafeMutableRawPointer, _ headers: inout UnsafeMutablePointer<curl_slist>?
    ) -> CURLcode {
        unsafe steno_curl_set_text(curl, CURLOPT_URL, address)
        unsafe steno_curl_set_long(curl, CURLOPT_NOSIGNAL, 1)
        unsafe steno_curl_set_long(curl, CURLOPT_FOLLOWLOCATION, 1)
        unsafe steno_curl_set_long(curl, CURLOPT_MAXREDIRS, 10)
        unsafe steno_curl_set_text(curl, CURLOPT_PROTOCOLS_STR, "https,http,file")
        // What began in private stays so.
        let redirects = address.hasPrefix("https:") ? "https" : "https,http"
        unsafe steno_curl_set_text(curl, CURLOPT_REDIR_PROTOCOLS_STR, redirects)
        unsafe steno_curl_set_text(curl, CURLOPT_USERAGENT, "steno")
        unsafe steno_curl_set_long(curl, CURLOPT_CONNECTTIMEOUT, options.stallSeconds)
        unsafe steno_curl_set_long(curl, CURLOPT_LOW_SPEED_LIMIT, 1)
        unsafe steno_curl_set_long(curl, CURLOPT_LOW_SPEED_TIME, options.stallSeconds)
        if requestedOffset > 0 {
            unsafe steno_curl_set_text(curl, CURLOPT_RANGE, "\(requestedOffset)-")
            if let validator = origin.validator {
                unsafe headers = curl_slist_append(nil, "If-Range: \(validator)")
                unsafe steno_curl_set_list(curl, CURLOPT_HTTPHEADER, headers)
            }
        }
        unsafe steno_curl_set_callbacks(
            curl, Unmanaged.passUnretained(self).toOpaque(),
            { bytes, size, count, object in
                unsafe download(object).readHeader(UnsafeRawBufferPointer(start: bytes, count: size * count))
                return size * count
            },
            { bytes, size, count, object in
                unsafe download(object).write(UnsafeRawBufferPointer(start: bytes, count: size * count))
            },
            { object, _, _, _, _ in unsafe download(object).isCancelled() ? 1 : 0 })
        return unsafe curl_easy_perform(curl)
    }

    private func readHeader(_ bytes: UnsafeRawBufferPointer) {
        let line = unsafe String(decoding: bytes, as: UTF8.self)
        if line.hasPrefix("HTTP/") {
            // That of a redirect, or of a proxy, is followed by another.
            response = Response()
            response.status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            return
        }
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2 else { return }
        let value = parts[1].trimmingCharacters(in: .whitespacesAndNewlines)
        switch parts[0].lowercased() {
        case "content-length": response.length = Int64(value)
        case "content-range":
            // bytes 10-99/100, or bytes */100.
            let numbers = value.split { " -/".contains($0) }
            response.start = numbers.dropFirst().first.flatMap { Int64($0) }
            response.total = numbers.last.flatMap { Int64($0) }
        case "etag": response.tag = value
        case "last-modified": response.date = value
        case "content-type": response.isHTML = value.lowercased().hasPrefix("text/html")
        default: break
        }
    }

    /// Takes bytes of the body. Fewer than came end the request.
    private func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        if !hasBegun {
            guard begin() else { return 0 }
            hasBegun = true
        }
        do throws(StenoError) {
            if let limit = expectedSize ?? origin.total, offset + Int64(bytes.count) > limit {
                throw permanent("The server sends more than the \(limit) bytes that it should.", 0)
            }
            var done = 0
            while done < bytes.count, let start = bytes.baseAddress {
                let count = unsafe pwrite(descriptor, start + done, bytes.count - done, Int(offset))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw StenoError.store(errno, "writing", path) }
                done += count
                offset += Int64(count)
            }
            try report(offset, expectedSize ?? origin.total)
            return bytes.count
        } catch {
            failure = error
            return 0
        }
    }

    /// Decides what the body is, when its first byte comes; false when it is not to be had.
    private func begin() -> Bool {
        if address.hasPrefix("file:") { response.status = 200 }
        guard response.status == 200 || response.status == 206 else { return false }
        if response.isHTML {
            failure = permanent("The server answers with a web page. Does the network want a login?", response.status)
            return false
        }
        let isPart = response.status == 206
        let total = isPart ? response.total : response.length
        if let total, let expectedSize, total != expectedSize {
            failure = permanent(
                "The server's file has \(total) bytes, the catalogue says \(expectedSize).", response.status)
            return false
        }
        if isPart {
            let isSame = response.validator == nil || origin.validator == nil || response.validator == origin.validator
            guard response.start == requestedOffset, isSame, total == origin.total || origin.total == nil else {
                mustRestart = true
                return false
            }
            return true
        }
        do throws(StenoError) {
            try restart()
            origin = Origin(validator: response.validator, total: total)
            try save(origin, to: path + ".origin")
            return true
        } catch {
            failure = error
            return false
        }
    }

    private func transient(_ reason: String) -> StenoError {
        StenoError(.modelDownloadFailed, "\(address) cannot be downloaded. \(reason)")
    }

    private func permanent(_ reason: String, _ code: Int) -> StenoError {
        StenoError(.modelDownloadFailed, "\(address) cannot be downloaded. \(reason)", nativeCode: code)
    }
}

/// What was passed to libcurl, and lives as long as the request.
private func download(_ object: UnsafeMutableRawPointer?) -> Download {
    unsafe Unmanaged<Download>.fromOpaque(object.unsafelyUnwrapped).takeUnretainedValue()
}
