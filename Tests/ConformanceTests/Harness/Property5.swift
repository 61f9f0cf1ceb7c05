/// A property of MQTT 5.0: its identifier, and its value as the bytes on the wire.
///
/// Independent of the codec under test.
struct Property5: Hashable, Sendable {
    /// The form of a property's value (section 2.2.2.2).
    enum Form {
        case byte, two, four, variable, field, pair
    }

    let identifier: UInt8
    let value: [UInt8]

    init(_ identifier: UInt8, _ value: [UInt8]) {
        self.identifier = identifier
        self.value = value
    }

    var bytes: [UInt8] { [identifier] + value }

    static func byte(_ identifier: UInt8, _ value: UInt8) -> Self { Self(identifier, [value]) }

    static func two(_ identifier: UInt8, _ value: UInt16) -> Self {
        Self(identifier, [UInt8(value >> 8), UInt8(value & 0xFF)])
    }

    static func four(_ identifier: UInt8, _ value: UInt32) -> Self {
        Self(identifier, (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) })
    }

    static func field(_ identifier: UInt8, _ text: String) -> Self {
        Self(identifier, RawPacket.field(text))
    }

    static func field(_ identifier: UInt8, _ bytes: [UInt8]) -> Self {
        Self(identifier, RawPacket.field(bytes))
    }

    static func payloadFormat(_ value: UInt8) -> Self { byte(0x01, value) }
    /// Seconds.
    static func messageExpiry(_ value: UInt32) -> Self { four(0x02, value) }
    static func contentType(_ value: String) -> Self { field(0x03, value) }
    static func responseTopic(_ value: String) -> Self { field(0x08, value) }
    static func correlation(_ value: [UInt8]) -> Self { field(0x09, value) }
    static func subscription(_ value: Int) -> Self {
        Self(0x0B, RawPacket.remainingLength(value))
    }
    /// Seconds.
    static func sessionExpiry(_ value: UInt32) -> Self { four(0x11, value) }
    static func requestProblems(_ value: UInt8) -> Self { byte(0x17, value) }
    /// Seconds.
    static func willDelay(_ value: UInt32) -> Self { four(0x18, value) }
    static func requestResponse(_ value: UInt8) -> Self { byte(0x19, value) }
    static func reason(_ value: String) -> Self { field(0x1F, value) }
    static func receiveMaximum(_ value: UInt16) -> Self { two(0x21, value) }
    static func aliasMaximum(_ value: UInt16) -> Self { two(0x22, value) }
    static func alias(_ value: UInt16) -> Self { two(0x23, value) }
    static func user(_ name: String, _ value: String) -> Self {
        Self(0x26, RawPacket.field(name) + RawPacket.field(value))
    }
    /// Bytes.
    static func packetSize(_ value: UInt32) -> Self { four(0x27, value) }

    /// The value of a property that is a number.
    var number: Int { value.reduce(0) { $0 << 8 | Int($1) } }

    /// The value of a property that is a string.
    var text: String { String(decoding: value.dropFirst(2), as: UTF8.self) }

    /// The form of each property, and the first nibbles of the packets in which a server may send it.
    static func rule(of identifier: UInt8) -> (form: Form, packets: Set<UInt8>)? {
        switch identifier {
        case 0x01: (.byte, [3])
        case 0x02: (.four, [3])
        case 0x03, 0x08, 0x09: (.field, [3])
        case 0x0B: (.variable, [3])
        case 0x11: (.four, [2])
        case 0x12, 0x1A: (.field, [2])
        case 0x13, 0x21, 0x22: (.two, [2])
        case 0x15, 0x16: (.field, [2, 15])
        case 0x1C: (.field, [2, 14])
        case 0x1F: (.field, [2, 4, 5, 6, 7, 9, 11, 14, 15])
        case 0x23: (.two, [3])
        case 0x24, 0x25, 0x28, 0x29, 0x2A: (.byte, [2])
        case 0x26: (.pair, [2, 3, 4, 5, 6, 7, 9, 11, 14, 15])
        case 0x27: (.four, [2])
        default: nil
        }
    }
}

/// Reads the properties of a packet that a server has sent, and holds them to the rules for it.
struct PropertyReader5 {
    private let bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// `packet` is the first nibble of the packet.
    func properties(of packet: UInt8) throws -> [Property5] {
        var rest = bytes
        var properties: [Property5] = []
        while let identifier = rest.popFirst() {
            guard let rule = Property5.rule(of: identifier), rule.packets.contains(packet) else {
                throw ConformanceFailure("property \(identifier) in a packet of type \(packet)")
            }
            let count = try Self.count(of: rule.form, in: rest)
            guard rest.count >= count else {
                throw ConformanceFailure("property \(identifier) is cut short")
            }
            let isRepeated = properties.contains { $0.identifier == identifier }
            guard !isRepeated || identifier == 0x26 || identifier == 0x0B else {
                throw ConformanceFailure("property \(identifier) twice")
            }
            properties.append(Property5(identifier, Array(rest.prefix(count))))
            rest = rest.dropFirst(count)
        }
        return properties
    }

    private static func count(of form: Property5.Form, in rest: ArraySlice<UInt8>) throws -> Int {
        switch form {
        case .byte: return 1
        case .two: return 2
        case .four: return 4
        case .variable: return try Packet5.variable(rest).count
        case .field: return try fieldCount(rest)
        case .pair:
            let first = try fieldCount(rest)
            return first + (try fieldCount(rest.dropFirst(first)))
        }
    }

    private static func fieldCount(_ rest: ArraySlice<UInt8>) throws -> Int {
        guard rest.count >= 2 else { throw ConformanceFailure("a length is cut short") }
        return 2 + Int(rest[rest.startIndex]) << 8 + Int(rest[rest.startIndex + 1])
    }
}
