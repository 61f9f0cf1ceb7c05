import HermesTesting

/// A packet of MQTT 5.0 laid out by field; independent of the codec under test.
///
/// A received packet in a short form has the reason code 0x00 and no properties.
struct Packet5: Hashable, Sendable, CustomStringConvertible {
    /// A will in CONNECT.
    struct Will {
        var topic: String
        var payload = "gone"
        var qos: UInt8 = 0
        var retain = false
        var properties: [Property5] = []
    }

    let first: UInt8
    /// The variable header in front of the properties.
    var header: [UInt8]
    var properties: [Property5]
    var payload: [UInt8]
    private var hasProperties: Bool

    private init(
        _ first: UInt8, _ header: [UInt8] = [], _ properties: [Property5]? = [],
        _ payload: [UInt8] = []
    ) {
        self.first = first
        self.header = header
        self.properties = properties ?? []
        self.payload = payload
        hasProperties = properties != nil
    }

    var bytes: [UInt8] {
        RawPacket.packet(
            first, header + (hasProperties ? Self.field(properties) : []) + payload)
    }

    var description: String { "\(WireBytes(bytes))" }

    /// The first nibble.
    var type: UInt8 { first >> 4 }

    /// The reason code of CONNACK, an acknowledgement, DISCONNECT or AUTH.
    var code: UInt8 { header.last ?? 0 }

    /// The packet identifier of a PUBLISH of QoS 1 or 2.
    var messageIdentifier: UInt16 { header.suffix(2).reduce(0) { $0 << 8 | UInt16($1) } }

    func property(_ identifier: UInt8) -> Property5? {
        properties.first { $0.identifier == identifier }
    }

    /// Without what a server may leave out or add: the order of different properties, Reason String,
    /// and 0x10 in place of 0x00 in PUBACK and PUBREC.
    var plain: Packet5 {
        var plain = self
        plain.properties = properties.enumerated().filter { $0.element.identifier != 0x1F }
            .sorted {
                ($0.element.identifier, $0.offset) < ($1.element.identifier, $1.offset)
            }.map(\.element)
        if type == 4 || type == 5, header.count == 3, header[2] == 0x10 { plain.header[2] = 0 }
        return plain
    }

    // MARK: Packets

    static func connect(
        _ identifier: String, cleanStart: Bool = true, keepAlive: UInt16 = 0,
        _ properties: [Property5] = [], will: Will? = nil, userName: String? = nil,
        password: String? = nil
    ) -> Packet5 {
        var flags: UInt8 = cleanStart ? 0x02 : 0
        var payload = RawPacket.field(identifier)
        if let will {
            flags |= 0x04 | will.qos << 3 | (will.retain ? 0x20 : 0)
            payload += field(will.properties) + RawPacket.field(will.topic)
            payload += RawPacket.field(will.payload)
        }
        if let userName {
            flags |= 0x80
            payload += RawPacket.field(userName)
        }
        if let password {
            flags |= 0x40
            payload += RawPacket.field(password)
        }
        return connect(flags: flags, keepAlive: keepAlive, properties, payload: payload)
    }

    /// A CONNECT of any content.
    static func connect(
        name: String = "MQTT", level: UInt8 = 5, flags: UInt8, keepAlive: UInt16 = 0,
        _ properties: [Property5] = [], payload: [UInt8]
    ) -> Packet5 {
        Packet5(
            0x10, RawPacket.field(name) + [level, flags] + integer(keepAlive), properties, payload)
    }

    static func connack(
        sessionPresent: Bool = false, _ code: UInt8 = 0, _ properties: [Property5] = []
    ) -> Packet5 {
        Packet5(0x20, [sessionPresent ? 1 : 0, code], properties)
    }

    static func publish(
        _ topic: String, _ payload: String, qos: UInt8 = 0, _ identifier: UInt16 = 1,
        isDuplicate: Bool = false, retain: Bool = false, _ properties: [Property5] = []
    ) -> Packet5 {
        publish(
            topic: Array(topic.utf8), Array(payload.utf8), qos: qos, identifier,
            isDuplicate: isDuplicate, retain: retain, properties)
    }

    /// A message of QoS 0 with these properties.
    static func publish(
        _ topic: String, _ payload: String, _ properties: [Property5]
    ) -> Packet5 {
        Packet5(0x30, RawPacket.field(topic), properties, Array(payload.utf8))
    }

    static func publish(
        topic: [UInt8], _ payload: [UInt8] = [], qos: UInt8 = 0, _ identifier: UInt16 = 1,
        isDuplicate: Bool = false, retain: Bool = false, _ properties: [Property5] = []
    ) -> Packet5 {
        Packet5(
            0x30 | (isDuplicate ? 8 : 0) | qos << 1 | (retain ? 1 : 0),
            RawPacket.field(topic) + (qos == 0 ? [] : integer(identifier)), properties, payload)
    }

