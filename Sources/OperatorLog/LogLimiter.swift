/// Decides how often one place in the code may log, so that a flood of events stays a few lines.
///
/// The first event is logged at once; after it at most one per interval, which then tells how
/// many were suppressed since. One value belongs to one place and one thread. Time is an
/// argument: monotonic milliseconds from any origin.
package struct LogLimiter: Sendable {
    /// What to do with one event.
    package enum Admission: Equatable, Sendable {
        /// Log it, and say that `suppressed` events before it were not logged.
        case log(suppressed: UInt64)
        case suppress
    }

    private let intervalMilliseconds: UInt64
    private var lastLogged: UInt64?
    private var suppressed: UInt64 = 0

    /// Allows one line per interval; 0 allows every line.
    package init(intervalMilliseconds: UInt64 = 10_000) {
        self.intervalMilliseconds = intervalMilliseconds
    }

    /// Judges an event that happens now. A clock that runs backwards counts as one that stands.
    package mutating func admit(atMilliseconds now: UInt64) -> Admission {
        if let lastLogged {
            let elapsed = now >= lastLogged ? now - lastLogged : 0
            guard elapsed >= intervalMilliseconds else {
                suppressed += 1
                return .suppress
            }
        }
        defer { suppressed = 0 }
        lastLogged = now
        return .log(suppressed: suppressed)
    }
}
