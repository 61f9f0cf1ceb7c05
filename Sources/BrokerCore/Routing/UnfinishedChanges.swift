import Structures

/// Subscriptions of ended sessions that are still to be removed, and the steps that a turn takes for
/// such changes, so that a session with very many delays nobody.
struct UnfinishedChanges: ~Copyable {
    struct Removal: BitwiseCopyable {
        let session: UInt32
        let list: SessionSubscriptions
    }

    /// Levels of filters and subscriptions that a turn removes, about half a millisecond.
    static let stepsPerTurn = 4_096

    /// The steps that this turn may still take.
    var steps = Self.stepsPerTurn
    private var removals = RingBuffer<Removal>()
    /// The sessions of all removals.
    private var sessions: Set<UInt32> = []

    var isEmpty: Bool { removals.count == 0 }

    mutating func beginTurn() { steps = Self.stepsPerTurn }

    /// True for an ended session whose subscriptions are still being removed.
    func contains(_ session: UInt32) -> Bool { !sessions.isEmpty && sessions.contains(session) }

    mutating func add(_ session: UInt32, _ list: SessionSubscriptions) {
        sessions.insert(session)
        removals.append(Removal(session: session, list: list))
    }

    /// Takes the next removal; the caller puts back what is left.
    mutating func takeFirst() -> (session: UInt32, list: SessionSubscriptions)? {
        guard let removal = removals.popFirst() else { return nil }
        sessions.remove(removal.session)
        return (removal.session, removal.list)
    }

    mutating func putBack(_ session: UInt32, _ list: SessionSubscriptions) { add(session, list) }
}
