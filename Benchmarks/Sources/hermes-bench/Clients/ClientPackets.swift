import MQTTCodec

/// The packets that a scenario sends once per connection.
enum ClientPackets {
    /// True when all connections speak MQTT 5.0.
    // Safe: the tool has one thread, which sets this while it reads its options, before it makes a
    // connection.
    nonisolated(unsafe) static var speaks5 = false
    /// Bytes of the length of no properties, where a packet of 5.0 has some.
    static var propertyLengthBytes: Int { speaks5 ? 1 : 0 }

    /// `keepAlive` in seconds; 0 turns it off.
    static func connect(
        _ clientID: [UInt8], cleanSession: Bool, keepAlive: UInt16 = 0,
        userName: String? = nil
    ) -> [UInt8] {
        var packet: [UInt8] = []
        let fields = clientID + Array((userName ?? "").utf8)
        let connect = MQTTCodec.Connect(
            version: .v3_1_1, cleanSession: cleanSession, keepAlive: keepAlive,
            clientID: ByteRange(offset: 0, count: clientID.count),
            userName: userName.map {
                ByteRange(offset: clientID.count, count: $0.utf8.count)
            })
        fields.withUnsafeBytes {
            guard speaks5 else {
                PacketEncoder.append(.connect(connect), fieldsIn: $0, to: &packet)
                return
            }
            // A session that outlives its connection asks for the longest time there is.
            let expiry: [UInt8] = cleanSession ? [] : [17, 0xFF, 0xFF, 0xFF, 0xFF]
            let source = Array($0) + expiry
            source.withUnsafeBytes {
                guard
                    let properties = try? Properties(
                        checking: ByteRange(offset: fields.count, count: expiry.count),
                        in: $0.bytes, for: .connect)
                else { preconditionFailure("the tool's own properties are none") }
                PacketEncoder5.append(
                    .connect(
                        Connect5(
                            cleanStart: cleanSession, keepAlive: keepAlive, properties: properties,
                            clientID: connect.clientID, userName: connect.userName)),
                    fieldsIn: $0, to: &packet)
            }
        }
        return packet
    }

    /// At QoS 1, with packet identifier 1.
    static func publish(_ topic: [UInt8], payload: [UInt8]) -> [UInt8] {
        guard !speaks5 else {
            let rest = 2 + topic.count + 2 + 1 + payload.count
            var packet: [UInt8] = [0x32]
            var length = rest
            while length >= 128 {
                packet.append(UInt8(length & 0x7F) | 0x80)
                length >>= 7
            }
            packet.append(UInt8(length))
            packet += [UInt8(topic.count >> 8), UInt8(topic.count & 0xFF)] + topic + [0, 1, 0]
            return packet + payload
        }
        var packet = [UInt8](
            repeating: 0,
            count: PublishEncoder.headerSize(
                topicCount: topic.count, payloadCount: payload.count, qos: .atLeastOnce))
        packet.withUnsafeMutableBytes { header in
            topic.withUnsafeBytes { topic in
                guard let base = header.baseAddress else { return }
                PublishEncoder.writeHeader(
                    to: base, topic: topic, payloadCount: payload.count, qos: .atLeastOnce,
                    retain: false, isDuplicate: false, packetIdentifier: 1)
            }
        }
        return packet + payload
    }

    static func subscribe(_ filter: [UInt8], _ qos: QoS) -> [UInt8] {
        var payload: [UInt8] = []
        PacketEncoder.appendRequest(filter: filter, qos: qos, to: &payload)
        var packet: [UInt8] = []
        payload.withUnsafeBytes {
            guard speaks5 else {
                PacketEncoder.append(.subscribe, PacketIdentifier(position: 0), $0, to: &packet)
                return
            }
            PacketEncoder5.append(
                .subscribe(
                    Subscribe5(
                        packetIdentifier: PacketIdentifier(position: 0), count: 1,
                        encodedRequests: ByteRange(offset: 0, count: $0.count))),
                fieldsIn: $0, to: &packet)
        }
        return packet
    }

    /// Throws unless the frame is a CONNACK that accepts.
    static func checkAccepted(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32
    ) throws(BenchFailure) {
        guard case .connack(let connack) = try decode(frame, bytes) else {
            throw BenchFailure("client \(client) got \(frame.type) instead of CONNACK")
        }
        guard connack.returnCode == .accepted else {
            throw BenchFailure(
                "the broker refused client \(client): \(connack.returnCode). "
                    + "hermes-bench connects without a user name: allow anonymous clients.")
        }
    }

    /// Throws unless the frame is a SUBACK that grants exactly `qos`.
    static func checkGranted(
        _ qos: QoS, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32
    ) throws(BenchFailure) {
        guard case .suback(let suback) = try decode(frame, bytes) else {
            throw BenchFailure("client \(client) got \(frame.type) instead of SUBACK")
        }
        let granted = bytes[suback.returnCodes.start]
        guard granted == qos.rawValue else {
            throw BenchFailure("client \(client) asked for QoS \(qos.rawValue) and got \(granted)")
        }
    }

    static func decode(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) throws(BenchFailure) -> ControlPacket {
        if speaks5, let packet = try decode5(frame, bytes) { return packet }
        do throws(MalformedPacket) {
            return try PacketDecoder.decode(frame, bytes.bytes)
        } catch {
            throw BenchFailure("the broker sent a malformed \(frame.type): \(error)")
        }
    }

    /// A packet of 5.0 as one of 3.1.1 says the same; `nil` for one that is the same in both.
    private static func decode5(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) throws(BenchFailure) -> ControlPacket? {
        do throws(PacketFault) {
            guard
                case .frame(let frame5) = try PacketDecoder5.frame(
                    bytes.bytes, at: frame.packet.start, from: .server, maximumSize: .max)
            else { return nil }
            switch try PacketDecoder5.decode(frame5, bytes.bytes, from: .server) {
            case .connack(let connack):
                return .connack(
                    connack.code == .success
                        ? .accepted(sessionPresent: connack.sessionPresent)
                        : .refused(.serverUnavailable))
            case .publish(let publish):
                guard let name = publish.topic.name else { return nil }
                return .publish(
                    Publish(
                        delivery: publish.delivery, retain: publish.retain, topic: name,
                        payload: publish.payload))
            case .suback(let answers):
                return .suback(
                    Suback(
                        packetIdentifier: answers.packetIdentifier, returnCodes: answers.codes))
            default: return nil
            }
        } catch {
            throw BenchFailure("the broker sent a malformed \(frame.type): \(error)")
        }
    }

    /// The packet identifier of PUBACK, PUBREC, PUBREL or PUBCOMP.
    static func identifier(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) throws(BenchFailure) -> PacketIdentifier {
        do throws(MalformedPacket) {
            return try PacketDecoder.acknowledgement(frame.body, bytes.bytes)
        } catch {
            throw BenchFailure("the broker sent a malformed \(frame.type): \(error)")
        }
    }
}
