import Structures

/// When the followers of a shard have to be asked in a turn, so that a turn in which they have
/// nothing to do does not ask them.
///
/// The followers write what they need when they are asked for their next deadline. Whatever they are
/// told or asked meanwhile stirs them, and they are asked again.
///
/// Its values are read and written as a whole, by the shard's thread alone, so no two accesses to one
/// overlap; to have that checked at each would cost a quiet turn more than all that it does here.
package final class FollowerAgenda {
    /// True when a feature has been told or asked something since ``due`` was found.
    @exclusivity(unchecked)
    package var isStirred = true
    /// The time at which ``Followers/run(_:)`` has work; `nil` for none.
    @exclusivity(unchecked)
    package var due: MonotonicTime?
    /// True when ``Followers/publish(_:)`` may have work in any turn.
    @exclusivity(unchecked)
    package var mayPublish = false
    /// True when ``Followers/settle(_:)`` may have work after any commit.
    @exclusivity(unchecked)
    package var maySettle = false

    package init() {}

    /// Some things of features go by the wall clock, and need no time of their own: old keys and
    /// receipts, for example, are dropped in the first turn after so long.
    private static let longestQuietMilliseconds: UInt64 = 1_000
    @exclusivity(unchecked)
    private var quietUntil = MonotonicTime(milliseconds: 0)

    /// True when ``Followers/run(_:)`` may have work now, which then has to be called.
    @inline(__always)
    func takeDue(at now: MonotonicTime) -> Bool {
        guard isStirred || now >= quietUntil || due.map({ $0 <= now }) ?? false else {
            return false
        }
        quietUntil = now.advanced(byMilliseconds: Self.longestQuietMilliseconds)
        return true
    }
}
