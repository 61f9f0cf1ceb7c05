/// The topic of a PUBLISH: a name, a number that stands for one, or both (section 3.3.2.3.4).
public enum TopicOrAlias: Hashable, Sendable, BitwiseCopyable {
    case name(TopicName)
    /// From now on the alias stands for the name.
    case named(TopicName, alias: TopicAlias)
    /// The name that the alias stands for; it is a protocol error if there is none.
    case alias(TopicAlias)

    public var name: TopicName? {
        switch self {
        case .name(let name), .named(let name, _): name
        case .alias: nil
        }
    }

    public var alias: TopicAlias? {
        switch self {
        case .name: nil
        case .named(_, let alias), .alias(let alias): alias
        }
    }
}

/// PUBLISH of MQTT 5.0: carries an application message (section 3.3).
public struct Publish5: Hashable, Sendable, BitwiseCopyable {
    public var delivery: Delivery
    public var retain: Bool
    public var topic: TopicOrAlias
    /// All properties, with the topic alias that ``topic`` has.
    public var properties: Properties
    public var payload: ByteRange

    public init(
        delivery: Delivery, retain: Bool, topic: TopicOrAlias, properties: Properties = .none,
        payload: ByteRange
    ) {
        self.delivery = delivery
        self.retain = retain
        self.topic = topic
        self.properties = properties
        self.payload = payload
    }

    public static func decode(
        flags: UInt8, _ body: ByteRange, _ bytes: RawSpan, from sender: PacketSender
    ) throws(PacketFault) -> Publish5 {
        guard body.count >= 2 else { throw .truncated }
        let topicStart = body.start + 2
        let topicCount =
            Int(bytes.byte(at: body.start)) << 8 | Int(bytes.byte(at: body.start + 1))
        var offset = topicStart + topicCount
        guard offset <= body.end else { throw .truncated }

        let isDuplicate = flags & 0x08 != 0
        let delivery: Delivery
        switch flags >> 1 & 0x03 {
        case 0:
            guard !isDuplicate else { throw .duplicateAtMostOnce }  // [MQTT-3.3.1-2]
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

        guard offset < body.end else { throw .truncated }
        var alias: TopicAlias?
        let properties: Properties
        if bytes.byte(at: offset) == 0 {
            offset += 1
            properties = .empty(at: offset)
        } else {
            (properties, alias) = try decodeProperties(
                ByteRange(offset: offset, count: body.end - offset), bytes, sender)
            offset = properties.range.end
        }

        let topic: TopicOrAlias
        if topicCount > 0 {
            let name = try TopicName(
                checking: ByteRange(offset: topicStart, count: topicCount), in: bytes)
            topic = alias.map { .named(name, alias: $0) } ?? .name(name)
        } else {
            guard let alias else { throw .missingTopic }
            topic = .alias(alias)
        }
        return Publish5(
            delivery: delivery, retain: flags & 0x01 != 0, topic: topic, properties: properties,
            payload: ByteRange(offset: offset, count: body.end - offset))
    }

    @inline(never)
    private static func decodeProperties(
        _ rest: ByteRange, _ bytes: RawSpan, _ sender: PacketSender
    ) throws(PacketFault) -> (Properties, TopicAlias?) {
        var reader = FieldReader5(rest)
        var alias: TopicAlias?
        let properties = try Properties.decode(&reader, bytes, in: .publish(sender)) { property in
            if case .topicAlias(let value) = property { alias = value }
        }
        return (properties, alias)
    }
}
