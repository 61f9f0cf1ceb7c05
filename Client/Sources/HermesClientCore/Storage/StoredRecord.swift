import MQTTCodec

/// One change of what the client keeps across restarts of the program.
package enum StoredRecord: Hashable, Sendable {
    /// CONNECT is about to leave. Until CONNACK has come and its record is stored, the broker may
    /// have begun a new session without the client's knowing.
    case connecting
    /// CONNACK told that the broker had no session, and a new one begins: nothing is left of what
    /// belonged to the old one.
    case sessionStarted
    /// A session begins that ends with its connection, because the app wants such ones.
    case cleanSessionStarted
    /// CONNACK told that the broker has the session. `isCertain` is false if it may have begun at
    /// an earlier CONNECT whose CONNACK was lost: then all subscriptions are asked for again.
    case sessionResumed(isCertain: Bool)
    case queued(OutgoingMessage)
    /// PUBREC has come for the message with this key.
    case released(UInt64)
    /// The broker has taken over the message with this key, by PUBACK or PUBCOMP.
    case finished(UInt64)
    /// The broker closes the connection upon the message with this key: it is not sent any more.
    case heldBack(UInt64)
    /// A message that was held back is sent again.
    case retried(UInt64)
    /// The app wants the message with this key no longer.
    case discarded(UInt64)
    /// The broker closes the connection upon the client's report; UNIX time in milliseconds, `nil`
    /// for a report that it has taken since.
    case reportRefused(at: Int64?)
    /// The app has acknowledged a message of QoS 2; a repeat of it is answered and not delivered.
    case received(PacketIdentifier, digest: UInt64)
    /// PUBREL has come for it.
    case receivedReleased(PacketIdentifier)
    case subscription(Subscription)
    case subscriptionForgotten([UInt8])
    /// The app has acknowledged a message of a channel.
    case sequence(SequenceNumbers)
    /// The app has been told that `count` sequences of a channel, all up to `upTo`, are lost.
    case lossTold([UInt8], upTo: UInt64, count: UInt64)
    /// A whole channel; only a compacted log begins with these.
    case channel([UInt8], ChannelWindow)
    /// The app has acknowledged a message without a sequence.
    case messageName([UInt8])
    case rhythm([UInt8], SmartRhythm)
    case counters(ClientCounters)
    /// So many messages, and duplicates among them, have been acknowledged since the last record of
    /// the counters.
    case counted(received: UInt32, duplicates: UInt32)
    /// A subscription of the channel has ended or begins anew: the next message is its baseline.
    case baselineForgotten([UInt8])
    /// The client identifier to which the messages, subscriptions and marks belong.
    case owner([UInt8])
}
