/// PUBACK, PUBREC, PUBREL or PUBCOMP of MQTT 5.0 (sections 3.4 to 3.7).
///
/// Without a reason code it is a success, and without a property length it has no properties.
public struct Acknowledgement5: Hashable, Sendable, BitwiseCopyable {
    public var packetIdentifier: PacketIdentifier
    public var code: ReasonCode
    public var properties: Properties

    public init(
        _ packetIdentifier: PacketIdentifier, _ code: ReasonCode = .success,
        properties: Properties = .none
    ) {
        self.packetIdentifier = packetIdentifier
        self.code = code
        self.properties = properties
    }

    static func decode(
        _ type: PacketType5, _ body: ByteRange, _ bytes: RawSpan, from sender: PacketSender
    ) throws(PacketFault) -> Acknowledgement5 {
        var reader = FieldReader5(body)
        var packet = Acknowledgement5(
            try reader.packetIdentifier(bytes), properties: .empty(at: body.end))
        guard !reader.isAtEnd else { return packet }
        packet.code = try ReasonCode.decode(try reader.byte(bytes), in: type, from: sender)
        guard !reader.isAtEnd else { return packet }
        packet.properties = try Properties.decode(&reader, bytes, in: .acknowledgement) { _ in }
        try reader.finish()
        return packet
    }
}

/// SUBACK or UNSUBACK of MQTT 5.0: answers each topic filter of a request, in its order (sections
/// 3.9 and 3.11).
public struct FilterAnswers5: Hashable, Sendable {
    public var packetIdentifier: PacketIdentifier
    public var properties: Properties
    /// One byte per topic filter, each a ``ReasonCode`` of the packet's table [MQTT-3.9.3-2]
    /// [MQTT-3.11.3-2].
    public var codes: ByteRange

    public init(
        packetIdentifier: PacketIdentifier, properties: Properties = .none, codes: ByteRange
    ) {
        self.packetIdentifier = packetIdentifier
        self.properties = properties
        self.codes = codes
    }

    static func decode(
        _ type: PacketType5, _ body: ByteRange, _ bytes: RawSpan
    ) throws(PacketFault) -> FilterAnswers5 {
        var reader = FieldReader5(body)
        let identifier = try reader.packetIdentifier(bytes)
        let properties = try Properties.decode(&reader, bytes, in: .acknowledgement) { _ in }
        let codes = reader.rest()
        // A request has one filter at least, and so has its answer.
        guard !codes.isEmpty else { throw .truncated }
        for offset in codes.start..<codes.end {
            _ = try ReasonCode.decode(bytes.byte(at: offset), in: type, from: .server)
        }
        return FilterAnswers5(
            packetIdentifier: identifier, properties: properties, codes: codes)
    }
}
