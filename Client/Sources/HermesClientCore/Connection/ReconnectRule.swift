/// Decides when the next try follows one that failed.
///
/// Six tries, each after a random 1 to 15 s, so that a broker's return is no storm. Then, in the
/// foreground, tries that become rarer, up to one every 5 minutes; each wait is more or less half of
/// its step. In the background none. Only tries that reach no CONNACK make them rarer: a connection
/// that was accepted and lost shows that the broker is there.
struct ReconnectRule: Sendable {
    static let quickTries = 6
    static let quickMilliseconds: ClosedRange<Int64> = 1_000...15_000
    static let slowSteps: [Int64] = [30_000, 60_000, 120_000, 240_000, 300_000]
    /// After more than six connections in a row that were accepted and soon lost.
    static let unstableMilliseconds: ClosedRange<Int64> = 15_000...45_000
    /// A connection of this age lets the count begin anew.
    static let provenMilliseconds: Int64 = 60_000
    static let takeOverWaitMilliseconds: ClosedRange<Int64> = 45_000...75_000

    enum Next: Equatable {
        case wait(Int64, WaitReason)
        /// Something closes each connection: a transport connection alone tells whether the broker
        /// is there, as it is when another client has taken the session, or has ended.
        case look
        /// In the background the tries have ended.
        case suspend
    }

    /// A connection that was accepted and has ended.
    struct Ended {
        var connectedFor: Int64
        /// A publication was in flight that the broker may have refused.
        var followsPublication: Bool
        /// Messages, or parts of one, were under way: the end came from what carries them.
        var wasBusy: Bool
    }

    private(set) var failures = 0
    private var shortLives = 0
    private var fight = FightWatch()
    private var hasRetriedWrite = false

    /// The number of the next try, from 1.
    var attempt: Int { failures + 1 }

    /// The count begins anew: the app or the network gives a reason to try.
    mutating func restart() {
        failures = 0
        hasRetriedWrite = false
    }

    /// A connection is a minute old.
    mutating func proven() {
        restart()
        shortLives = 0
        fight = FightWatch()
    }

    /// The next try after a connection that `reason` ended; `ended` is `nil` before its CONNACK.
    mutating func next(
        after reason: DropReason, _ ended: Ended?, isForeground: Bool,
        using random: inout any ClientRandom
    ) -> Next {
        guard let ended else {
            fight = FightWatch()
            return nextTry(isForeground: isForeground, using: &random)
        }
        // The first write after a pause finds a connection that had died unseen.
        if reason == .writeFailed, !hasRetriedWrite {
            hasRetriedWrite = true
            return .wait(0, .retrying)
        }
        // The network has just changed, which is a reason to try of its own.
        if reason == .probeFailed { return .wait(0, .retrying) }
        if fight.closed(reason, ended), isForeground { return .look }
        return afterLife(isForeground: isForeground, using: &random)
    }

    /// What a ``Next/look`` has found.
    mutating func looked(
        isThere: Bool, isForeground: Bool, using random: inout any ClientRandom
    ) -> Next {
        if isThere {
            return .wait(random.number(in: Self.takeOverWaitMilliseconds), .takenOver)
        }
        fight = FightWatch()
        return afterLife(isForeground: isForeground, using: &random)
    }

    private mutating func afterLife(
        isForeground: Bool, using random: inout any ClientRandom
    ) -> Next {
        shortLives += 1
        guard isForeground else { return nextTry(isForeground: false, using: &random) }
        failures = min(failures + 1, Self.quickTries)
        let range =
            shortLives > Self.quickTries ? Self.unstableMilliseconds : Self.quickMilliseconds
        return .wait(random.number(in: range), .retrying)
    }

    private mutating func nextTry(
        isForeground: Bool, using random: inout any ClientRandom
    ) -> Next {
        failures += 1
        if failures <= Self.quickTries {
            return .wait(random.number(in: Self.quickMilliseconds), .retrying)
        }
        guard isForeground else { return .suspend }
        let index = min(failures - Self.quickTries, Self.slowSteps.count) - 1
        let step = Self.slowSteps[index]
        return .wait(random.number(in: step / 2...step * 3 / 2), .unreachable)
    }
}
