/// Appends encoded packets to a byte array. The broker's packet path uses ``PublishEncoder`` and
/// ``fourBytes(_:_:)`` instead, which write in place.
public enum PacketEncoder {
    /// A whole PUBACK, PUBREC, PUBREL, PUBCOMP or UNSUBACK, as a little-endian word.
    public static func fourBytes(_ type: PacketType, _ identifier: PacketIdentifier) -> UInt32 {
        UInt32(type.firstByte) | 2 << 8 | UInt32(identifier.rawValue >> 8) << 16
            | UInt32(identifier.rawValue & 0xFF) << 24
    }

    /// A whole CONNACK, as a little-endian word.
    public static func fourBytes(_ connack: Connack) -> UInt32 {
        UInt32(PacketType.connack.firstByte) | 2 << 8 | (connack.sessionPresent ? 1 << 16 : 0)
            | UInt32(connack.returnCode.rawValue) << 24
    }

    /// Encodes a packet whose fields are ranges of `source`.
    public static func append(
        _ packet: ControlPacket, fieldsIn source: UnsafeRawBufferPointer, to output: inout [UInt8]
    ) {
        switch packet {
        case .connect(let connect): append(connect, source, to: &output)
        case .connack(let connack):
            append(word: fourBytes(connack), to: &output)
        case .publish(let publish): append(publish, source, to: &output)
        case .puback(let identifier), .pubrec(let identifier), .pubrel(let identifier),
            .pubcomp(let identifier), .unsuback(let identifier):
            append(word: fourBytes(packet.type, identifier), to: &output)
        case .subscribe(let subscribe):
            append(
                .subscribe, subscribe.packetIdentifier, source[subscribe.encodedRequests],
                to: &output)
        case .suback(let suback):
            append(.suback, suback.packetIdentifier, source[suback.returnCodes], to: &output)
        case .unsubscribe(let unsubscribe):
            append(
                .unsubscribe, unsubscribe.packetIdentifier, source[unsubscribe.encodedFilters],
                to: &output)
        case .pingreq, .pingresp, .disconnect:
            output.append(packet.type.firstByte)
            output.append(0)
        }
    }

    /// Appends SUBSCRIBE, SUBACK or UNSUBSCRIBE: a packet identifier and a payload that is already
    /// encoded.
    public static func append(
        _ type: PacketType, _ identifier: PacketIdentifier, _ payload: UnsafeRawBufferPointer,
        to output: inout [UInt8]
    ) {
        appendHeader(type, identifier, payloadCount: payload.count, to: &output)
        output.append(contentsOf: payload)
    }

    /// Appends the fixed header and the packet identifier; the caller appends the `payloadCount`
    /// bytes that follow.
    public static func appendHeader(
        _ type: PacketType, _ identifier: PacketIdentifier, payloadCount: Int,
        to output: inout [UInt8]
    ) {
        output.append(type.firstByte)
        append(remainingLength: 2 + payloadCount, to: &output)
        append(integer: identifier.rawValue, to: &output)
    }

    /// Appends one request to the payload of a SUBSCRIBE.
    public static func appendRequest(
        filter: [UInt8], qos: QoS, to payload: inout [UInt8]
    ) {
        filter.withUnsafeBytes { append(string: $0, to: &payload) }
        payload.append(qos.rawValue)
    }

    /// Appends one topic filter to the payload of an UNSUBSCRIBE.
    public static func appendFilter(_ filter: [UInt8], to payload: inout [UInt8]) {
        filter.withUnsafeBytes { append(string: $0, to: &payload) }
    }

    private static func append(
        _ publish: Publish, _ source: UnsafeRawBufferPointer, to output: inout [UInt8]
    ) {
        let identifier: UInt16
        let duplicate: Bool
        switch publish.delivery {
        case .atMostOnce: (identifier, duplicate) = (0, false)
        case .atLeastOnce(let value, let isDuplicate), .exactlyOnce(let value, let isDuplicate):
            (identifier, duplicate) = (value.rawValue, isDuplicate)
        }
        let topic = source[publish.topic.range]
        let payload = source[publish.payload]
        let start = output.count
        let headerSize = PublishEncoder.headerSize(
            topicCount: topic.count, payloadCount: payload.count, qos: publish.delivery.qos)
        output.append(contentsOf: repeatElement(0, count: headerSize))
        output.withUnsafeMutableBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            PublishEncoder.writeHeader(
                to: base + start, topic: topic, payloadCount: payload.count,
                qos: publish.delivery.qos, retain: publish.retain, isDuplicate: duplicate,
                packetIdentifier: identifier)
        }
        output.append(contentsOf: payload)
    }

    private static func append(
        _ connect: Connect, _ source: UnsafeRawBufferPointer, to output: inout [UInt8]
    ) {
        var body: [UInt8] = []
        let name: StaticString = connect.version == .v3_1 ? "MQIsdp" : "MQTT"
        append(
            string: UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount),
            to: &body)
        body.append(connect.version.rawValue)
        var flags: UInt8 = connect.cleanSession ? 0x02 : 0
        if let will = connect.will {
            flags |= 0x04 | will.qos.rawValue << 3 | (will.retain ? 0x20 : 0)
        }
        if connect.userName != nil { flags |= 0x80 }
        if connect.password != nil { flags |= 0x40 }
        body.append(flags)
        append(integer: connect.keepAlive, to: &body)
        append(string: source[connect.clientID], to: &body)
        if let will = connect.will {
            append(string: source[will.topic.range], to: &body)
            append(string: source[will.message], to: &body)
        }
        if let userName = connect.userName { append(string: source[userName], to: &body) }
        if let password = connect.password { append(string: source[password], to: &body) }
        output.append(PacketType.connect.firstByte)
        append(remainingLength: body.count, to: &output)
        output.append(contentsOf: body)
    }

    private static func append(word: UInt32, to output: inout [UInt8]) {
        withUnsafeBytes(of: word.littleEndian) { output.append(contentsOf: $0) }
    }

    private static func append(integer: UInt16, to output: inout [UInt8]) {
        output.append(UInt8(integer >> 8))
        output.append(UInt8(integer & 0xFF))
    }

    private static func append(string: UnsafeRawBufferPointer, to output: inout [UInt8]) {
        append(integer: UInt16(string.count), to: &output)
        output.append(contentsOf: string)
    }

    private static func append(remainingLength: Int, to output: inout [UInt8]) {
        precondition(remainingLength <= RemainingLength.maximumValue)
        var rest = remainingLength
        while rest >= 128 {
            output.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        output.append(UInt8(rest))
    }
}
