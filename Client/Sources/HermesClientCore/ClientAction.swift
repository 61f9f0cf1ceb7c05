/// A thing that the machine asks its driver to do. Actions are done in their order: whatever follows
/// ``store(frame:)`` waits until the records are stored.
package enum ClientAction: Equatable, Sendable {
    /// Opens a transport connection on a new socket; ``ClientMachine/transportOpened(_:at:)`` or
    /// ``ClientMachine/transportClosed(_:_:at:)`` answers.
    case open(ConnectionNumber)
    /// Sends bytes; those for a connection that has closed are dropped.
    case write(ConnectionNumber, [UInt8])
    /// Closes the connection once what was written is sent, after a second at most. The machine has
    /// forgotten it: nothing that it still receives counts.
    case close(ConnectionNumber)
    /// Appends a frame to the log; to a log that is empty, behind ``ClientLog/header``.
    case store(frame: [UInt8])
    /// Replaces the log by this file: into another file first, then by renaming.
    case replaceLog([UInt8])
    case state(ClientState)
    case event(ClientEvent)
    /// Asks the app for credentials; ``ClientMachine/credentialsProvided(_:at:)`` answers.
    case requestCredentials
    /// The broker has taken over the message with this key.
    case published(UInt64)
    /// The broker has answered for a topic filter.
    case subscriptionAnswered([UInt8], SubscriptionAnswer)
    /// The report is to be published now; ``ClientMachine/sendReport(_:topic:at:)`` takes it.
    case reportDue
}

/// Names one transport connection of this machine; rises by one with each.
package struct ConnectionNumber: Hashable, Sendable {
    package var rawValue: UInt64
    /// The place of the broker's address, from 0.
    package var address = 0

    package static func == (left: Self, right: Self) -> Bool { left.rawValue == right.rawValue }

    package func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
}

package enum SubscriptionAnswer: Hashable, Sendable {
    /// With this QoS, 0 to 2.
    case granted(UInt8)
    case refused
    case unsubscribed
}

/// The client's connection, as the app sees it.
package enum ClientState: Hashable, Sendable {
    /// Counts from 1.
    case connecting(attempt: Int)
    case connected(sessionPresent: Bool)
    /// The next try comes at this time of the monotonic clock.
    case waiting(untilMilliseconds: Int64, WaitReason)
    /// In the background: no connection, and no tries.
    case suspended
    case stopped(StopReason)
}

package enum WaitReason: Hashable, Sendable {
    /// A few tries, each after a random delay.
    case retrying
    /// The tries after ``retrying`` have failed.
    case unreachable
    /// Another connection with this client identifier seems to take the session again and again.
    case takenOver
}

package enum StopReason: Hashable, Sendable {
    /// Nobody has called ``ClientMachine/start(at:)``.
    case notStarted
    case requested
    /// CONNACK 1.
    case unacceptableProtocolVersion
    /// CONNACK 2.
    case identifierRejected
    /// CONNACK 4 or 5, with new credentials too.
    case credentialsRefused
}

package enum ClientEvent: Hashable, Sendable {
    /// Sequences of a channel that never came, lowest first.
    case loss(channel: [UInt8], [ClosedRange<UInt64>])
    /// The broker no longer had the session: what it had queued is gone. Subscriptions are renewed.
    case sessionLost
    case dropped(DropReason)
    /// A subscription that the broker had granted was refused when it was renewed.
    case renewalRefused(filter: [UInt8])
    /// The broker closes the connection upon messages with this topic: the one that was sent is
    /// held back.
    case publishRefused(topic: [UInt8])
    /// The app has not acknowledged a message for this long, the oldest of `count`. The broker sends
    /// nothing more once its window is full.
    case unacknowledged(topic: [UInt8], milliseconds: Int64, count: Int)
    /// Messages of QoS 0 that found the buffer full, since the last such event.
    case droppedAtMostOnce(count: Int)
}
