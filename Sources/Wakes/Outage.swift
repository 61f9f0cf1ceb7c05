import OperatorLog

/// When the log tells that a sender does not send, and that it does again.
///
/// The end of a pause is no success: the next notification may be refused as the last one was. So
/// the outage ends with the first notification that the push service takes.
struct Outage {
    /// Time between two lines about the same reason.
    private static let interval = Duration.seconds(600)

    private var lasts = false
    private var limiter = Self.freshLimiter

    private static var freshLimiter: LogLimiter { LogLimiter(maximumKeys: 8) }

    /// Notes a trouble at a time in milliseconds of the monotonic clock; with `isPaused` it is one in
    /// which nothing is sent.
    ///
    /// - Returns: The number of notes of this reason since its last line; `nil` for no line now.
    mutating func admit(
        _ reason: String, isPaused: Bool, atMilliseconds now: UInt64
    ) -> Int? {
        lasts = lasts || isPaused
        return limiter.admit(reason, every: Self.interval, atMilliseconds: now)
    }

    /// Notes that a notification was taken while the sender did not pause: true when that ends an
    /// outage. The next one is told at once.
    mutating func endsWithSuccess() -> Bool {
        guard lasts else { return false }
        self = Outage()
        return true
    }
}
