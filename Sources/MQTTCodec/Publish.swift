/// The quality of service of a PUBLISH, with the fields that this level carries.
///
/// QoS 0 has neither identifier nor DUP, so [MQTT-2.3.1-5] and [MQTT-3.3.1-2] hold by construction.
public enum Delivery: Hashable, Sendable, BitwiseCopyable {
    case atMostOnce
    case atLeastOnce(PacketIdentifier, isDuplicate: Bool)
    case exactlyOnce(PacketIdentifier, isDuplicate: Bool)

    public var qos: QoS {
        switch self {
        case .atMostOnce: .atMostOnce
        case .atLeastOnce: .atLeastOnce
        case .exactlyOnce: .exactlyOnce
        }
    }
}

/// PUBLISH: carries an application message (section 3.3).
public struct Publish: Hashable, Sendable, BitwiseCopyable {
    public var delivery: Delivery
    public var retain: Bool
    public var topic: TopicName
    public var payload: ByteRange

    public init(delivery: Delivery, retain: Bool, topic: TopicName, payload: ByteRange) {
        self.delivery = delivery
        self.retain = retain
        self.topic = topic
        self.payload = payload
    }

    public static func decode(
        flags: UInt8, _ body: ByteRange, _ bytes: RawSpan
    ) throws(MalformedPacket) -> Publish {
        guard body.count >= 2 else { throw .truncated }
        let topicStart = body.start + 2
        let topicCount =
            Int(bytes.byte(at: body.start)) << 8 | Int(bytes.byte(at: body.start + 1))
        var offset = topicStart + topicCount
        guard offset <= body.end else { throw .truncated }
        let topic = try TopicName(
            validating: ByteRange(offset: topicStart, count: topicCount), in: bytes)

        let isDuplicate = flags & 0x08 != 0
        let delivery: Delivery
        switch flags >> 1 & 0x03 {
        case 0:
            guard !isDuplicate else { throw .duplicateAtMostOnce }
            delivery = .atMostOnce
        case 3:
            throw .publishQoS  // [MQTT-3.3.1-4]
        case let level:
            guard offset + 2 <= body.end else { throw .truncated }
            let value = UInt16(bytes.byte(at: offset)) << 8 | UInt16(bytes.byte(at: offset + 1))
            guard let identifier = PacketIdentifier(value) else { throw .zeroPacketIdentifier }
            offset += 2
            delivery =
                level == 1
                ? .atLeastOnce(identifier, isDuplicate: isDuplicate)
                : .exactlyOnce(identifier, isDuplicate: isDuplicate)
        }
        return Publish(
            delivery: delivery, retain: flags & 0x01 != 0, topic: topic,
            payload: ByteRange(offset: offset, count: body.end - offset))
    }
}
