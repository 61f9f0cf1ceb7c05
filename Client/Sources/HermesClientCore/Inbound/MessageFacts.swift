/// The place of a message in its channel.
package struct SequenceNumbers: Hashable, Sendable {
    package var channel: [UInt8]
    /// Counts from 1.
    package var sequence: UInt64
    /// When the broker took the message, UNIX time; 0 if that is unknown.
    package var publishedAtMilliseconds: Int64
    /// Sequences of messages that this one replaced before they were delivered. Only numbers below
    /// `sequence` count.
    package var superseded: [UInt64]

    package init(
        channel: [UInt8], sequence: UInt64, publishedAtMilliseconds: Int64 = 0,
        superseded: [UInt64] = []
    ) {
        self.channel = channel
        self.sequence = sequence
        self.publishedAtMilliseconds = publishedAtMilliseconds
        self.superseded = superseded
    }
}

/// The part of a payload that tells one message from another. The layer above reads it: the core
/// does not know the payload's format.
package enum MessageFacts: Hashable, Sendable {
    case sequenced(SequenceNumbers)
    /// A message without a sequence, by its name.
    case named([UInt8])

    /// Bytes of a channel's name, and of a message's.
    package static let mostChannelBytes = 1_024
    package static let mostNameBytes = 128
    package static let mostSuperseded = 1_024

    /// False for facts that would take too much room or work; such a message is delivered as one
    /// without facts.
    var isBounded: Bool {
        switch self {
        case .sequenced(let numbers):
            numbers.channel.count <= Self.mostChannelBytes && numbers.sequence > 0
                && numbers.superseded.count <= Self.mostSuperseded
        case .named(let name): name.count <= Self.mostNameBytes
        }
    }

    /// The message that these facts name: two with equal identities are copies of each other.
    var identity: MessageIdentity {
        switch self {
        case .sequenced(let numbers):
            .sequence(numbers.channel, numbers.sequence, numbers.publishedAtMilliseconds)
        case .named(let name): .name(name)
        }
    }
}

enum MessageIdentity: Hashable, Sendable {
    case sequence([UInt8], UInt64, Int64)
    case name([UInt8])
}
