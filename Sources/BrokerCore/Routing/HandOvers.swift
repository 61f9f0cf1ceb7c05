import MQTTCore

/// Messages of shared subscriptions that members with a clean session left undelivered. They are
/// handed over to other members in slices.
///
/// The store does not hold them for the old member. Features go on to follow them
/// (``Followers/positionLeft(_:as:)``). Later messages may overtake them.
package struct HandOvers {
    /// The messages that one member left.
    private struct Batch {
        let number: UInt64
        /// True when features may follow some of its messages.
        let isFollowed: Bool
        let end: QueueEnd
        let messages: [OutboundQueue.Returned]
        /// By group: its filter, because the index of a removed group is reused.
        let filters: [UInt32: [UInt8]]
        var place = 0
    }

    /// Messages handed over per turn; for each, many members may be examined.
    private static let perTurn = 256

    /// A message to hand over.
    package struct Item {
        /// The receiver takes over its reference.
        package let message: OutboundQueue.Returned
        /// The filter of its group.
        package let filter: [UInt8]
        /// The name under which features follow it; `nil` when none does.
        package let followed: FollowedPosition?
        /// Its end if no member takes it.
        package let end: QueueEnd
    }

    private var batches: [Batch] = []
    private var lastNumber: UInt64 = 0
    /// Followed batches of which nothing is left.
    private var ended: [UInt64] = []
    private var leftInTurn = perTurn

    package var isEmpty: Bool { batches.isEmpty }

    package mutating func beginTurn() { leftInTurn = Self.perTurn }

    /// True when this turn may hand over `count` messages at once, because none wait before them.
    package func mayHandOverNow(_ count: Int) -> Bool { batches.isEmpty && count <= leftInTurn }

    /// Counts messages that were handed over at once.
    package mutating func spend(_ count: Int) { leftInTurn -= count }

    /// Adds messages for later turns and takes their references. `filter` maps a group to its
    /// filter, and `end` is that of a message that no member takes.
    ///
    /// - Returns: The number under which features that follow some of them (`isFollowed`) know the
    ///   messages until then, by their places in the list: no session has it.
    package mutating func append(
        _ messages: [OutboundQueue.Returned], isFollowed: Bool, end: QueueEnd,
        filter: (UInt32) -> [UInt8]
    ) -> UInt64 {
        var filters: [UInt32: [UInt8]] = [:]
        for message in messages where filters[message.group] == nil {
            filters[message.group] = filter(message.group)
        }
        lastNumber += 1
        let number = 1 << 63 | lastNumber
        batches.append(
            Batch(
                number: number, isFollowed: isFollowed, end: end, messages: messages,
                filters: filters))
        return number
    }

    /// The numbers of followed batches that have ended since the last call.
    package mutating func takeEnded() -> [UInt64] {
        defer { ended = [] }
        return ended
    }

    /// The next message; `nil` when none is left or the turn has reached its bound.
    package mutating func next() -> Item? {
        while leftInTurn > 0, !batches.isEmpty {
            guard batches[0].place < batches[0].messages.count else {
                if batches[0].isFollowed { ended.append(batches[0].number) }
                batches.removeFirst()
                continue
            }
            let place = batches[0].place
            let message = batches[0].messages[place]
            let followed =
                batches[0].isFollowed
                ? FollowedPosition(number: batches[0].number, position: UInt64(place)) : nil
            batches[0].place += 1
            leftInTurn -= 1
            return Item(
                message: message, filter: batches[0].filters[message.group] ?? [],
                followed: followed, end: batches[0].end)
        }
        return nil
    }
}
