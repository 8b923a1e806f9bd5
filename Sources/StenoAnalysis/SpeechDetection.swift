public import StenoAudio

/// A module that finds speech without understanding it.
public protocol SpeechDetectorModule: SpeechModule where Result == SpeechDetection {}

/// A stretch of speech. Volatile while it goes on; what lies between two final ones is no speech.
public struct SpeechDetection: SpeechModuleResult, Hashable {
    public var range: MediaTimeRange
    public var isFinal: Bool
    /// False only where a volatile stretch is taken back.
    public var isSpeech: Bool
    public var resultsFinalizationTime = MediaTime.zero

    public init(range: MediaTimeRange, isFinal: Bool, isSpeech: Bool = true) {
        self.range = range
        self.isFinal = isFinal
        self.isSpeech = isSpeech
    }

    public var isEmpty: Bool { !isSpeech }

    public func clamped(to bounds: MediaTimeRange) -> SpeechDetection {
        var result = self
        result.range = range.clamped(to: bounds)
        return result
    }

    public static func revocation(of range: MediaTimeRange) -> SpeechDetection {
        SpeechDetection(range: range, isFinal: false, isSpeech: false)
    }
}
