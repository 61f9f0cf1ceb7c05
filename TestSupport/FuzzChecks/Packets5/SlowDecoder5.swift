import HermesTesting
import MQTTCodec

/// A decoder of MQTT 5.0 that is written apart from the one it judges: it builds values, and it
/// notes the codes of all the faults that it finds, since of two the receiver may name either.
enum SlowDecoder5 {
    enum Outcome: Hashable {
        case packet(PacketContent5, size: Int)
        case incomplete(needed: Int)
        case faults(Set<UInt8>)
    }

    /// The first packet of `bytes`.
    static func decode(
        _ bytes: ArraySlice<UInt8>, from sender: PacketSender, maximumSize: Int
    ) -> Outcome {
        guard let first = bytes.first else { return .incomplete(needed: 0) }
        let (type, flags) = (first / 16, first % 16)
        var faults: Set<UInt8> = type == 0 ? [0x81] : []
        let clientOnly: Set<UInt8> = [1, 8, 10, 12]
        let serverOnly: Set<UInt8> = [2, 9, 11, 13]
        if (sender == .client ? serverOnly : clientOnly).contains(type) { faults.insert(0x82) }
        if type != 3, flags != ([6, 8, 10].contains(type) ? 2 : 0) { faults.insert(0x81) }

        var length = 0
        var size = 1
        var factor = 1
        while true {
            guard size < bytes.count else {
                return faults.isEmpty ? .incomplete(needed: 0) : .faults(faults)
            }
            let byte = Int(bytes[bytes.startIndex + size])
            length += byte % 128 * factor
            factor *= 128
            size += 1
            if byte < 128 {
                if byte == 0, size > 2 { faults.insert(0x81) }
                break
            }
            if size == 5 { return .faults(faults.union([0x81])) }
        }
        if size + length > maximumSize { faults.insert(0x95) }
        guard faults.isEmpty else { return .faults(faults) }
        guard bytes.count >= size + length else { return .incomplete(needed: size + length) }
        var reader = SlowReader(Array(bytes.dropFirst(size).prefix(length)))
        let packet = packet(type, flags, sender, &reader)
        guard reader.faults.isEmpty, let packet else { return .faults(reader.faults) }
        return .packet(packet, size: size + length)
    }

    private static func packet(
        _ type: UInt8, _ flags: UInt8, _ sender: PacketSender, _ reader: inout SlowReader
    ) -> PacketContent5? {
        switch type {
        case 1: return connect(&reader)
        case 2: return connack(&reader)
        case 3: return publish(flags, sender, &reader)
        case 4...7: return acknowledgement(type, &reader)
        case 8: return subscribe(&reader)
        case 9, 11: return answers(type, &reader)
        case 10: return unsubscribe(&reader)
        case 12, 13:
            reader.finish()
            return type == 12 ? .pingreq : .pingresp
        case 14: return disconnect(sender, &reader)
        default: return auth(sender, &reader)
        }
    }

    private static func connect(_ reader: inout SlowReader) -> PacketContent5? {
        if reader.field() != Array("MQTT".utf8), !reader.isBroken { reader.faults.insert(0x84) }
        if reader.number(1) != 5, !reader.isBroken { reader.faults.insert(0x84) }
        let flags = reader.number(1)
        let hasWill = flags & 4 != 0
        if flags & 1 != 0 || flags & 0x18 == 0x18 || !hasWill && flags & 0x38 != 0 {
            reader.faults.insert(0x81)
        }
        let keepAlive = UInt16(reader.number(2))
        let properties = reader.properties(at: "C")
        var connect = PacketContent5.Connect(clientID: reader.text())
        connect.cleanStart = flags & 2 != 0
        connect.keepAlive = keepAlive
        connect.properties = properties
        if hasWill {
            let properties = reader.properties(at: "W")
            let topic = reader.topicName()
            if topic.isEmpty { reader.faults.insert(0x90) }
            connect.will = .init(
                topic: topic, message: reader.field(),
                qos: QoS(rawValue: UInt8(flags >> 3 & 3)) ?? .atMostOnce,
                retain: flags & 0x20 != 0, properties)
        }
        if flags & 0x80 != 0 { connect.userName = reader.text() }
        if flags & 0x40 != 0 { connect.password = reader.field() }
        reader.finish()
        return .connect(connect)
    }

    private static func connack(_ reader: inout SlowReader) -> PacketContent5? {
        let flags = reader.number(1)
        if flags > 1 { reader.faults.insert(0x81) }
        let code = reader.code([
            0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90,
            0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F,
        ])
        if flags & 1 == 1, code != .success { reader.faults.insert(0x82) }
        let properties = reader.properties(at: "A")
        reader.finish()
        return code.map { .connack(sessionPresent: flags == 1, $0, properties) }
    }

