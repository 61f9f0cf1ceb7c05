import MQTTCodec

extension PacketContent {
    /// The packet on the wire, written by ``PacketEncoder``.
    ///
    /// Throws for a topic name or filter that no packet may carry.
    package func encoded() throws(MalformedPacket) -> [UInt8] {
        var source = FieldSource()
        let packet = try packet(&source)
        var output: [UInt8] = []
        source.bytes.withUnsafeBytes { PacketEncoder.append(packet, fieldsIn: $0, to: &output) }
        return output
    }

    /// Decodes all packets; an incomplete one at the end is ignored.
    package static func decode(
        _ bytes: [UInt8], maximumSize: Int = .max
    ) throws(MalformedPacket) -> [PacketContent] {
        var packets: [PacketContent] = []
        var offset = 0
        while true {
            let framing = try PacketDecoder.frame(
                bytes.span.bytes, at: offset, maximumSize: maximumSize)
            guard case .frame(let frame) = framing else { return packets }
            let packet = try PacketDecoder.decode(frame, bytes.span.bytes)
            packets.append(PacketContent(packet, in: bytes))
            offset = frame.packet.end
        }
    }

    private func packet(_ source: inout FieldSource) throws(MalformedPacket) -> ControlPacket {
        switch self {
        case .connect(let connect): .connect(try connect.packet(&source))
        case .connack(let connack): .connack(connack)
        case .publish(let publish):
            .publish(
                MQTTCodec.Publish(
                    delivery: publish.delivery, retain: publish.retain,
                    topic: try source.addTopicName(publish.topic),
                    payload: source.add(publish.payload)))
        case .puback(let identifier): .puback(identifier)
        case .pubrec(let identifier): .pubrec(identifier)
        case .pubrel(let identifier): .pubrel(identifier)
        case .pubcomp(let identifier): .pubcomp(identifier)
        case .subscribe(let identifier, let requests):
            .subscribe(
                Subscribe(
                    packetIdentifier: identifier, count: requests.count,
                    encodedRequests: source.add(Self.encode(requests))))
        case .suback(let identifier, let codes):
            .suback(Suback(packetIdentifier: identifier, returnCodes: source.add(codes)))
        case .unsubscribe(let identifier, let filters):
            .unsubscribe(
                Unsubscribe(
                    packetIdentifier: identifier, count: filters.count,
                    encodedFilters: source.add(Self.encode(filters))))
        case .unsuback(let identifier): .unsuback(identifier)
        case .pingreq: .pingreq
        case .pingresp: .pingresp
        case .disconnect: .disconnect
        }
    }

    private static func encode(_ requests: [Request]) -> [UInt8] {
        var payload: [UInt8] = []
        for request in requests {
            PacketEncoder.appendRequest(filter: request.filter, qos: request.qos, to: &payload)
        }
        return payload
    }

    private static func encode(_ filters: [[UInt8]]) -> [UInt8] {
        var payload: [UInt8] = []
        for filter in filters { PacketEncoder.appendFilter(filter, to: &payload) }
        return payload
    }
}

extension PacketContent.Connect {
    fileprivate func packet(
        _ source: inout FieldSource
    ) throws(MalformedPacket) -> MQTTCodec.Connect {
        let identifier = source.add(clientID)
        var packetWill: MQTTCodec.Connect.Will?
        if let will {
            packetWill = MQTTCodec.Connect.Will(
                topic: try source.addTopicName(will.topic), message: source.add(will.message),
                qos: will.qos, retain: will.retain)
        }
        return MQTTCodec.Connect(
            version: version, cleanSession: cleanSession, keepAlive: keepAlive,
            clientID: identifier, will: packetWill,
            userName: userName.map { source.add($0) }, password: password.map { source.add($0) })
    }
}

/// Collects fields, so that a packet can refer to them by range.
private struct FieldSource {
    private(set) var bytes: [UInt8] = []

    mutating func add(_ field: [UInt8]) -> ByteRange {
        bytes.append(contentsOf: field)
        return ByteRange(offset: bytes.count - field.count, count: field.count)
    }

    mutating func addTopicName(_ field: [UInt8]) throws(MalformedPacket) -> TopicName {
        let range = add(field)
        return try TopicName(validating: range, in: bytes.span.bytes)
    }
}
