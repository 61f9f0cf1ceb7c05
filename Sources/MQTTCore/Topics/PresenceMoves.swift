import Structures

/// Sessions whose clients have connected or gone offline, and whose memberships in shared groups are
/// still on their way to the other ring of their groups, a few at a time.
struct PresenceMoves: ~Copyable {
    struct Move: BitwiseCopyable {
        let session: UInt32
        /// The next membership to move, in the order of the session's list; ``noIndex`` behind the
        /// last.
        var member: UInt32
        let isOnline: Bool
    }

    private var moves: [UInt32: Move] = [:]
    /// Sessions in the order of service. Some have finished meanwhile.
    private var order = RingBuffer<UInt32>()

    var isEmpty: Bool { moves.isEmpty }

    /// Keeps what is left of a move, in place of an earlier one of the session.
    mutating func put(_ move: Move) {
        if move.member == noIndex {
            remove(move.session)
        } else if moves.updateValue(move, forKey: move.session) == nil {
            order.append(move.session)
        }
    }

    /// Takes the next move; the caller puts back what is left.
    mutating func takeFirst() -> Move? {
        while let session = order.popFirst() {
            if let move = moves.removeValue(forKey: session) { return move }
        }
        return nil
    }

    /// Forgets a session that leaves all its groups.
    mutating func remove(_ session: UInt32) {
        if !moves.isEmpty { moves[session] = nil }
    }

    /// Notes that a membership is removed, with the one behind it in its session's list.
    mutating func remove(_ session: UInt32, _ member: UInt32, next: UInt32) {
        guard !moves.isEmpty, var move = moves[session], move.member == member else { return }
        move.member = next
        put(move)
    }
}
