/// The place of a message in its channel.
package struct SequenceNumbers: Hashable, Sendable {
    package var channel: [UInt8]
    /// Counts from 1.
    package var sequence: UInt64
    /// Sequences of messages that this one replaced before they were delivered. Only numbers below
    /// `sequence` count.
    package var superseded: [UInt64]

    package init(channel: [UInt8], sequence: UInt64, superseded: [UInt64] = []) {
        self.channel = channel
        self.sequence = sequence
        self.superseded = superseded
    }
}

/// The part of a payload that tells one message from another. The layer above reads it: the core
/// does not know the payload's format.
package enum MessageFacts: Hashable, Sendable {
    case sequenced(SequenceNumbers)
    /// A message without a sequence, by its name.
    case named([UInt8])

    /// The message that these facts name: two with equal identities are copies of each other.
    var identity: MessageIdentity {
        switch self {
        case .sequenced(let numbers): .sequence(numbers.channel, numbers.sequence)
        case .named(let name): .name(name)
        }
    }
}

enum MessageIdentity: Hashable, Sendable {
    case sequence([UInt8], UInt64)
    case name([UInt8])
}