    private static func publish(
        _ flags: UInt8, _ sender: PacketSender, _ reader: inout SlowReader
    ) -> PacketContent5? {
        let (level, isDuplicate) = (flags >> 1 & 3, flags & 8 != 0)
        if level == 3 || level == 0 && isDuplicate { reader.faults.insert(0x81) }
        let topic = reader.topicName()
        let identifier = level == 0 ? nil : reader.identifier()
        let properties = reader.properties(at: sender == .client ? "P" : "Q")
        if topic.isEmpty, !properties.contains(where: { $0.identifier == .topicAlias }) {
            reader.faults.insert(0x82)
        }
        let delivery: Delivery =
            switch (level, identifier) {
            case (1, let identifier?): .atLeastOnce(identifier, isDuplicate: isDuplicate)
            case (2, let identifier?): .exactlyOnce(identifier, isDuplicate: isDuplicate)
            default: .atMostOnce
            }
        return .publish(
            .init(
                delivery, topic: topic, properties, payload: reader.take(reader.count),
                retain: flags & 1 == 1))
    }

    private static func acknowledgement(
        _ type: UInt8, _ reader: inout SlowReader
    ) -> PacketContent5? {
        let identifier = reader.identifier()
        var code: ReasonCode? = .success
        var properties: [PropertyContent] = []
        if !reader.isAtEnd {
            code = reader.code(
                type < 6 ? [0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99] : [0, 0x92])
        }
        if !reader.isAtEnd { properties = reader.properties(at: "K") }
        reader.finish()
        guard let identifier, let code else { return nil }
        switch type {
        case 4: return .puback(identifier, code, properties)
        case 5: return .pubrec(identifier, code, properties)
        case 6: return .pubrel(identifier, code, properties)
        default: return .pubcomp(identifier, code, properties)
        }
    }

    private static func subscribe(_ reader: inout SlowReader) -> PacketContent5? {
        let identifier = reader.identifier()
        let properties = reader.properties(at: "S")
        if reader.isAtEnd { reader.faults.insert(0x82) }
        var requests: [PacketContent5.Request] = []
        while !reader.isAtEnd {
            let filter = reader.text()
            let byte = UInt8(reader.number(1))
            if byte >= 64 { reader.faults.insert(0x81) }
            let handling = SubscriptionOptions.RetainHandling(rawValue: byte / 16 % 4)
            if byte % 4 == 3 || handling == nil { reader.faults.insert(0x82) }
            if byte & 4 != 0, filter.starts(with: "$share/".utf8) { reader.faults.insert(0x82) }
            requests.append(
                .init(
                    filter,
                    SubscriptionOptions(
                        qos: QoS(rawValue: byte % 4) ?? .atMostOnce, noLocal: byte & 4 != 0,
                        retainAsPublished: byte & 8 != 0,
                        retainHandling: handling ?? .atEverySubscribe)))
        }
        return identifier.map { .subscribe($0, properties, requests) }
    }

    private static func unsubscribe(_ reader: inout SlowReader) -> PacketContent5? {
        let identifier = reader.identifier()
        let properties = reader.properties(at: "U")
        if reader.isAtEnd { reader.faults.insert(0x82) }
        var filters: [[UInt8]] = []
        while !reader.isAtEnd { filters.append(reader.text()) }
        return identifier.map { .unsubscribe($0, properties, filters) }
    }

    private static func answers(_ type: UInt8, _ reader: inout SlowReader) -> PacketContent5? {
        let identifier = reader.identifier()
        let properties = reader.properties(at: "K")
        if reader.isAtEnd { reader.breakOff() }
        let ofSuback: Set<UInt8> = [
            0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2,
        ]
        let ofUnsuback: Set<UInt8> = [0, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91]
        var codes: [ReasonCode] = []
        while !reader.isAtEnd {
            if let code = reader.code(type == 9 ? ofSuback : ofUnsuback) { codes.append(code) }
        }
        guard let identifier else { return nil }
        return type == 9
            ? .suback(identifier, properties, codes) : .unsuback(identifier, properties, codes)
    }

    private static func disconnect(
        _ sender: PacketSender, _ reader: inout SlowReader
    ) -> PacketContent5? {
        let both: Set<UInt8> = [
            0x00, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
        ]
        let ofServer: Set<UInt8> = [
            0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1,
            0xA2,
        ]
        var code: ReasonCode? = .success
        var properties: [PropertyContent] = []
        if !reader.isAtEnd {
            code = reader.code(both.union(sender == .client ? [0x04] : ofServer))
        }
        if !reader.isAtEnd { properties = reader.properties(at: sender == .client ? "D" : "E") }
        reader.finish()
        return code.map { .disconnect($0, properties) }
    }

    private static func auth(
        _ sender: PacketSender, _ reader: inout SlowReader
    ) -> PacketContent5? {
        let isShort = reader.isAtEnd
        if isShort, sender == .client { reader.faults.insert(0x82) }
        guard !isShort else { return .auth(.success, []) }
        let code = reader.code(sender == .client ? [0x18, 0x19] : [0x00, 0x18])
        let properties = reader.properties(at: "X")
        if !properties.contains(where: { $0.identifier == .authenticationMethod }) {
            reader.faults.insert(0x82)
        }
        reader.finish()
        return code.map { .auth($0, properties) }
    }
}
