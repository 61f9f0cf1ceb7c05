import MQTTCore

/// Indices of restored sessions and wills during a start.
package struct Restoration {
    /// Session numbers in the store, ascending, with their indices.
    private var sessions: [(number: UInt64, index: UInt32)] = []
    /// Numbers of ended sessions whose queues are still to be handed over.
    private var ended: Set<UInt64> = []
    /// Index of the last session found; lookups come in ascending order.
    private var place = 0
    package var wills: [(session: UInt64, message: Message)] = []
    /// Terms of sessions that ended with the broker, by number.
    package var terms: [UInt64: SessionTerms] = [:]

    package mutating func add(_ number: UInt64, _ index: UInt32) {
        sessions.append((number, index))
    }

    package mutating func addEnded(_ number: UInt64) { ended.insert(number) }

    /// True for an ended session whose stored queue other members of its groups are to get.
    package func leavesQueue(_ number: UInt64) -> Bool { ended.contains(number) }

    package mutating func find(_ number: UInt64) -> UInt32? {
        if place >= sessions.count || sessions[place].number > number { place = 0 }
        if place < sessions.count, sessions[place].number < number {
            // Try the next one, then a binary search.
            place += 1
            if place < sessions.count, sessions[place].number < number {
                place = firstPlace(notBelow: number)
            }
        }
        guard place < sessions.count, sessions[place].number == number else { return nil }
        return sessions[place].index
    }

    private func firstPlace(notBelow number: UInt64) -> Int {
        var low = 0
        var high = sessions.count
        while low < high {
            let middle = (low + high) / 2
            if sessions[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
