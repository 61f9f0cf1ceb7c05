import MQTTCodec

/// The packets that a scenario sends once per connection.
enum ClientPackets {
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
            PacketEncoder.append(.connect(connect), fieldsIn: $0, to: &packet)
        }
        return packet
    }

    /// At QoS 1, with packet identifier 1.
    static func publish(_ topic: [UInt8], payload: [UInt8]) -> [UInt8] {
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
            PacketEncoder.append(.subscribe, PacketIdentifier(position: 0), $0, to: &packet)
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
        do throws(MalformedPacket) {
            return try PacketDecoder.decode(frame, bytes.bytes)
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
