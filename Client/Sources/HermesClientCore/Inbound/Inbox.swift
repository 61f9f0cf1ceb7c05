import MQTTCodec

/// A message for the app.
package struct InboundMessage: Hashable, Sendable {
    /// Names the message towards ``ClientMachine/acknowledge(_:at:)``, while the program runs.
    package var number: UInt64
    package var topic: [UInt8]
    package var payload: [UInt8]
    package var qos: QoS
    package var retain: Bool
    package var facts: MessageFacts?

    var size: Int { topic.count + payload.count }
}

/// The messages that have come, until the app has acknowledged them and the broker has been told.
///
/// A message of QoS 1 or 2 is answered after the app's acknowledgement, and in the order of arrival
/// [MQTT-4.6.0-2]. A connection's end does not take a message from the app: when the broker
/// redelivers it, the copy is joined to it and not delivered again.
struct Inbox: Sendable {
    /// A PUBLISH of this connection that is not answered yet.
    struct Arrival {
        var identifier: PacketIdentifier
        var qos: QoS
        var digest: UInt64
        /// The message whose acknowledgement is awaited; `nil` answers at once.
        var awaits: UInt64?
    }

    /// A message that the app has or will get, and has not acknowledged.
    struct Unacknowledged {
        /// `nil` once the session is lost.
        var identifier: PacketIdentifier?
        var qos: QoS
        var digest: UInt64
        var facts: MessageFacts?
        var size: Int
        var topic: [UInt8]
        /// When it came.
        var since: Int64
    }

    /// The app has had the oldest message for this long.
    static let reminderMilliseconds: Int64 = 60_000

    private struct Orphan {
        var qos: QoS
        var digest: UInt64
        var number: UInt64
    }

    private var nextNumber: UInt64 = 1
    /// Not taken by the app, oldest first.
    private var waiting: [InboundMessage] = []
    private var waitingAtMostOnce = 0
    private var unacknowledged: [UInt64: Unacknowledged] = [:]
    private var numbers: [MessageIdentity: UInt64] = [:]
    private var arrivals: [Arrival] = []
    /// What earlier connections of this session left unanswered.
    private var orphans: [PacketIdentifier: Orphan] = [:]
    /// The bytes of all messages that are not taken or not acknowledged.
    private(set) var bytes = 0

    /// No message with a smaller number is unacknowledged.
    private var oldest: UInt64 = 1
    /// The message that the app was last reminded of, and its age then.
    private var reminded: (number: UInt64, age: Int64)?

    var unacknowledgedCount: Int { unacknowledged.count }
    var arrivalCount: Int { arrivals.count }
    var waitingCount: Int { waiting.count }

    /// The arrival of this connection with this identifier.
    func arrival(_ identifier: PacketIdentifier) -> Arrival? {
        arrivals.first { $0.identifier == identifier }
    }

    /// The message that the app has, or has acknowledged without the broker's knowing, and that
    /// the broker delivers again.
    mutating func takeOrphan(
        _ identifier: PacketIdentifier, qos: QoS, digest: UInt64
    ) -> UInt64? {
        guard let orphan = orphans.removeValue(forKey: identifier), orphan.qos == qos,
            orphan.digest == digest
        else { return nil }
        return orphan.number
    }

    /// The message that the app has not acknowledged and that is the same by its facts.
    func copied(_ identity: MessageIdentity) -> UInt64? { numbers[identity] }

    mutating func append(_ arrival: Arrival) { arrivals.append(arrival) }

    /// Takes in a new message and returns its number.
    mutating func deliver(
        topic: [UInt8], payload: [UInt8], retain: Bool, facts: MessageFacts?,
        as arrival: (identifier: PacketIdentifier, qos: QoS, digest: UInt64)?, at now: Int64
    ) -> UInt64 {
        let number = nextNumber
        nextNumber += 1
        if unacknowledged.isEmpty { oldest = number }
        let message = InboundMessage(
            number: number, topic: topic, payload: payload, qos: arrival?.qos ?? .atMostOnce,
            retain: retain, facts: facts)
        waiting.append(message)
        bytes += message.size
        if let arrival {
            unacknowledged[number] = Unacknowledged(
                identifier: arrival.identifier, qos: arrival.qos, digest: arrival.digest,
                facts: facts, size: message.size, topic: topic, since: now)
            if let facts { numbers[facts.identity] = number }
        } else {
            waitingAtMostOnce += 1
        }
        return number
    }

    /// Drops the oldest messages of QoS 0 beyond the limits; returns how many.
    mutating func dropAtMostOnce(beyond limits: ClientLimits) -> Int {
        var dropped = 0
        while waitingAtMostOnce > limits.atMostOnceMessages
            || (bytes > limits.inboundBytes && waitingAtMostOnce > 0)
        {
            guard let index = waiting.firstIndex(where: { $0.qos == .atMostOnce }) else { break }
            bytes -= waiting.remove(at: index).size
            waitingAtMostOnce -= 1
            dropped += 1
        }
        return dropped
    }

    mutating func take() -> InboundMessage? {
        guard !waiting.isEmpty else { return nil }
        let message = waiting.removeFirst()
        if message.qos == .atMostOnce {
            waitingAtMostOnce -= 1
            bytes -= message.size
        }
        return message
    }

    /// The app has acknowledged a message; `nil` for one that it has acknowledged before.
    mutating func acknowledge(_ number: UInt64) -> Unacknowledged? {
        guard let message = unacknowledged.removeValue(forKey: number) else { return nil }
        bytes -= message.size
        if let facts = message.facts { numbers[facts.identity] = nil }
        while oldest < nextNumber, unacknowledged[oldest] == nil { oldest += 1 }
        return message
    }

    /// The time at which the app is to be reminded of the oldest message that it has not
    /// acknowledged: after a minute, and again each time that its age has doubled.
    var reminderDeadline: Int64? {
        guard let message = unacknowledged[oldest] else { return nil }
        return message.since + nextReminderAge
    }

    private var nextReminderAge: Int64 {
        guard let reminded, reminded.number == oldest else { return Self.reminderMilliseconds }
        return 2 * reminded.age
    }

    /// Takes the reminder that is due.
    mutating func takeReminder(at now: Int64) -> (topic: [UInt8], age: Int64)? {
        guard let deadline = reminderDeadline, now >= deadline,
            let message = unacknowledged[oldest]
        else { return nil }
        let age = now - message.since
        reminded = (oldest, age)
        return (message.topic, age)
    }

    /// Takes the next arrival that is to be answered: none overtakes an earlier one.
    mutating func takeAnswerable() -> Arrival? {
        guard let first = arrivals.first else { return nil }
        if let awaited = first.awaits, unacknowledged[awaited] != nil { return nil }
        return arrivals.removeFirst()
    }

    /// The connection has ended; what it left unanswered is expected again, `most` at most.
    mutating func connectionEnded(most: Int) {
        for arrival in arrivals {
            guard let number = arrival.awaits else { continue }
            orphans[arrival.identifier] = Orphan(
                qos: arrival.qos, digest: arrival.digest, number: number)
        }
        arrivals = []
        if orphans.count > most {
            orphans = orphans.filter { unacknowledged[$0.value.number] != nil }
        }
    }

    /// The broker has lost the session: nothing comes again under its identifier.
    mutating func sessionLost() {
        orphans = [:]
        for number in unacknowledged.keys { unacknowledged[number]?.identifier = nil }
    }
}
