import MQTTCodec

/// The parts of the client's behaviour that its user chooses.
package struct ClientSettings: Sendable {
    package enum HeartbeatMode: Hashable, Sendable {
        /// Seconds of silence before a PINGREQ, 10 to 3,600.
        case fixed(seconds: UInt16)
        /// The longest silence that each network bears is learned, 120 to 580 s.
        case smart
    }

    /// UTF-8, 1 to 65,535 bytes.
    package var clientID: [UInt8]
    package var credentials: ClientCredentials?
    /// Without credentials the app is asked for them before the first CONNECT.
    package var asksForCredentials = false
    /// The broker keeps the session while the client is away. Otherwise each connection has a session
    /// of its own: what comes meanwhile is lost, subscriptions are asked for anew each time.
    package var keepsSession = true
    package var will: ClientWill?
    /// The number of the broker's addresses, 1 or more; the driver knows them by their places.
    package var addresses = 1
    package var heartbeat = HeartbeatMode.fixed(seconds: 120)
    package var limits = ClientLimits()
    /// Reads what tells one message from another out of topic and payload; `nil` for a payload that
    /// holds nothing of the kind.
    package var readFacts: @Sendable (_ topic: [UInt8], _ payload: [UInt8]) -> MessageFacts?

    package init(
        clientID: [UInt8],
        readFacts: @escaping @Sendable ([UInt8], [UInt8]) -> MessageFacts? = { _, _ in nil }
    ) {
        self.clientID = clientID
        self.readFacts = readFacts
    }
}

/// User name and password of CONNECT, each 0 to 65,535 bytes.
package struct ClientCredentials: Hashable, Sendable {
    /// UTF-8.
    package var userName: [UInt8]
    package var password: [UInt8]

    package init(userName: [UInt8], password: [UInt8]) {
        self.userName = userName
        self.password = password
    }
}

/// The message that the broker publishes when a connection ends without DISCONNECT.
package struct ClientWill: Hashable, Sendable {
    package var topic: [UInt8]
    package var payload: [UInt8]
    package var qos: QoS
    package var retain: Bool

    /// `nil` for what no CONNECT can carry: a topic name that is none, or a payload of more than
    /// 65,535 bytes.
    package init?(topic: [UInt8], payload: [UInt8], qos: QoS, retain: Bool) {
        guard topic.count <= Int(UInt16.max), payload.count <= Int(UInt16.max) else { return nil }
        do throws(MalformedPacket) {
            try topic.read { bytes throws(MalformedPacket) in
                try TextValidation.checkTopicName(bytes, topic.whole)
            }
        } catch {
            return nil
        }
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
    }
}

/// Bounds of all that the client keeps.
package struct ClientLimits: Hashable, Sendable {
    package var outboxMessages = 1_000
    /// Topics and payloads of the outbox.
    package var outboxBytes = 8 << 20
    /// Messages of QoS 1 and 2 that are sent and not taken over, 1 to 65,535.
    package var inFlight = 20
    /// A packet in either direction.
    package var packetBytes = 1 << 20
    /// Messages of QoS 0 that the app has not taken.
    package var atMostOnceMessages = 256
    /// Messages of QoS 1 and 2 that the app has not acknowledged. A broker keeps to its own window,
    /// which is far smaller.
    package var unacknowledgedMessages = 1_024
    /// Topics and payloads of all messages that the app has not taken or not acknowledged.
    package var inboundBytes = 32 << 20
    package var subscriptions = 1_000
    package var subscriptionBytes = 256 << 10

    package init() {}
}
