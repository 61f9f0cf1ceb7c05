/// The end of a queue position, or of a message that never had one.
package enum QueueEnd: BitwiseCopyable, Equatable {
    /// PUBACK or PUBREC has come: the receiver owns the message.
    case acknowledged
    /// Sent with QoS 0, which nobody acknowledges.
    case sent
    case dropped(DropReason)
    /// Another member of the shared subscription's group has got it, and what followed it.
    case handedOver
    /// The session ended, and nobody else of a shared subscription's group takes it.
    case sessionEnded
}
