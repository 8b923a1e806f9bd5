package import Dispatch
import Foundation

/// Calls `body` at the first interrupt (Ctrl-C) or termination; a second one ends the process at once.
///
/// - Returns: What listens, for as long as it is held.
package func onInterrupt(_ body: @escaping @Sendable () -> Void) -> [any DispatchSourceSignal] {
    [SIGINT, SIGTERM].map { number in
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
        source.setEventHandler {
            for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
            body()
        }
        source.resume()
        return source
    }
}
