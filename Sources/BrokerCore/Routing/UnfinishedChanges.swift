import Structures

/// Subscriptions of ended sessions that are still to be removed, and the steps that a turn takes for
/// such changes, so that a session with very many delays nobody.
package struct UnfinishedChanges: ~Copyable {
    package struct Removal: BitwiseCopyable {
        package let session: UInt32
        package let list: SessionSubscriptions
    }

    /// Levels of filters and subscriptions that a turn removes, about half a millisecond.
    package static let stepsPerTurn = 4_096

    /// The steps that this turn may still take.
    package var steps = Self.stepsPerTurn
    private var removals = RingBuffer<Removal>()
    /// The sessions of all removals.
    private var sessions: Set<UInt32> = []

    package var isEmpty: Bool { removals.count == 0 }

    package mutating func beginTurn() { steps = Self.stepsPerTurn }

    /// True for an ended session whose subscriptions are still being removed.
    package func contains(_ session: UInt32) -> Bool {
        !sessions.isEmpty && sessions.contains(session)
    }

    package mutating func add(_ session: UInt32, _ list: SessionSubscriptions) {
        sessions.insert(session)
        removals.append(Removal(session: session, list: list))
    }

    /// Takes the next removal; the caller puts back what is left.
    package mutating func takeFirst() -> (session: UInt32, list: SessionSubscriptions)? {
        guard let removal = removals.popFirst() else { return nil }
        sessions.remove(removal.session)
        return (removal.session, removal.list)
    }

    package mutating func putBack(_ session: UInt32, _ list: SessionSubscriptions) {
        add(session, list)
    }
}
