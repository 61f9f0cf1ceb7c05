/// Suspects another client that takes the session again and again.
///
/// In such a fight each client is closed when the other one returns, some seconds after its own
/// return, while nothing is under way; each try of its own succeeds at once. A broker that crashes
/// looks the same up to there, but is not reachable right after: the caller looks.
struct FightWatch: Sendable {
    /// Two closes are enough if both come within the time in which a client returns.
    static let soonMilliseconds: Int64 = 20_000
    static let closesSoon = 2
    static let closes = 3

    private var count = 0
    private var longest: Int64 = 0

    /// True if the closes up to this one are those of a fight.
    mutating func closed(_ reason: DropReason, _ ended: ReconnectRule.Ended) -> Bool {
        guard reason.isClose, ended.connectedFor < ReconnectRule.provenMilliseconds else {
            self = FightWatch()
            return false
        }
        // The cause lies in what was under way; it proves nothing for or against a fight.
        guard !ended.followsPublication, !ended.wasBusy else { return false }
        count += 1
        longest = max(longest, ended.connectedFor)
        return count >= Self.closes
            || (count >= Self.closesSoon && longest < Self.soonMilliseconds)
    }
}
