import MQTTCodec

/// A property of MQTT 5.0 by its content.
package enum PropertyContent: Hashable, Sendable, CustomStringConvertible {
    /// A number of any size, or a flag.
    case number(PropertyIdentifier, UInt32)
    /// Text or data.
    case field(PropertyIdentifier, [UInt8])
    case pair([UInt8], [UInt8])

    package static func text(_ identifier: PropertyIdentifier, _ text: String) -> Self {
        .field(identifier, Array(text.utf8))
    }

    package static func user(_ name: String, _ value: String) -> Self {
        .pair(Array(name.utf8), Array(value.utf8))
    }

    package var identifier: PropertyIdentifier {
        switch self {
        case .number(let identifier, _), .field(let identifier, _): identifier
        case .pair: .userProperty
        }
    }

    /// `02=60` for a number, `03=6162` for text and data, `26=61:62` for a pair; all but numbers in
    /// hexadecimal.
    package var description: String {
        let name = PacketContent5.hex([identifier.rawValue])
        return switch self {
        case .number(_, let number): "\(name)=\(number)"
        case .field(_, let field): "\(name)=\(PacketContent5.hex(field))"
        case .pair(let left, let right):
            "\(name)=\(PacketContent5.hex(left)):\(PacketContent5.hex(right))"
        }
    }

    /// All properties, read with the cursor.
    package static func all(_ properties: Properties, in bytes: [UInt8]) -> [PropertyContent] {
        read(properties.cursor, in: bytes)
    }

    package static func read(_ cursor: PropertyCursor, in bytes: [UInt8]) -> [PropertyContent] {
        var cursor = cursor
        var contents: [PropertyContent] = []
        while let property = cursor.next(in: bytes.span.bytes) {
            contents.append(PropertyContent(property, in: bytes))
        }
        return contents
    }

    package init(_ property: Property, in bytes: [UInt8]) {
        func field(_ range: ByteRange) -> [UInt8] { Array(bytes[range.start..<range.end]) }
        let identifier = property.identifier
        switch property {
        case .payloadFormatIndicator(let format):
            self = .number(identifier, UInt32(format.rawValue))
        case .messageExpiryInterval(let value), .sessionExpiryInterval(let value),
            .willDelayInterval(let value), .maximumPacketSize(let value):
            self = .number(identifier, value)
        case .contentType(let range), .responseTopic(let range), .correlationData(let range),
            .assignedClientIdentifier(let range), .authenticationMethod(let range),
            .authenticationData(let range), .responseInformation(let range),
            .serverReference(let range), .reasonString(let range):
            self = .field(identifier, field(range))
        case .subscriptionIdentifier(let value): self = .number(identifier, value.rawValue)
        case .serverKeepAlive(let value), .receiveMaximum(let value),
            .topicAliasMaximum(let value):
            self = .number(identifier, UInt32(value))
        case .topicAlias(let alias): self = .number(identifier, UInt32(alias.rawValue))
        case .maximumQoS(let qos): self = .number(identifier, UInt32(qos.rawValue))
        case .requestProblemInformation(let flag), .requestResponseInformation(let flag),
            .retainAvailable(let flag), .wildcardSubscriptionAvailable(let flag),
            .subscriptionIdentifiersAvailable(let flag), .sharedSubscriptionAvailable(let flag):
            self = .number(identifier, flag ? 1 : 0)
        case .userProperty(let pair): self = .pair(field(pair.name), field(pair.value))
        }
    }

    /// The property with its fields in `source`; traps on a number that it may not have, which is
    /// a mistake in the test.
    func property(_ source: inout [UInt8]) -> Property {
        func add(_ field: [UInt8]) -> ByteRange {
            source += field
            return ByteRange(offset: source.count - field.count, count: field.count)
        }
        switch self {
        case .pair(let name, let value):
            return .userProperty(UserProperty(name: add(name), value: add(value)))
        case .field(let identifier, let field):
            guard let property = Self.property(identifier, add(field)) else {
                preconditionFailure("\(identifier) has no text")
            }
            return property
        case .number(let identifier, let number):
            guard let property = Self.property(identifier, number) else {
                preconditionFailure("\(identifier) is never \(number)")
            }
            return property
        }
    }

    private static func property(
        _ identifier: PropertyIdentifier, _ field: ByteRange
    ) -> Property? {
        switch identifier {
        case .contentType: .contentType(field)
        case .responseTopic: .responseTopic(field)
        case .correlationData: .correlationData(field)
        case .assignedClientIdentifier: .assignedClientIdentifier(field)
        case .authenticationMethod: .authenticationMethod(field)
        case .authenticationData: .authenticationData(field)
        case .responseInformation: .responseInformation(field)
        case .serverReference: .serverReference(field)
        case .reasonString: .reasonString(field)
        default: nil
        }
    }

    private static func property(
        _ identifier: PropertyIdentifier, _ number: UInt32
    ) -> Property? {
        switch identifier {
        case .payloadFormatIndicator:
            PayloadFormat(rawValue: UInt8(number)).map { .payloadFormatIndicator($0) }
        case .messageExpiryInterval: .messageExpiryInterval(number)
        case .sessionExpiryInterval: .sessionExpiryInterval(number)
        case .willDelayInterval: .willDelayInterval(number)
        case .maximumPacketSize: .maximumPacketSize(number)
        case .subscriptionIdentifier:
            SubscriptionIdentifier(number).map { .subscriptionIdentifier($0) }
        case .serverKeepAlive: .serverKeepAlive(UInt16(number))
        case .receiveMaximum: .receiveMaximum(UInt16(number))
        case .topicAliasMaximum: .topicAliasMaximum(UInt16(number))
        case .topicAlias: TopicAlias(UInt16(number)).map { .topicAlias($0) }
        case .maximumQoS: QoS(rawValue: UInt8(number)).map { .maximumQoS($0) }
        case .requestProblemInformation: .requestProblemInformation(number == 1)
        case .requestResponseInformation: .requestResponseInformation(number == 1)
        case .retainAvailable: .retainAvailable(number == 1)
        case .wildcardSubscriptionAvailable: .wildcardSubscriptionAvailable(number == 1)
        case .subscriptionIdentifiersAvailable: .subscriptionIdentifiersAvailable(number == 1)
        case .sharedSubscriptionAvailable: .sharedSubscriptionAvailable(number == 1)
        default: nil
        }
    }
}
