import MQTTCore

/// The sessions and wills of a start, while the store is loaded.
struct Restoration {
    /// Sessions by their number in the store, which rises from one to the next.
    private var sessions: [(number: UInt64, index: UInt32)] = []
    /// Where the last one that was asked for stands: questions come in the same order.
    private var place = 0
    var wills: [(session: UInt64, message: Message)] = []

    mutating func add(_ number: UInt64, _ index: UInt32) { sessions.append((number, index)) }

    mutating func find(_ number: UInt64) -> UInt32? {
        if place >= sessions.count || sessions[place].number > number { place = 0 }
        if place < sessions.count, sessions[place].number < number {
            // The next one, or else by halves.
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
