import HermesTesting

/// Packets as bytes, including invalid ones; independent of the codec under test.
enum RawPacket {
    /// A packet of this first byte and body; adds the remaining length.
    static func packet(_ firstByte: UInt8, _ body: [UInt8]) -> [UInt8] {
        [firstByte] + remainingLength(body.count) + body
    }

    /// A two-byte length and the text (section 1.5.3).
    static func field(_ text: String) -> [UInt8] { field(Array(text.utf8)) }

    static func field(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
    }

    /// Base 128, least significant group first (section 2.2.3).
    static func remainingLength(_ value: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = value
        repeat {
            bytes.append(UInt8(rest % 128 + (rest >= 128 ? 128 : 0)))
            rest /= 128
        } while rest > 0
        return bytes
    }

    /// A CONNECT of any content: the variable header, and the payload's fields as given.
    static func connect(
        name: [UInt8] = Array("MQTT".utf8), level: UInt8 = 4, flags: UInt8, keepAlive: UInt16 = 0,
        payload: [UInt8]...
    ) -> [UInt8] {
        packet(
            0x10,
            field(name) + [level, flags, UInt8(keepAlive >> 8), UInt8(keepAlive & 0xFF)]
                + payload.flatMap { $0 })
    }

    /// A PUBLISH with any bytes as topic; without packet identifier for QoS 0.
    static func publish(
        firstByte: UInt8 = 0x30, topic: [UInt8], identifier: UInt16? = nil, payload: [UInt8] = []
    ) -> [UInt8] {
        packet(firstByte, field(topic) + integer(identifier) + payload)
    }

    /// A SUBSCRIBE with any bytes as its filter.
    static func subscribe(
        _ identifier: UInt16 = 1, filter: [UInt8], requestedQoS: UInt8 = 0
    ) -> [UInt8] {
        packet(0x82, integer(identifier) + field(filter) + [requestedQoS])
    }

    /// An UNSUBSCRIBE with any bytes as its filter.
    static func unsubscribe(_ identifier: UInt16 = 1, filter: [UInt8]) -> [UInt8] {
        packet(0xA2, integer(identifier) + field(filter))
    }

    /// Removes the first whole packet; `nil` when there is none.
    static func removeFirst(from bytes: inout [UInt8]) -> [UInt8]? {
        var length = 0
        for index in 0..<4 where bytes.count > index + 1 {
            length |= Int(bytes[index + 1] & 0x7F) << (7 * index)
            guard bytes[index + 1] & 0x80 == 0 else { continue }
            let size = index + 2 + length
            guard bytes.count >= size else { return nil }
            defer { bytes.removeFirst(size) }
            return Array(bytes[..<size])
        }
        return nil
    }

    private static func integer(_ value: UInt16?) -> [UInt8] {
        guard let value else { return [] }
        return [UInt8(value >> 8), UInt8(value & 0xFF)]
    }
}
