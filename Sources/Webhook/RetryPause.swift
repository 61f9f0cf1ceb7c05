/// The growing pause between attempts to reach one receiver.
///
/// It doubles from one second to a longest pause. Half of it is random, so that several brokers do
/// not return to a receiver at the same moment.
package struct RetryPause: Sendable {
    static let first = Duration.seconds(1)

    private let longest: Duration
    private var next: Duration

    package init(longest: Duration) {
        self.longest = longest
        next = min(Self.first, longest)
    }

    /// The pause after one more failure.
    ///
    /// - Parameters:
    ///   - retryAfter: The receiver's wish, which may lengthen the pause up to the longest one.
    ///   - random: 0 to 1.
    /// - Returns: The time to wait.
    package mutating func take(retryAfter: Duration?, random: Double) -> Duration {
        let pause = next * (0.5 + random / 2)
        next = min(next * 2, longest)
        return max(pause, min(retryAfter ?? .zero, longest))
    }
}
