import MQTTCodec

extension PacketContent5 {
    /// The side that sends such a packet; either where both do.
    package var sender: PacketSender {
        switch self {
        case .connect, .subscribe, .unsubscribe, .pingreq: .client
        case .connack, .suback, .unsuback, .pingresp: .server
        case .publish(let publish):
            publish.properties.contains { $0.identifier == .subscriptionIdentifier }
                ? .server : .client
        case .puback, .pubrec, .pubrel, .pubcomp: .client
        case .disconnect(let code, let properties):
            code.isAllowed(in: .disconnect, from: .client)
                && !properties.contains { $0.identifier == .serverReference } ? .client : .server
        case .auth(let code, _):
            code.isAllowed(in: .auth, from: .client) ? .client : .server
        }
    }

    /// The packet on the wire, written by ``PacketEncoder5``.
    ///
    /// Throws for a topic or properties that no packet of this type may carry.
    package func encoded() throws(PacketFault) -> [UInt8] {
        var source: [UInt8] = []
        let packet = try packet(&source)
        var output: [UInt8] = []
        source.withUnsafeBytes { PacketEncoder5.append(packet, fieldsIn: $0, to: &output) }
        return output
    }

    /// The packet with its fields in `source`.
    package func packet(_ source: inout [UInt8]) throws(PacketFault) -> ControlPacket5 {
        switch self {
        case .connect(let connect): return .connect(try connect.packet(&source))
        case .connack(let sessionPresent, let code, let properties):
            let added = try source.add(properties, .connack)
            return .connack(
                code == .success
                    ? .accepted(sessionPresent: sessionPresent, properties: added)
                    : .refused(code, properties: added))
        case .publish(let publish): return .publish(try publish.packet(&source, sender))
        case .puback(let identifier, let code, let properties):
            return .puback(try Self.answer(identifier, code, properties, &source))
        case .pubrec(let identifier, let code, let properties):
            return .pubrec(try Self.answer(identifier, code, properties, &source))
        case .pubrel(let identifier, let code, let properties):
            return .pubrel(try Self.answer(identifier, code, properties, &source))
        case .pubcomp(let identifier, let code, let properties):
            return .pubcomp(try Self.answer(identifier, code, properties, &source))
        case .subscribe(let identifier, let properties, let requests):
            var payload: [UInt8] = []
            for request in requests {
                payload += Self.field(request.filter) + [request.options.encoded]
            }
            return .subscribe(
                Subscribe5(
                    packetIdentifier: identifier,
                    properties: try source.add(properties, .subscribe),
                    count: requests.count, encodedRequests: source.add(payload)))
        case .suback(let identifier, let properties, let codes):
            return .suback(try Self.answers(identifier, properties, codes, &source))
        case .unsubscribe(let identifier, let properties, let filters):
            let payload = filters.flatMap { Self.field($0) }
            return .unsubscribe(
                Unsubscribe5(
                    packetIdentifier: identifier,
                    properties: try source.add(properties, .unsubscribe), count: filters.count,
                    encodedFilters: source.add(payload)))
        case .unsuback(let identifier, let properties, let codes):
            return .unsuback(try Self.answers(identifier, properties, codes, &source))
        case .pingreq: return .pingreq
        case .pingresp: return .pingresp
        case .disconnect(let code, let properties):
            return .disconnect(
                Disconnect5(code, properties: try source.add(properties, .disconnect(sender))))
        case .auth(let code, let properties):
            return .auth(Auth5(code, properties: try source.add(properties, .auth)))
        }
    }

    private static func answer(
        _ identifier: PacketIdentifier, _ code: ReasonCode, _ properties: [PropertyContent],
        _ source: inout [UInt8]
    ) throws(PacketFault) -> Acknowledgement5 {
        Acknowledgement5(
            identifier, code, properties: try source.add(properties, .acknowledgement))
    }

    private static func answers(
        _ identifier: PacketIdentifier, _ properties: [PropertyContent], _ codes: [ReasonCode],
        _ source: inout [UInt8]
    ) throws(PacketFault) -> FilterAnswers5 {
        FilterAnswers5(
            packetIdentifier: identifier, properties: try source.add(properties, .acknowledgement),
            codes: source.add(codes.map(\.rawValue)))
    }

    /// A two-byte length and the bytes.
    private static func field(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
    }
}

extension PacketContent5.Publish {
    fileprivate func packet(
        _ source: inout [UInt8], _ sender: PacketSender
    ) throws(PacketFault) -> Publish5 {
        let added = try source.add(properties, .publish(sender))
        var alias: TopicAlias?
        if case .topicAlias(let value)? = added.first(.topicAlias, in: source.span.bytes) {
            alias = value
        }
        var topicName: TopicName?
        if alias == nil || !topic.isEmpty { topicName = try source.addTopicName(topic) }
        let publishTopic: TopicOrAlias
        switch (topicName, alias) {
        case (let name?, nil): publishTopic = .name(name)
        case (let name?, let alias?): publishTopic = .named(name, alias: alias)
        case (nil, let alias?): publishTopic = .alias(alias)
        case (nil, nil): throw .missingTopic
        }
        return Publish5(
            delivery: delivery, retain: retain, topic: publishTopic, properties: added,
            payload: source.add(payload))
    }
}

extension PacketContent5.Connect {
    fileprivate func packet(_ source: inout [UInt8]) throws(PacketFault) -> Connect5 {
        let added = try source.add(properties, .connect)
        let identifier = source.add(clientID)
        var packetWill: Connect5.Will?
        if let will {
            packetWill = Connect5.Will(
                topic: try source.addTopicName(will.topic), message: source.add(will.message),
                qos: will.qos, retain: will.retain,
                properties: try source.add(will.properties, .will))
        }
        return Connect5(
            cleanStart: cleanStart, keepAlive: keepAlive, properties: added, clientID: identifier,
            will: packetWill, userName: userName.map { source.add($0) },
            password: password.map { source.add($0) })
    }
}

extension [UInt8] {
    fileprivate mutating func add(_ field: [UInt8]) -> ByteRange {
        append(contentsOf: field)
        return ByteRange(offset: count - field.count, count: field.count)
    }

    fileprivate mutating func addTopicName(_ field: [UInt8]) throws(PacketFault) -> TopicName {
        let range = add(field)
        do throws(MalformedPacket) {
            return try TopicName(validating: range, in: span.bytes)
        } catch {
            throw error == .emptyTopic ? .missingTopic : .wildcardInTopicName
        }
    }

    fileprivate mutating func add(
        _ properties: [PropertyContent], _ place: PropertyPlace
    ) throws(PacketFault) -> Properties {
        var encoded: [UInt8] = []
        for content in properties {
            var fields: [UInt8] = []
            let property = content.property(&fields)
            fields.withUnsafeBytes {
                PropertyEncoder.append(property, fieldsIn: $0, to: &encoded)
            }
        }
        let range = add(encoded)
        return try Properties(checking: range, in: span.bytes, for: place)
    }
}
