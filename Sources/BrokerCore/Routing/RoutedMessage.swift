import MQTTCore
import Structures

/// One message while it is delivered to its receivers.
package struct RoutedMessage {
    package let message: Message
    /// Number of the message's content in the store; 0 until a receiver needs it there.
    package var number: UInt64 = 0
    /// The commit that must complete before any receiver gets the message; 0 for none.
    package let ticket: UInt64
    /// RETAIN in the packet to the next receiver.
    package var retain: Bool
    /// The shared group of the next receiver; ``noIndex`` for a plain subscription.
    package var group: UInt32 = noIndex
    /// The place that a feature has for the message; ``noIndex`` for none. Only it knows the meaning.
    package private(set) var follower: UInt32 = noIndex
    /// True for a message that another member of its group had: ``follower`` is the place of the
    /// position that it leaves.
    package private(set) var isPassedOn = false
    /// What a feature has to know at each position that the message gets; 0 for nothing.
    package private(set) var mark: UInt32 = 0
    /// What a feature has found out about the message at the first receiver; 0 for nothing yet.
    package var memo: UInt32 = 0
    /// True when a feature follows its queue positions (``Followers``).
    package private(set) var isFollowed = false

    package init(_ message: Message, ticket: UInt64, retain: Bool = false) {
        self.message = message
        self.ticket = ticket
        self.retain = retain
    }

    /// Has features told of its queue positions.
    package mutating func follow(_ follower: UInt32, mark: UInt32 = 0) {
        self.follower = follower
        self.mark = mark
        isFollowed = follower != noIndex || mark != 0
    }

    /// Has the feature that followed a message at another member's position follow it further.
    package mutating func passOn(_ follower: UInt32) {
        self.follower = follower
        isPassedOn = follower != noIndex
        isFollowed = isPassedOn
    }
}
