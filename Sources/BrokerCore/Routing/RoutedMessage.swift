import MQTTCore
import Structures

/// One message while it is delivered to its receivers.
struct RoutedMessage {
    let message: Message
    /// Number of the message's content in the store; 0 until a receiver needs it there.
    var number: UInt64 = 0
    /// The commit that must complete before any receiver gets the message; 0 for none.
    let ticket: UInt64
    /// RETAIN in the packets to receivers.
    let retain: Bool
    /// The shared group of the next receiver; ``noIndex`` for a plain subscription.
    var group: UInt32 = noIndex
    /// The receipt that follows the message; ``noIndex`` without one.
    private(set) var receipt: UInt32 = noIndex
    /// True when a later message may replace it (``CollapseIndex/current``).
    private(set) var collapses = false
    /// Whom it wakes, once that is known.
    var wake: WakeChoice?
    /// True when any part follows its queue positions (`Shard+QueueEnds`).
    private(set) var isFollowed = false

    init(_ message: Message, ticket: UInt64, retain: Bool = false) {
        self.message = message
        self.ticket = ticket
        self.retain = retain
    }

    /// Has its queue positions followed by a receipt, ``noIndex`` for none, and by the index of
    /// messages that may be replaced.
    mutating func follow(receipt: UInt32, collapses: Bool = false) {
        self.receipt = receipt
        self.collapses = collapses
        isFollowed = receipt != noIndex || collapses
    }
}
