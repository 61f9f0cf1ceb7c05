import MQTTCodec

@testable import HermesClientCore

/// Packets as a broker sends them.
enum Packets {
    static func connack(sessionPresent: Bool) -> [UInt8] { [0x20, 2, sessionPresent ? 1 : 0, 0] }

    static func connack(code: UInt8) -> [UInt8] { [0x20, 2, 0, code] }

    static func publish(
        _ payload: [UInt8], topic: String = "t", qos: UInt8 = 1, identifier: UInt16 = 1,
        isDuplicate: Bool = false
    ) -> [UInt8] {
        var body = Array(topic.utf8)
        body = [UInt8(body.count >> 8), UInt8(body.count & 0xFF)] + body
        if qos > 0 { body += [UInt8(identifier >> 8), UInt8(identifier & 0xFF)] }
        body += payload
        var length: [UInt8] = []
        var rest = body.count
        repeat {
            length.append(UInt8(rest & 0x7F) | (rest > 127 ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        return [0x30 | qos << 1 | (isDuplicate ? 8 : 0)] + length + body
    }

    static func puback(_ identifier: UInt16) -> [UInt8] { short(0x40, identifier) }
    static func pubrec(_ identifier: UInt16) -> [UInt8] { short(0x50, identifier) }
    static func pubrel(_ identifier: UInt16) -> [UInt8] { short(0x62, identifier) }
    static func pubcomp(_ identifier: UInt16) -> [UInt8] { short(0x70, identifier) }
    static func unsuback(_ identifier: UInt16) -> [UInt8] { short(0xB0, identifier) }

    static func suback(_ identifier: UInt16, _ codes: [UInt8]) -> [UInt8] {
        [0x90, UInt8(2 + codes.count), UInt8(identifier >> 8), UInt8(identifier & 0xFF)] + codes
    }

    static let pingresp: [UInt8] = [0xD0, 0]

    private static func short(_ first: UInt8, _ identifier: UInt16) -> [UInt8] {
        [first, 2, UInt8(identifier >> 8), UInt8(identifier & 0xFF)]
    }
}

/// A packet that the client has sent, for comparison.
enum Sent: Hashable {
    case connect(keepAlive: UInt16, userName: String?)
    case publish(payload: [UInt8], qos: UInt8, identifier: UInt16, isDuplicate: Bool)
    case puback(UInt16)
    case pubrec(UInt16)
    case pubrel(UInt16)
    case pubcomp(UInt16)
    case subscribe(UInt16, [String])
    case unsubscribe(UInt16, [String])
    case pingreq
    case disconnect
    /// Bytes that no client may send.
    case wrong

    static func all(in bytes: [UInt8]) -> [Sent] {
        var packets: [Sent] = []
        var offset = 0
        bytes.withUnsafeBytes { content in
            while case .frame(let frame) = try? PacketDecoder.frame(
                content.bytes, at: offset, maximumSize: .max)
            {
                offset = frame.packet.end
                guard let packet = try? PacketDecoder.decode(frame, content.bytes) else {
                    packets.append(.wrong)
                    continue
                }
                packets.append(Sent(packet, content))
            }
        }
        if offset < bytes.count { packets.append(.wrong) }
        return packets
    }

    private init(_ packet: ControlPacket, _ bytes: UnsafeRawBufferPointer) {
        func text(_ range: ByteRange) -> String { String(decoding: bytes[range], as: UTF8.self) }
        switch packet {
        case .connect(let connect):
            self =
                connect.cleanSession
                ? .wrong
                : .connect(keepAlive: connect.keepAlive, userName: connect.userName.map(text))
        case .publish(let publish):
            let payload = Array(bytes[publish.payload])
            switch publish.delivery {
            case .atMostOnce:
                self = .publish(payload: payload, qos: 0, identifier: 0, isDuplicate: false)
            case .atLeastOnce(let identifier, let isDuplicate),
                .exactlyOnce(let identifier, let isDuplicate):
                self = .publish(
                    payload: payload, qos: publish.delivery.qos.rawValue,
                    identifier: identifier.rawValue, isDuplicate: isDuplicate)
            }
        case .puback(let identifier): self = .puback(identifier.rawValue)
        case .pubrec(let identifier): self = .pubrec(identifier.rawValue)
        case .pubrel(let identifier): self = .pubrel(identifier.rawValue)
        case .pubcomp(let identifier): self = .pubcomp(identifier.rawValue)
        case .subscribe(var subscribe):
            var filters: [String] = []
            while let request = subscribe.next(in: bytes.bytes) {
                filters.append(text(request.filter.range))
            }
            self = .subscribe(subscribe.packetIdentifier.rawValue, filters)
        case .unsubscribe(var unsubscribe):
            var filters: [String] = []
            while let filter = unsubscribe.next(in: bytes.bytes) {
                filters.append(text(filter.range))
            }
            self = .unsubscribe(unsubscribe.packetIdentifier.rawValue, filters)
        case .pingreq: self = .pingreq
        case .disconnect: self = .disconnect
        case .connack, .suback, .unsuback, .pingresp: self = .wrong
        }
    }

    /// The packet identifier, 0 if there is none.
    var identifier: UInt16 {
        switch self {
        case .publish(_, _, let identifier, _), .puback(let identifier), .pubrec(let identifier),
            .pubrel(let identifier), .pubcomp(let identifier), .subscribe(let identifier, _),
            .unsubscribe(let identifier, _):
            identifier
        case .connect, .pingreq, .disconnect, .wrong: 0
        }
    }
}

/// A payload that tells its facts in text: "channel/sequence", "channel/sequence@time",
/// "channel/sequence/superseded…", or "=name". Any other payload has none.
struct TestPayload {
    let facts: MessageFacts

    init?(_ payload: [UInt8]) {
        let text = String(decoding: payload, as: UTF8.self)
        if text.hasPrefix("=") {
            facts = .named(Array(text.dropFirst().utf8))
            return
        }
        let parts = text.split(separator: "/")
        guard parts.count >= 2 else { return nil }
        let place = parts[1].split(separator: "@")
        guard let first = place.first, let sequence = UInt64(first) else { return nil }
        facts = .sequenced(
            SequenceNumbers(
                channel: Array(parts[0].utf8), sequence: sequence,
                publishedAtMilliseconds: place.count > 1 ? Int64(place[1]) ?? 0 : 0,
                superseded: parts[2...].compactMap { UInt64($0) }))
    }
}

extension [UInt8] {
    init(text: String) { self = Array(text.utf8) }
}
