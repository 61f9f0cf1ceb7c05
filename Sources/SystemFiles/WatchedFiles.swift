/// Decides whether files are to be read again, and whether their refusal is news for the log.
///
/// Files that were refused are read again when they change and, while somebody looks, a second
/// after each attempt: the cause may have been a shortage of descriptors, or a link or a folder
/// above them, which their stamps do not show.
package struct WatchedFiles<Stamp: Equatable & Sendable>: Sendable {
    private struct Refusal: Sendable {
        var stamp: Stamp
        var problem: String
        var retryAt: ContinuousClock.Instant
    }

    package static var retryInterval: Duration { .seconds(1) }

    /// The stamp of the contents in use.
    private var inUse: Stamp
    private var refusal: Refusal?

    package init(inUse: Stamp) {
        self.inUse = inUse
    }

    /// True if the files differ from those in use.
    package func isChanged(by stamp: Stamp) -> Bool { stamp != inUse }

    /// True if files that now look like `stamp` are to be read.
    package mutating func isDue(
        _ stamp: Stamp, at now: @autoclosure () -> ContinuousClock.Instant
    ) -> Bool {
        if stamp == inUse {
            refusal = nil
            return false
        }
        guard let refusal, refusal.stamp == stamp else { return true }
        return now() >= refusal.retryAt
    }

    /// The contents read under `stamp` are in use from now on.
    package mutating func use(_ stamp: Stamp) {
        self = Self(inUse: stamp)
    }

    /// The contents read under `stamp` cannot be used.
    ///
    /// - Parameters:
    ///   - stamp: The files' stamp before they were read.
    ///   - problem: The reason, as the log says it.
    ///   - now: The time of the attempt.
    /// - Returns: True when this is news: the files or the problem differ from the last refusal.
    package mutating func refuse(
        _ stamp: Stamp, _ problem: String, at now: ContinuousClock.Instant
    ) -> Bool {
        let isNews = refusal?.stamp != stamp || refusal?.problem != problem
        refusal = Refusal(stamp: stamp, problem: problem, retryAt: now + Self.retryInterval)
        return isNews
    }
}
