import Logging
import Synchronization

extension Logger.Metadata {
    /// With the number of lines that were held back before this one, if there were any.
    func suppressing(_ count: Int) -> Self {
        var result = self
        if count > 0 { result[LogKeys.suppressed] = "\(count)" }
        return result
    }
}

/// Lets one log line a second through, because what a peer can cause often must not fill the disk.
final class LogThrottle: Sendable {
    private let state = Mutex<(next: ContinuousClock.Instant?, suppressed: Int)>((nil, 0))

    /// - Returns: How many lines were held back since the last one; `nil` when this one is, too.
    func admit(at now: ContinuousClock.Instant = .now) -> Int? {
        state.withLock { state in
            if let next = state.next, now < next {
                state.suppressed += 1
                return nil
            }
            defer { state = (now + .seconds(1), 0) }
            return state.suppressed
        }
    }
}

/// A throttle for each kind of line, so that none hides another.
final class LogThrottles: Sendable {
    /// Many more than a peer is seen to cause; kinds beyond them share one throttle.
    static let maximumKinds = 64

    private let throttles = Mutex([String: LogThrottle]())
    private let others = LogThrottle()

    /// - Returns: How many lines of the kind were held back since the last one; `nil` when this one
    ///   is, too.
    func admit(_ kind: String, at now: ContinuousClock.Instant = .now) -> Int? {
        let throttle = throttles.withLock { throttles in
            if let known = throttles[kind] { return known }
            guard throttles.count < Self.maximumKinds else { return others }
            let new = LogThrottle()
            throttles[kind] = new
            return new
        }
        return throttle.admit(at: now)
    }
}
