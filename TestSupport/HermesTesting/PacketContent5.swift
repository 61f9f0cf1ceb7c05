import MQTTCodec

/// A packet of MQTT 5.0 by its content: a ``ControlPacket5`` together with the bytes that it refers
/// to.
///
/// Equal packets from different buffers compare equal, and a test can write an expected packet
/// without offsets.
package enum PacketContent5: Hashable, Sendable, CustomStringConvertible {
    package struct Will: Hashable, Sendable {
        package var topic: [UInt8]
        package var message: [UInt8]
        package var qos: QoS
        package var retain: Bool
        package var properties: [PropertyContent]

        package init(
            topic: [UInt8], message: [UInt8], qos: QoS = .atMostOnce, retain: Bool = false,
            _ properties: [PropertyContent] = []
        ) {
            self.topic = topic
            self.message = message
            self.qos = qos
            self.retain = retain
            self.properties = properties
        }
    }

    package struct Connect: Hashable, Sendable {
        package var cleanStart = true
        /// Seconds.
        package var keepAlive: UInt16 = 0
        package var properties: [PropertyContent] = []
        package var clientID: [UInt8]
        package var will: Will?
        package var userName: [UInt8]?
        package var password: [UInt8]?

        package init(clientID: [UInt8]) { self.clientID = clientID }
    }

    package struct Publish: Hashable, Sendable {
        package var delivery: Delivery
        package var retain: Bool
        /// Empty where a topic alias stands for it.
        package var topic: [UInt8]
        package var properties: [PropertyContent]
        package var payload: [UInt8]

        package init(
            _ delivery: Delivery = .atMostOnce, topic: [UInt8],
            _ properties: [PropertyContent] = [], payload: [UInt8] = [], retain: Bool = false
        ) {
            self.delivery = delivery
            self.retain = retain
            self.topic = topic
            self.properties = properties
            self.payload = payload
        }
    }

    package struct Request: Hashable, Sendable {
        package var filter: [UInt8]
        package var options: SubscriptionOptions

        package init(_ filter: [UInt8], _ options: SubscriptionOptions) {
            self.filter = filter
            self.options = options
        }
    }

    case connect(Connect)
    case connack(sessionPresent: Bool, ReasonCode, [PropertyContent])
    case publish(Publish)
    case puback(PacketIdentifier, ReasonCode, [PropertyContent])
    case pubrec(PacketIdentifier, ReasonCode, [PropertyContent])
    case pubrel(PacketIdentifier, ReasonCode, [PropertyContent])
    case pubcomp(PacketIdentifier, ReasonCode, [PropertyContent])
    case subscribe(PacketIdentifier, [PropertyContent], [Request])
    case suback(PacketIdentifier, [PropertyContent], [ReasonCode])
    case unsubscribe(PacketIdentifier, [PropertyContent], [[UInt8]])
    case unsuback(PacketIdentifier, [PropertyContent], [ReasonCode])
    case pingreq
    case pingresp
    case disconnect(ReasonCode, [PropertyContent])
    case auth(ReasonCode, [PropertyContent])

    /// The content of a `packet` decoded from `bytes`.
    package init(_ packet: ControlPacket5, in bytes: [UInt8]) {
        func field(_ range: ByteRange) -> [UInt8] { Array(bytes[range.start..<range.end]) }
        func all(_ properties: Properties) -> [PropertyContent] {
            PropertyContent.all(properties, in: bytes)
        }
        func codes(_ range: ByteRange) -> [ReasonCode] {
            field(range).compactMap(ReasonCode.init)
        }
        switch packet {
        case .connect(let connect): self = .connect(Connect(connect, field, all))
        case .connack(let connack):
            self = .connack(
                sessionPresent: connack.sessionPresent, connack.code, all(connack.properties))
        case .publish(let publish):
            self = .publish(
                Publish(
                    publish.delivery, topic: publish.topic.name.map { field($0.range) } ?? [],
                    all(publish.properties), payload: field(publish.payload),
                    retain: publish.retain))
        case .puback(let answer):
            self = .puback(answer.packetIdentifier, answer.code, all(answer.properties))
        case .pubrec(let answer):
            self = .pubrec(answer.packetIdentifier, answer.code, all(answer.properties))
        case .pubrel(let answer):
            self = .pubrel(answer.packetIdentifier, answer.code, all(answer.properties))
        case .pubcomp(let answer):
            self = .pubcomp(answer.packetIdentifier, answer.code, all(answer.properties))
        case .subscribe(var subscribe):
            var requests: [Request] = []
            while let request = subscribe.next(in: bytes.span.bytes) {
                requests.append(Request(field(request.filter.text), request.options))
            }
            self = .subscribe(subscribe.packetIdentifier, all(subscribe.properties), requests)
        case .suback(let answers):
            self = .suback(
                answers.packetIdentifier, all(answers.properties), codes(answers.codes))
        case .unsubscribe(var unsubscribe):
            var filters: [[UInt8]] = []
            while let filter = unsubscribe.next(in: bytes.span.bytes) {
                filters.append(field(filter.text))
            }
            self = .unsubscribe(
                unsubscribe.packetIdentifier, all(unsubscribe.properties), filters)
        case .unsuback(let answers):
            self = .unsuback(
                answers.packetIdentifier, all(answers.properties), codes(answers.codes))
        case .pingreq: self = .pingreq
        case .pingresp: self = .pingresp
        case .disconnect(let disconnect):
            self = .disconnect(disconnect.code, all(disconnect.properties))
        case .auth(let auth): self = .auth(auth.code, all(auth.properties))
        }
    }
}

extension PacketContent5.Connect {
    fileprivate init(
        _ connect: Connect5, _ field: (ByteRange) -> [UInt8],
        _ all: (Properties) -> [PropertyContent]
    ) {
        cleanStart = connect.cleanStart
        keepAlive = connect.keepAlive
        properties = all(connect.properties)
        clientID = field(connect.clientID)
        will = connect.will.map { will in
            PacketContent5.Will(
                topic: field(will.topic.range), message: field(will.message), qos: will.qos,
                retain: will.retain, all(will.properties))
        }
        userName = connect.userName.map(field)
        password = connect.password.map(field)
    }
}