    static func puback(_ identifier: UInt16, _ code: UInt8 = 0, _ properties: [Property5] = [])
        -> Packet5
    { Packet5(0x40, integer(identifier) + [code], properties) }

    static func pubrec(_ identifier: UInt16, _ code: UInt8 = 0, _ properties: [Property5] = [])
        -> Packet5
    { Packet5(0x50, integer(identifier) + [code], properties) }

    static func pubrel(_ identifier: UInt16, _ code: UInt8 = 0, _ properties: [Property5] = [])
        -> Packet5
    { Packet5(0x62, integer(identifier) + [code], properties) }

    static func pubcomp(_ identifier: UInt16, _ code: UInt8 = 0, _ properties: [Property5] = [])
        -> Packet5
    { Packet5(0x70, integer(identifier) + [code], properties) }

    /// Filters with their option bytes.
    static func subscribe(
        _ identifier: UInt16, _ filters: KeyValuePairs<String, UInt8>,
        _ properties: [Property5] = []
    ) -> Packet5 {
        Packet5(
            0x82, integer(identifier), properties,
            filters.flatMap { RawPacket.field($0.key) + [$0.value] })
    }

    static func suback(_ identifier: UInt16, _ codes: [UInt8]) -> Packet5 {
        Packet5(0x90, integer(identifier), [], codes)
    }

    static func unsubscribe(
        _ identifier: UInt16, _ filters: [String], _ properties: [Property5] = []
    ) -> Packet5 {
        Packet5(
            0xA2, integer(identifier), properties, filters.flatMap { RawPacket.field($0) })
    }

    static func unsuback(_ identifier: UInt16, _ codes: [UInt8]) -> Packet5 {
        Packet5(0xB0, integer(identifier), [], codes)
    }

    static let pingreq = Packet5(0xC0, [], nil)
    static let pingresp = Packet5(0xD0, [], nil)

    static func disconnect(_ code: UInt8 = 0, _ properties: [Property5] = []) -> Packet5 {
        Packet5(0xE0, [code], properties)
    }

    static func auth(_ code: UInt8, _ properties: [Property5] = []) -> Packet5 {
        Packet5(0xF0, [code], properties)
    }

    static func integer(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xFF)] }

    /// Properties behind their length.
    static func field(_ properties: [Property5]) -> [UInt8] {
        let bytes = properties.flatMap(\.bytes)
        return RawPacket.remainingLength(bytes.count) + bytes
    }

    // MARK: Reading

    /// A packet that a server has sent; throws when a server may not send it.
    init(received frame: [UInt8]) throws {
        var rest = frame.dropFirst()
        rest = rest.dropFirst(try Self.variable(rest).count)
        var (header, properties): ([UInt8], [Property5]?) = ([], [])
        func take(_ count: Int) throws -> [UInt8] {
            guard rest.count >= count else {
                throw ConformanceFailure("cut short: \(WireBytes(frame))")
            }
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        func takeProperties() throws -> [Property5] {
            let length = try Self.variable(rest)
            _ = try take(length.count)
            let bytes = try take(length.value)
            return try PropertyReader5(bytes[...]).properties(of: frame[0] >> 4)
        }
        switch frame[0] {
        case 0x20:
            header = try take(2)
            properties = try takeProperties()
        case 0x30...0x3F:
            let size = try take(2)
            header = size + (try take(Int(size[0]) << 8 | Int(size[1])))
            if frame[0] & 0x06 != 0 { header += try take(2) }
            properties = try takeProperties()
        case 0x40, 0x50, 0x62, 0x70:
            header = try take(2) + (rest.isEmpty ? [0] : take(1))
            if !rest.isEmpty { properties = try takeProperties() }
        case 0x90, 0xB0:
            header = try take(2)
            properties = try takeProperties()
        case 0xD0:
            properties = nil
        case 0xE0, 0xF0:
            header = rest.isEmpty ? [0] : try take(1)
            if !rest.isEmpty { properties = try takeProperties() }
        default:
            throw ConformanceFailure("no packet of a server: \(WireBytes(frame))")
        }
        let hasPayload = [0x30, 0x90, 0xB0].contains(frame[0] & 0xF0)
        guard hasPayload || rest.isEmpty else {
            throw ConformanceFailure("bytes behind the last field: \(WireBytes(frame))")
        }
        self.init(frame[0], header, properties, Array(rest))
    }

    /// A Variable Byte Integer, which must have as few bytes as possible [MQTT-1.5.5-1].
    static func variable(_ bytes: ArraySlice<UInt8>) throws -> (value: Int, count: Int) {
        var value = 0
        for (index, byte) in bytes.prefix(4).enumerated() {
            value |= Int(byte & 0x7F) << (7 * index)
            guard byte & 0x80 == 0 else { continue }
            guard index == 0 || byte != 0 else { break }
            return (value, index + 1)
        }
        throw ConformanceFailure("no Variable Byte Integer: \(WireBytes(Array(bytes.prefix(4))))")
    }
}
