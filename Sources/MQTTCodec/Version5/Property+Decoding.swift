extension Property {
    /// Reads a property whose identifier was read; checks its place among the bytes and its
    /// number, not its text.
    static func decode(
        _ identifier: PropertyIdentifier, _ reader: inout FieldReader5, _ bytes: RawSpan
    ) throws(PacketFault) -> Property {
        do throws(PacketFault) {
            return try value(identifier, &reader, bytes)
        } catch {
            // What ends too early ends before the end of the properties.
            throw error == .truncated ? .truncatedProperty(identifier) : error
        }
    }

    private static func value(
        _ identifier: PropertyIdentifier, _ reader: inout FieldReader5, _ bytes: RawSpan
    ) throws(PacketFault) -> Property {
        switch identifier {
        case .payloadFormatIndicator:
            guard let format = PayloadFormat(rawValue: try reader.byte(bytes)) else {
                throw .propertyValue(identifier)
            }
            return .payloadFormatIndicator(format)
        case .messageExpiryInterval:
            return .messageExpiryInterval(try reader.longInteger(bytes))
        case .contentType: return .contentType(try reader.data(bytes))
        case .responseTopic: return .responseTopic(try reader.data(bytes))
        case .correlationData: return .correlationData(try reader.data(bytes))
        case .subscriptionIdentifier:
            let value = UInt32(truncatingIfNeeded: try reader.variableByteInteger(bytes))
            guard let identifier = SubscriptionIdentifier(value) else {
                throw .propertyValue(identifier)
            }
            return .subscriptionIdentifier(identifier)
        case .sessionExpiryInterval:
            return .sessionExpiryInterval(try reader.longInteger(bytes))
        case .assignedClientIdentifier:
            return .assignedClientIdentifier(try reader.data(bytes))
        case .serverKeepAlive: return .serverKeepAlive(try reader.integer(bytes))
        case .authenticationMethod: return .authenticationMethod(try reader.data(bytes))
        case .authenticationData: return .authenticationData(try reader.data(bytes))
        case .requestProblemInformation:
            return .requestProblemInformation(try flag(identifier, &reader, bytes))
        case .willDelayInterval: return .willDelayInterval(try reader.longInteger(bytes))
        case .requestResponseInformation:
            return .requestResponseInformation(try flag(identifier, &reader, bytes))
        case .responseInformation: return .responseInformation(try reader.data(bytes))
        case .serverReference: return .serverReference(try reader.data(bytes))
        case .reasonString: return .reasonString(try reader.data(bytes))
        case .receiveMaximum:
            let value = try reader.integer(bytes)
            guard value != 0 else { throw .propertyValue(identifier) }
            return .receiveMaximum(value)
        case .topicAliasMaximum: return .topicAliasMaximum(try reader.integer(bytes))
        case .topicAlias:
            guard let alias = TopicAlias(try reader.integer(bytes)) else {
                throw .zeroTopicAlias
            }
            return .topicAlias(alias)
        case .maximumQoS:
            return .maximumQoS(
                try flag(identifier, &reader, bytes) ? .atLeastOnce : .atMostOnce)
        case .retainAvailable: return .retainAvailable(try flag(identifier, &reader, bytes))
        case .userProperty:
            return .userProperty(
                UserProperty(name: try reader.data(bytes), value: try reader.data(bytes)))
        case .maximumPacketSize:
            let value = try reader.longInteger(bytes)
            guard value != 0 else { throw .propertyValue(identifier) }
            return .maximumPacketSize(value)
        case .wildcardSubscriptionAvailable:
            return .wildcardSubscriptionAvailable(try flag(identifier, &reader, bytes))
        case .subscriptionIdentifiersAvailable:
            return .subscriptionIdentifiersAvailable(try flag(identifier, &reader, bytes))
        case .sharedSubscriptionAvailable:
            return .sharedSubscriptionAvailable(try flag(identifier, &reader, bytes))
        }
    }

    private static func flag(
        _ identifier: PropertyIdentifier, _ reader: inout FieldReader5, _ bytes: RawSpan
    ) throws(PacketFault) -> Bool {
        switch try reader.byte(bytes) {
        case 0: return false
        case 1: return true
        default: throw .propertyValue(identifier)
        }
    }

    /// Checks the text of a property.
    func checkText(_ bytes: RawSpan) throws(PacketFault) {
        switch self {
        case .contentType(let text), .assignedClientIdentifier(let text),
            .authenticationMethod(let text), .responseInformation(let text),
            .serverReference(let text), .reasonString(let text):
            try PacketFault.checkString(bytes, text)
        case .responseTopic(let topic): try Self.checkResponseTopic(bytes, topic)
        case .userProperty(let pair):
            do throws(MalformedPacket) {
                // [MQTT-1.5.7-1]
                try TextValidation.checkString(bytes, pair.name)
                try TextValidation.checkString(bytes, pair.value)
            } catch {
                throw .illFormedStringPair
            }
        case .payloadFormatIndicator, .messageExpiryInterval, .correlationData,
            .subscriptionIdentifier, .sessionExpiryInterval, .serverKeepAlive,
            .authenticationData, .requestProblemInformation, .willDelayInterval,
            .requestResponseInformation, .receiveMaximum, .topicAliasMaximum, .topicAlias,
            .maximumQoS, .retainAvailable, .maximumPacketSize, .wildcardSubscriptionAvailable,
            .subscriptionIdentifiersAvailable, .sharedSubscriptionAvailable:
            break
        }
    }

    private static func checkResponseTopic(
        _ bytes: RawSpan, _ topic: ByteRange
    ) throws(PacketFault) {
        do throws(MalformedPacket) {
            try TextValidation.checkTopicName(bytes, topic)
        } catch {
            switch error {
            case .emptyTopic: throw .emptyResponseTopic
            case .wildcardInTopicName: throw .wildcardInResponseTopic
            default: throw PacketFault(text: error)
            }
        }
    }
}
