import Structures

/// When the followers of a shard have to be asked in a turn, so that a turn in which they have
/// nothing to do does not ask them.
///
/// The followers write what they need when they are asked for their next deadline. Whatever they are
/// told or asked meanwhile stirs them, and they are asked again.
package final class FollowerAgenda {
    /// True when a feature has been told or asked something since ``due`` was found.
    package var isStirred = true
    /// The time at which ``Followers/run(_:)`` has work; `nil` for none.
    package var due: MonotonicTime?
    /// True when ``Followers/publish(_:)`` may have work in any turn.
    package var mayPublish = false
    /// True when ``Followers/settle(_:)`` may have work after any commit.
    package var maySettle = false

    package init() {}

    /// True when ``Followers/run(_:)`` has work now.
    @inline(__always)
    func isDue(at now: MonotonicTime) -> Bool {
        isStirred || due.map { $0 <= now } ?? false
    }
}
