import MQTTCore

/// Messages of shared subscriptions that members with a clean session left behind, on their way to other
/// members in slices.
///
/// The store does not know them as the member's. A message that is published meanwhile may overtake them.
struct HandOvers {
    /// The messages that one member left.
    private struct Batch {
        let messages: [OutboundQueue.Returned]
        /// By group: the filter, because the index of a group that ends is given again.
        let filters: [UInt32: [UInt8]]
        var place = 0
    }

    /// Messages that one turn hands over: each may look at many members.
    private static let perTurn = 256

    private var batches: [Batch] = []
    private var leftInTurn = perTurn

    var isEmpty: Bool { batches.isEmpty }

    mutating func beginTurn() { leftInTurn = Self.perTurn }

    /// Whether this turn may hand over so many messages at once, before which none wait.
    func mayHandOverNow(_ count: Int) -> Bool { batches.isEmpty && count <= leftInTurn }

    /// So many messages were handed over at once.
    mutating func spend(_ count: Int) { leftInTurn -= count }

    /// Takes over the references to messages that are handed over later. `filter` names a group's filter.
    mutating func append(
        _ messages: [OutboundQueue.Returned], filter: (UInt32) -> [UInt8]
    ) {
        var filters: [UInt32: [UInt8]] = [:]
        for message in messages where filters[message.group] == nil {
            filters[message.group] = filter(message.group)
        }
        batches.append(Batch(messages: messages, filters: filters))
    }

    /// The next message, whose reference the caller takes over, with its group's filter; `nil` when none is
    /// left or this turn has done its part.
    mutating func next() -> (message: Message, filter: [UInt8])? {
        while leftInTurn > 0, !batches.isEmpty {
            guard batches[0].place < batches[0].messages.count else {
                batches.removeFirst()
                continue
            }
            let item = batches[0].messages[batches[0].place]
            batches[0].place += 1
            leftInTurn -= 1
            return (item.message, batches[0].filters[item.group] ?? [])
        }
        return nil
    }
}
