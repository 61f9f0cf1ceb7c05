import MQTTCore
import Structures

/// One message on its way to its receivers.
struct RoutedMessage {
    let message: Message
    /// Names the message's content in the store; 0 until a receiver needs it there.
    var number: UInt64 = 0
    /// The commit that every receiver waits for; 0 for none.
    let ticket: UInt64
    /// RETAIN as the receivers get it.
    let retain: Bool
    /// The shared group that chose the next receiver; ``noIndex`` for none.
    var group: UInt32 = noIndex

    init(_ message: Message, ticket: UInt64, retain: Bool = false) {
        self.message = message
        self.ticket = ticket
        self.retain = retain
    }
}
