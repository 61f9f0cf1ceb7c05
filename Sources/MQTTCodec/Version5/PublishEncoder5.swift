/// The properties of one PUBLISH that belong to this hop: the sender chooses them for each
/// receiver.
public struct PublishHop {
    /// Seconds that are left, at least 1 [MQTT-3.3.2-6]; `nil` for a message that does not expire.
    public var messageExpiryInterval: UInt32?
    /// At most the receiver's topic alias maximum [MQTT-3.3.2-11].
    public var topicAlias: TopicAlias?
    /// Identifiers of all the receiver's subscriptions that match [MQTT-3.3.4-4]. None in a
    /// client's PUBLISH [MQTT-3.3.4-6].
    public var subscriptionIdentifiers: UnsafeBufferPointer<SubscriptionIdentifier>

    public init(
        messageExpiryInterval: UInt32? = nil, topicAlias: TopicAlias? = nil,
        subscriptionIdentifiers: UnsafeBufferPointer<SubscriptionIdentifier> =
            UnsafeBufferPointer(start: nil, count: 0)
    ) {
        self.messageExpiryInterval = messageExpiryInterval
        self.topicAlias = topicAlias
        self.subscriptionIdentifiers = subscriptionIdentifiers
    }

    /// Bytes of these properties.
    var count: Int {
        var count = (messageExpiryInterval == nil ? 0 : 5) + (topicAlias == nil ? 0 : 3)
        for identifier in subscriptionIdentifiers {
            count += 1 + VariableByteInteger.encodedSize(of: Int(identifier.rawValue))
        }
        return count
    }
}

/// The sizes of an MQTT 5.0 PUBLISH, before a byte of it is written.
///
/// Layout: fixed header, topic, packet identifier, property length, properties of this hop,
/// forwarded properties, payload. Copies of one message that differ in DUP, packet identifier and
/// remaining expiry alone are patched at the offsets given here.
public struct PublishLayout5: Hashable, Sendable, BitwiseCopyable {
    /// Bytes of the whole packet, as the receiver's Maximum Packet Size counts them
    /// [MQTT-3.1.2-24].
    public let count: Int
    /// Bytes before the payload.
    public let headerCount: Int
    public let topicCount: Int
    /// Without the property length.
    public let propertyCount: Int
    let remainingLength: Int
    let hasPacketIdentifier: Bool

    /// `nil` for a packet beyond what any receiver could take, 268,435,455 bytes behind the fixed
    /// header. `topicCount` is 0 where a topic alias stands for the topic.
    public init?(
        topicCount: Int, payloadCount: Int, qos: QoS, hop: PublishHop = PublishHop(),
        forwardedCount: Int = 0
    ) {
        propertyCount = hop.count + forwardedCount
        guard propertyCount <= VariableByteInteger.maximumValue else { return nil }
        self.topicCount = topicCount
        hasPacketIdentifier = qos != .atMostOnce
        let header =
            2 + topicCount + (hasPacketIdentifier ? 2 : 0)
            + VariableByteInteger.encodedSize(of: propertyCount) + propertyCount
        remainingLength = header + payloadCount
        guard remainingLength <= VariableByteInteger.maximumValue else { return nil }
        headerCount = 1 + VariableByteInteger.encodedSize(of: remainingLength) + header
        count = headerCount + payloadCount
    }

    /// Where the packet identifier stands; meaningless for QoS 0, which has none.
    public var packetIdentifierOffset: Int {
        1 + VariableByteInteger.encodedSize(of: remainingLength) + 2 + topicCount
    }

    /// Where the seconds of the message expiry interval stand, if the packet has any: they are the
    /// first property.
    public var messageExpiryOffset: Int {
        packetIdentifierOffset + (hasPacketIdentifier ? 2 : 0)
            + VariableByteInteger.encodedSize(of: propertyCount) + 1
    }
}

/// Encodes PUBLISH of MQTT 5.0 directly into the memory that it is sent from. Other packets use
/// ``PacketEncoder5``.
public enum PublishEncoder5 {
    /// Writes the bytes before the payload, ``PublishLayout5/headerCount`` of them; `layout` was
    /// made from the same topic, QoS, hop and forwarded properties.
    ///
    /// `packetIdentifier` is written for QoS 1 and 2 and ignored for QoS 0. `topic` is empty where
    /// the hop's topic alias stands for it. `forwardedSource` holds the forwarded properties.
    public static func writeHeader(
        _ layout: PublishLayout5, to destination: UnsafeMutableRawPointer,
        topic: UnsafeRawBufferPointer, qos: QoS, retain: Bool, isDuplicate: Bool,
        packetIdentifier: UInt16, hop: PublishHop, forwarded: ForwardedProperties?,
        forwardedSource: UnsafeRawBufferPointer
    ) {
        destination.storeBytes(
            of: PublishEncoder.firstByte(qos: qos, retain: retain, isDuplicate: isDuplicate),
            as: UInt8.self)
        var next = destination + 1
        next += VariableByteInteger.store(layout.remainingLength, to: next)
        PublishEncoder.storeInteger(UInt16(truncatingIfNeeded: topic.count), to: next)
        next += 2
        if let base = topic.baseAddress { next.copyMemory(from: base, byteCount: topic.count) }
        next += topic.count
        if qos != .atMostOnce {
            PublishEncoder.storeInteger(packetIdentifier, to: next)
            next += 2
        }
        next += VariableByteInteger.store(layout.propertyCount, to: next)
        guard layout.propertyCount > 0 else { return }
        next = write(hop, to: next)
        if let forwarded {
            forwarded.copy(to: next, from: forwardedSource)
            next += forwarded.count
        }
        precondition(
            next - destination == layout.headerCount,
            "a PUBLISH header of \(next - destination) bytes, laid out as \(layout.headerCount)")
    }

    /// Writes the seconds that are left over those of an encoded packet, at
    /// ``PublishLayout5/messageExpiryOffset``.
    public static func storeExpiry(_ seconds: UInt32, to destination: UnsafeMutableRawPointer) {
        destination.storeBytes(of: seconds.bigEndian, as: UInt32.self)
    }

    private static func write(
        _ hop: PublishHop, to destination: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        var next = destination
        if let seconds = hop.messageExpiryInterval {
            next = write(.messageExpiryInterval, to: next)
            storeExpiry(seconds, to: next)
            next += 4
        }
        if let alias = hop.topicAlias {
            next = write(.topicAlias, to: next)
            PublishEncoder.storeInteger(alias.rawValue, to: next)
            next += 2
        }
        for identifier in hop.subscriptionIdentifiers {
            next = write(.subscriptionIdentifier, to: next)
            next += VariableByteInteger.store(Int(identifier.rawValue), to: next)
        }
        return next
    }

    private static func write(
        _ identifier: PropertyIdentifier, to destination: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        destination.storeBytes(of: identifier.rawValue, as: UInt8.self)
        return destination + 1
    }
}
