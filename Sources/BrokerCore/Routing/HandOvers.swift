import MQTTCore

/// Messages of shared subscriptions that members with a clean session left undelivered. They are
/// handed over to other members in slices.
///
/// The store does not hold them for the old member. Later messages may overtake them.
package struct HandOvers {
    /// The messages that one member left.
    private struct Batch {
        let messages: [OutboundQueue.Returned]
        /// By group: its filter, because the index of a removed group is reused.
        let filters: [UInt32: [UInt8]]
        var place = 0
    }

    /// Messages handed over per turn; for each, many members may be examined.
    private static let perTurn = 256

    private var batches: [Batch] = []
    private var leftInTurn = perTurn

    package var isEmpty: Bool { batches.isEmpty }

    package mutating func beginTurn() { leftInTurn = Self.perTurn }

    /// True when this turn may hand over `count` messages at once, because none wait before them.
    package func mayHandOverNow(_ count: Int) -> Bool { batches.isEmpty && count <= leftInTurn }

    /// Counts messages that were handed over at once.
    package mutating func spend(_ count: Int) { leftInTurn -= count }

    /// Adds messages for later turns and takes their references. `filter` maps a group to its
    /// filter.
    package mutating func append(
        _ messages: [OutboundQueue.Returned], filter: (UInt32) -> [UInt8]
    ) {
        var filters: [UInt32: [UInt8]] = [:]
        for message in messages where filters[message.group] == nil {
            filters[message.group] = filter(message.group)
        }
        batches.append(Batch(messages: messages, filters: filters))
    }

    /// The next message with its group's filter; the caller takes over the reference. `nil` when
    /// none is left or the turn has reached its bound.
    package mutating func next() -> (item: OutboundQueue.Returned, filter: [UInt8])? {
        while leftInTurn > 0, !batches.isEmpty {
            guard batches[0].place < batches[0].messages.count else {
                batches.removeFirst()
                continue
            }
            let item = batches[0].messages[batches[0].place]
            batches[0].place += 1
            leftInTurn -= 1
            return (item, batches[0].filters[item.group] ?? [])
        }
        return nil
    }
}
