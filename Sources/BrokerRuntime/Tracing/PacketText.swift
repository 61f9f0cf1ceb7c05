import BrokerAPI
import MQTTCodec

/// A packet in words, for a trace: its name, then what its header holds. Passwords are never shown,
/// will messages and payloads only as their sizes.
struct PacketText {
    /// Filters of a packet that are shown.
    private static let mostListed = 8

    var text: String
    /// The beginning of a PUBLISH packet's payload.
    var payload: [UInt8] = []

    /// - Parameters:
    ///   - bytes: The beginning of the packet.
    ///   - size: The bytes of the whole packet; 0 for bytes that are none.
    ///   - is5: Whether the connection speaks MQTT 5.0.
    init(_ bytes: [UInt8], size: Int, is5: Bool = false) {
        text = ""
        guard size > 0, let first = bytes.first, let type = PacketType5(rawValue: first >> 4),
            is5 || type != .auth
        else {
            text = "bytes that are no packet"
            return
        }
        let name = "\(type)".uppercased()
        text = "\(name), \(size) bytes"
        bytes.withUnsafeBytes { buffer in
            guard !is5, !Self.is5(buffer, size) else {
                describe5(buffer, type, size)
                return
            }
            if size == buffer.count {
                if case .frame(let frame)? = try? PacketDecoder.frame(
                    buffer.bytes, at: 0, maximumSize: size),
                    let packet = try? PacketDecoder.decode(frame, buffer.bytes)
                {
                    describe(packet, buffer, payloadBytes: nil)
                } else {
                    text += ", malformed"
                }
            } else if let begun = PacketDecoder.begunPublish(buffer.bytes, at: 0),
                case .publish(let publish)? = try? PacketDecoder.decode(begun, buffer.bytes)
            {
                describe(
                    .publish(publish), buffer, payloadBytes: size - publish.payload.start)
            }
        }
    }

    private mutating func describe(
        _ packet: ControlPacket, _ bytes: UnsafeRawBufferPointer, payloadBytes: Int?
    ) {
        func string(_ range: ByteRange) -> String { String(decoding: bytes[range], as: UTF8.self) }
        switch packet {
        case .connect(let connect):
            text =
                "CONNECT \(connect.version == .v3_1 ? "3.1" : "3.1.1"), client "
                + string(connect.clientID)
                + ", \(connect.cleanSession ? "clean" : "persistent") session, keep alive "
                + "\(connect.keepAlive) s"
            if let userName = connect.userName { text += ", user \(string(userName))" }
            if connect.password != nil { text += ", with password" }
            if let will = connect.will { text += ", will on \(string(will.topic.range))" }
        case .connack(let connack):
            text =
                "CONNACK \(connack.returnCode.rawValue)"
                + (connack.sessionPresent ? ", session present" : "")
        case .publish(let publish):
            text = "PUBLISH \(string(publish.topic.range)), "
            text += Self.text(publish.delivery)
            text += ", \(payloadBytes ?? Int(publish.payload.count)) bytes"
            if publish.retain { text += ", RETAIN" }
            payload = [UInt8](bytes[publish.payload].prefix(TraceRequest.mostPayloadBytes))
        case .puback(let identifier): text = "PUBACK id \(identifier.rawValue)"
        case .pubrec(let identifier): text = "PUBREC id \(identifier.rawValue)"
        case .pubrel(let identifier): text = "PUBREL id \(identifier.rawValue)"
        case .pubcomp(let identifier): text = "PUBCOMP id \(identifier.rawValue)"
        case .unsuback(let identifier): text = "UNSUBACK id \(identifier.rawValue)"
        case .subscribe(var subscribe):
            text = "SUBSCRIBE id \(subscribe.packetIdentifier.rawValue)"
            list(of: subscribe.count) {
                subscribe.next(in: bytes.bytes).map {
                    "\(string($0.filter.range)) QoS \($0.qos.rawValue)"
                }
            }
        case .unsubscribe(var unsubscribe):
            text = "UNSUBSCRIBE id \(unsubscribe.packetIdentifier.rawValue)"
            list(of: unsubscribe.count) {
                unsubscribe.next(in: bytes.bytes).map { string($0.range) }
            }
        case .suback(let suback):
            text = "SUBACK id \(suback.packetIdentifier.rawValue)"
            var codes = bytes[suback.returnCodes].makeIterator()
            list(of: Int(suback.returnCodes.count)) {
                codes.next().map { $0 == Suback.failure ? "refused" : "QoS \($0)" }
            }
        case .pingreq: text = "PINGREQ"
        case .pingresp: text = "PINGRESP"
        case .disconnect: text = "DISCONNECT"
        }
    }

    /// QoS, packet identifier and DUP of a PUBLISH.
    static func text(_ delivery: Delivery) -> String {
        func text(_ identifier: PacketIdentifier, _ isDuplicate: Bool) -> String {
            ", id \(identifier.rawValue)" + (isDuplicate ? ", DUP" : "")
        }
        return switch delivery {
        case .atMostOnce: "QoS 0"
        case .atLeastOnce(let identifier, let isDuplicate): "QoS 1" + text(identifier, isDuplicate)
        case .exactlyOnce(let identifier, let isDuplicate): "QoS 2" + text(identifier, isDuplicate)
        }
    }

    /// Appends the first items of a list, and how many follow.
    mutating func list(of count: Int, _ next: () -> String?) {
        for _ in 0..<min(count, Self.mostListed) {
            if let item = next() { text += ", \(item)" }
        }
        if count > Self.mostListed { text += " and \(count - Self.mostListed) more" }
    }
}
