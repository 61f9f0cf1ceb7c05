/// Decides when the next try follows one that failed.
///
/// Six tries, each after a random 1 to 15 s, so that a broker's return is no storm; then, in the
/// foreground, one every 5 minutes, more or less half of that. In the background none.
struct ReconnectRule: Sendable {
    static let quickTries = 6
    static let quickMilliseconds: ClosedRange<Int64> = 1_000...15_000
    static let slowMilliseconds: ClosedRange<Int64> = 150_000...450_000
    /// A connection of this age lets the count begin anew.
    static let provenMilliseconds: Int64 = 60_000
    /// A close that comes sooner after CONNACK looks like a take-over.
    static let takeOverMilliseconds: Int64 = 5_000
    static let takeOverCloses = 2
    static let takeOverWaitMilliseconds: Int64 = 60_000

    private(set) var failures = 0
    private var earlyCloses = 0
    private var hasRetriedWrite = false

    /// The number of the next try, from 1.
    var attempt: Int { failures + 1 }

    /// The count begins anew: the app or the network gives a reason to try.
    mutating func restart() {
        failures = 0
        hasRetriedWrite = false
    }

    /// The next try after a connection that `reason` ended, `connectedFor` milliseconds after its
    /// CONNACK or before it (`nil`).
    mutating func next(
        after reason: DropReason, connectedFor: Int64?, isForeground: Bool,
        using random: inout any ClientRandom
    ) -> (delay: Int64, reason: WaitReason)? {
        if let connectedFor {
            if reason == .closedByPeer, connectedFor < Self.takeOverMilliseconds {
                earlyCloses += 1
            } else {
                earlyCloses = 0
            }
            // The first write after a pause finds a connection that had died unseen.
            if reason == .writeFailed, !hasRetriedWrite {
                hasRetriedWrite = true
                return (0, .retrying)
            }
            // The network has just changed, which is a reason to try of its own.
            if reason == .probeFailed { return (0, .retrying) }
            if earlyCloses >= Self.takeOverCloses {
                return (Self.takeOverWaitMilliseconds, .takenOver)
            }
        }
        if failures < Self.quickTries {
            failures += 1
            return (random.number(in: Self.quickMilliseconds), .retrying)
        }
        return isForeground ? (random.number(in: Self.slowMilliseconds), .unreachable) : nil
    }
}
