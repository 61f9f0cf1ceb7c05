/// Appends encoded properties to a byte array, which then is the range of ``Properties`` or a part
/// of it. Packets say whether a property may stand in them when they are decoded, not here.
public enum PropertyEncoder {
    /// Encodes a property whose text or data is a range of `source`.
    public static func append(
        _ property: Property, fieldsIn source: UnsafeRawBufferPointer, to output: inout [UInt8]
    ) {
        output.append(property.identifier.rawValue)
        switch property {
        case .payloadFormatIndicator(let format): output.append(format.rawValue)
        case .messageExpiryInterval(let value), .sessionExpiryInterval(let value),
            .willDelayInterval(let value):
            append(long: value, to: &output)
        case .maximumPacketSize(let value):
            precondition(value != 0, "maximum packet size 0")
            append(long: value, to: &output)
        case .contentType(let field), .responseTopic(let field), .correlationData(let field),
            .assignedClientIdentifier(let field), .authenticationMethod(let field),
            .authenticationData(let field), .responseInformation(let field),
            .serverReference(let field), .reasonString(let field):
            append(field: source[field], to: &output)
        case .subscriptionIdentifier(let identifier):
            VariableByteInteger.append(Int(identifier.rawValue), to: &output)
        case .serverKeepAlive(let value), .topicAliasMaximum(let value):
            append(integer: value, to: &output)
        case .receiveMaximum(let value):
            precondition(value != 0, "receive maximum 0")
            append(integer: value, to: &output)
        case .topicAlias(let alias): append(integer: alias.rawValue, to: &output)
        case .maximumQoS(let qos):
            precondition(qos != .exactlyOnce, "maximum QoS 2 is said by leaving it out")
            output.append(qos.rawValue)
        case .requestProblemInformation(let flag), .requestResponseInformation(let flag),
            .retainAvailable(let flag), .wildcardSubscriptionAvailable(let flag),
            .subscriptionIdentifiersAvailable(let flag), .sharedSubscriptionAvailable(let flag):
            output.append(flag ? 1 : 0)
        case .userProperty(let pair):
            append(field: source[pair.name], to: &output)
            append(field: source[pair.value], to: &output)
        }
    }

    /// Appends a property of text or data, which has at most 65,535 bytes.
    public static func append(
        _ make: (ByteRange) -> Property, _ field: UnsafeRawBufferPointer, to output: inout [UInt8]
    ) {
        append(make(ByteRange(offset: 0, count: field.count)), fieldsIn: field, to: &output)
    }

    static func append(field: UnsafeRawBufferPointer, to output: inout [UInt8]) {
        precondition(field.count <= 65_535, "a field of \(field.count) bytes")
        append(integer: UInt16(field.count), to: &output)
        output.append(contentsOf: field)
    }

    static func append(integer: UInt16, to output: inout [UInt8]) {
        output.append(UInt8(integer >> 8))
        output.append(UInt8(integer & 0xFF))
    }

    private static func append(long: UInt32, to output: inout [UInt8]) {
        append(integer: UInt16(long >> 16), to: &output)
        append(integer: UInt16(long & 0xFFFF), to: &output)
    }
}
