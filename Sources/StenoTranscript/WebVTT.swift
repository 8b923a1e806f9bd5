public import StenoAudio

/// WebVTT as the W3C defines it. ``WebVTTReader`` reads back exactly the cues that ``CueMaker`` makes of the segments.
public struct WebVTTWriter: TranscriptWriter {
    private var maker: CueMaker

    public init(cueOptions: CueOptions = CueOptions()) { maker = CueMaker(options: cueOptions) }

    public mutating func begin() -> String { "WEBVTT\n\n" }

    public mutating func append(_ segment: TranscriptSegment) -> String {
        maker.cues(for: segment).map {
            "\(cueTiming($0.range, decimalSeparator: "."))\n\(escaped($0.text))\n\n"
        }.joined()
    }

    public mutating func end(_ transcript: Transcript) -> String { "" }

    /// Escaping every `>` also takes care of `-->`.
    private func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}

public enum WebVTTReader {
    /// The cues in the order of the file, without their tags, identifiers and settings. Notes, styles and regions are
    /// left out, and so is a cue with a broken timing or without text.
    ///
    /// - Throws: ``StenoError`` `malformedTranscript` when the file does not begin with a line `WEBVTT`.
    public static func read(_ bytes: some Sequence<UInt8>) throws(StenoError) -> [Cue] {
        let lines = lines(of: bytes)
        guard let first = lines.first, isHeader(first) else {
            throw StenoError(.malformedTranscript, "line 1 is not WEBVTT, with which a WebVTT file begins")
        }
        var cues: [Cue] = []
        var timing: MediaTimeRange?
        var payload: [ArraySlice<UInt8>] = []
        // A timing begins a cue, wherever it stands; a blank line ends one. All other text belongs to no cue.
        for line in lines.dropFirst() + [[]] {
            let isTiming = indexOfArrow(line) != nil
            if let range = timing, line.isEmpty || isTiming {
                if let cue = Cue(range: range, lines: text(of: payload)) { cues.append(cue) }
                (timing, payload) = (nil, [])
            }
            if isTiming {
                timing = cueTiming(line)
            } else if timing != nil {
                payload.append(line)
            }
        }
        return cues
    }

    private static func isHeader(_ line: ArraySlice<UInt8>) -> Bool {
        line.starts(with: "WEBVTT".utf8) && line.dropFirst(6).first.map(isBlank) ?? true
    }

    /// The lines without tags, and with the characters that the references stand for.
    private static func text(of payload: [ArraySlice<UInt8>]) -> [String] {
        var rest = String(decoding: Array(payload.joined(separator: [10])), as: UTF8.self).unicodeScalars[...]
        var text = String.UnicodeScalarView()
        while let scalar = rest.popFirst() {
            if scalar == "<" {
                rest = rest.drop { $0 != ">" }.dropFirst()
            } else if scalar == "&", let end = rest.prefix(12).firstIndex(of: ";"),
                let character = character(named: String(rest[..<end]))
            {
                text.append(character)
                rest = rest[end...].dropFirst()
            } else {
                text.append(scalar)
            }
        }
        return text.split(separator: "\n").map { String($0) }
    }

    private static func character(named name: String) -> Unicode.Scalar? {
        switch name {
        case "amp": "&"
        case "lt": "<"
        case "gt": ">"
        case "quot": "\""
        case "apos": "'"
        case "nbsp": "\u{A0}"
        case "lrm": "\u{200E}"
        case "rlm": "\u{200F}"
        default:
            if name.hasPrefix("#x") || name.hasPrefix("#X") {
                UInt32(name.dropFirst(2), radix: 16).flatMap(Unicode.Scalar.init)
            } else if name.hasPrefix("#") {
                UInt32(name.dropFirst()).flatMap(Unicode.Scalar.init)
            } else {
                nil
            }
        }
    }
}
