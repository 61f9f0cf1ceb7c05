import MQTTCodec

/// A control packet by its content: a ``ControlPacket`` together with the bytes that it refers to.
///
/// Equal packets from different buffers compare equal, and a test can write an expected packet
/// without offsets.
package enum PacketContent: Hashable, Sendable {
    package struct Will: Hashable, Sendable {
        package var topic: [UInt8]
        package var message: [UInt8]
        package var qos: QoS
        package var retain: Bool

        package init(topic: String, message: [UInt8], qos: QoS = .atMostOnce, retain: Bool = false)
        {
            self.topic = Array(topic.utf8)
            self.message = message
            self.qos = qos
            self.retain = retain
        }
    }

    package struct Connect: Hashable, Sendable {
        package var version: MQTTCodec.Connect.Version = .v3_1_1
        package var cleanSession = true
        /// Seconds.
        package var keepAlive: UInt16 = 0
        package var clientID: [UInt8]
        package var will: Will?
        package var userName: [UInt8]?
        package var password: [UInt8]?

        package init(clientID: String) {
            self.clientID = Array(clientID.utf8)
        }
    }

    package struct Publish: Hashable, Sendable {
        package var delivery: Delivery
        package var retain: Bool
        package var topic: [UInt8]
        package var payload: [UInt8]

        package init(
            _ delivery: Delivery = .atMostOnce, topic: String, payload: [UInt8] = [],
            retain: Bool = false
        ) {
            self.delivery = delivery
            self.retain = retain
            self.topic = Array(topic.utf8)
            self.payload = payload
        }
    }

    package struct Request: Hashable, Sendable {
        package var filter: [UInt8]
        package var qos: QoS

        package init(_ filter: String, _ qos: QoS) {
            self.filter = Array(filter.utf8)
            self.qos = qos
        }
    }

    case connect(Connect)
    case connack(Connack)
    case publish(Publish)
    case puback(PacketIdentifier)
    case pubrec(PacketIdentifier)
    case pubrel(PacketIdentifier)
    case pubcomp(PacketIdentifier)
    case subscribe(PacketIdentifier, [Request])
    /// Return codes as bytes of the packet.
    case suback(PacketIdentifier, [UInt8])
    case unsubscribe(PacketIdentifier, [[UInt8]])
    case unsuback(PacketIdentifier)
    case pingreq
    case pingresp
    case disconnect

    /// The content of a `packet` decoded from `bytes`.
    package init(_ packet: ControlPacket, in bytes: [UInt8]) {
        func field(_ range: ByteRange) -> [UInt8] { Array(bytes[range.start..<range.end]) }
        switch packet {
        case .connect(let connect): self = .connect(Connect(connect, field))
        case .connack(let connack): self = .connack(connack)
        case .publish(let publish):
            var content = Publish(publish.delivery, topic: "", retain: publish.retain)
            content.topic = field(publish.topic.range)
            content.payload = field(publish.payload)
            self = .publish(content)
        case .puback(let identifier): self = .puback(identifier)
        case .pubrec(let identifier): self = .pubrec(identifier)
        case .pubrel(let identifier): self = .pubrel(identifier)
        case .pubcomp(let identifier): self = .pubcomp(identifier)
        case .subscribe(var subscribe):
            var requests: [Request] = []
            while let request = subscribe.next(in: bytes.span.bytes) {
                var content = Request("", request.qos)
                content.filter = field(request.filter.range)
                requests.append(content)
            }
            self = .subscribe(subscribe.packetIdentifier, requests)
        case .suback(let suback):
            self = .suback(suback.packetIdentifier, field(suback.returnCodes))
        case .unsubscribe(var unsubscribe):
            var filters: [[UInt8]] = []
            while let filter = unsubscribe.next(in: bytes.span.bytes) {
                filters.append(field(filter.range))
            }
            self = .unsubscribe(unsubscribe.packetIdentifier, filters)
        case .unsuback(let identifier): self = .unsuback(identifier)
        case .pingreq: self = .pingreq
        case .pingresp: self = .pingresp
        case .disconnect: self = .disconnect
        }
    }
}

extension PacketContent.Connect {
    fileprivate init(_ connect: MQTTCodec.Connect, _ field: (ByteRange) -> [UInt8]) {
        version = connect.version
        cleanSession = connect.cleanSession
        keepAlive = connect.keepAlive
        clientID = field(connect.clientID)
        if let will = connect.will {
            var content = PacketContent.Will(
                topic: "", message: field(will.message), qos: will.qos, retain: will.retain)
            content.topic = field(will.topic.range)
            self.will = content
        }
        userName = connect.userName.map(field)
        password = connect.password.map(field)
    }
}
