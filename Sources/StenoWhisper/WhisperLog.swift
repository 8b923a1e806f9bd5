import CWhisper
import StenoAudio

/// What whisper.cpp and ggml say while they work. Silent unless somebody listens.
public enum WhisperLog {
    private static let handler = Lock<(@Sendable (String) -> Void)?>(nil)

    /// Routes the lines to `handler`, from any thread; nil silences them. There is one log for the process, because
    /// the libraries have one.
    public static func setHandler(_ handler: (@Sendable (String) -> Void)?) {
        self.handler.withLock { $0 = handler }
    }

    /// Takes the log from the libraries, which print to standard error otherwise. Once, before anything else is called.
    static let isTaken: Bool = {
        unsafe whisper_log_set(
            { _, text, _ in
                guard let text = unsafe text, let handler = WhisperLog.handler.withLock({ $0 }) else { return }
                unsafe handler(String(cString: text))
            }, nil)
        return true
    }()
}
