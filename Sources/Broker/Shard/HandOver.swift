import MQTTCore

/// Messages of shared subscriptions that a member left behind, on their way to others in slices.
///
/// No store knows of them as the member's: it had a clean session, or nothing is stored at all. What is
/// published meanwhile may come before them.
struct HandOver {
    private let messages: [OutboundQueue.Returned]
    /// By group, as it was named: the index of a group that ends is given again.
    private let filters: [UInt32: [UInt8]]
    private var place = 0

    /// Takes over the references to the messages.
    init(messages: [OutboundQueue.Returned], filters: [UInt32: [UInt8]]) {
        self.messages = messages
        self.filters = filters
    }

    /// The next message, whose reference the caller gets, with its group's filter; `nil` behind the last.
    mutating func next() -> (Message, filter: [UInt8])? {
        guard place < messages.count else { return nil }
        let item = messages[place]
        place += 1
        return (item.message, filters[item.group] ?? [])
    }
}
