/// DISCONNECT of MQTT 5.0: the last packet of either side (section 3.14).
///
/// Without a reason code it is a normal disconnection, and without a property length it has no
/// properties.
public struct Disconnect5: Hashable, Sendable, BitwiseCopyable {
    public var code: ReasonCode
    public var properties: Properties

    public init(_ code: ReasonCode = .success, properties: Properties = .none) {
        self.code = code
        self.properties = properties
    }

    static func decode(
        _ body: ByteRange, _ bytes: RawSpan, from sender: PacketSender
    ) throws(PacketFault) -> Disconnect5 {
        var packet = Disconnect5(properties: .empty(at: body.end))
        var reader = FieldReader5(body)
        guard !reader.isAtEnd else { return packet }
        packet.code = try ReasonCode.decode(
            try reader.byte(bytes), in: .disconnect, from: sender)
        guard !reader.isAtEnd else { return packet }
        packet.properties = try Properties.decode(
            &reader, bytes, in: .disconnect(sender)
        ) { _ in }
        try reader.finish()
        return packet
    }
}

/// AUTH of MQTT 5.0: a step of enhanced authentication (section 3.15).
public struct Auth5: Hashable, Sendable, BitwiseCopyable {
    public var code: ReasonCode
    /// `nil` only in the short form, which is a success without properties.
    public var method: ByteRange?
    public var data: ByteRange?
    /// All properties, with method and data.
    public var properties: Properties

    public init(
        _ code: ReasonCode = .success, method: ByteRange? = nil, data: ByteRange? = nil,
        properties: Properties = .none
    ) {
        self.code = code
        self.method = method
        self.data = data
        self.properties = properties
    }

    static func decode(
        _ body: ByteRange, _ bytes: RawSpan, from sender: PacketSender
    ) throws(PacketFault) -> Auth5 {
        var reader = FieldReader5(body)
        let byte = reader.isAtEnd ? 0 : try reader.byte(bytes)
        var packet = Auth5(
            try ReasonCode.decode(byte, in: .auth, from: sender),
            properties: .empty(at: body.end))
        guard !body.isEmpty else { return packet }
        packet.properties = try Properties.decode(&reader, bytes, in: .auth) { property in
            switch property {
            case .authenticationMethod(let name): packet.method = name
            case .authenticationData(let value): packet.data = value
            default: break
            }
        }
        guard packet.method != nil else { throw .authWithoutMethod }
        try reader.finish()
        return packet
    }
}
