import HermesTesting
import MQTTCodec

/// The properties of MQTT 5.0 as the standard's table 2-4 has them, read slowly.
enum PropertyModel {
    enum Kind {
        case byte, two, four, variable, text, data, pair
    }

    /// The letters of the places where a property may stand: C CONNECT, W will, A CONNACK, P a
    /// client's PUBLISH, Q a server's PUBLISH, K acknowledgements, S SUBSCRIBE, U UNSUBSCRIBE,
    /// D a client's DISCONNECT, E a server's DISCONNECT, X AUTH.
    static let table: [Int: (kind: Kind, places: String)] = [
        0x01: (.byte, "PQW"), 0x02: (.four, "PQW"), 0x03: (.text, "PQW"), 0x08: (.text, "PQW"),
        0x09: (.data, "PQW"), 0x0B: (.variable, "QS"), 0x11: (.four, "CAD"), 0x12: (.text, "A"),
        0x13: (.two, "A"), 0x15: (.text, "CAX"), 0x16: (.data, "CAX"), 0x17: (.byte, "C"),
        0x18: (.four, "W"), 0x19: (.byte, "C"), 0x1A: (.text, "A"), 0x1C: (.text, "AE"),
        0x1F: (.text, "AKDEX"), 0x21: (.two, "CA"), 0x22: (.two, "CA"), 0x23: (.two, "PQ"),
        0x24: (.byte, "A"), 0x25: (.byte, "A"), 0x26: (.pair, "CWAPQKSUDEX"), 0x27: (.four, "CA"),
        0x28: (.byte, "A"), 0x29: (.byte, "A"), 0x2A: (.byte, "A"),
    ]

    /// What a server sends on.
    static let forwarded: Set<UInt8> = [0x01, 0x03, 0x08, 0x09, 0x26]
}

extension SlowReader {
    /// Reads properties with their length.
    mutating func properties(at place: Character) -> [PropertyContent] {
        let count = variable()
        var inner = SlowReader(take(count))
        var contents: [PropertyContent] = []
        while !inner.isAtEnd, !inner.isBroken {
            guard let content = inner.property(at: place, after: contents) else { break }
            contents.append(content)
        }
        faults.formUnion(inner.faults)
        let names = Set(contents.map(\.identifier))
        if place == "C" || place == "A", names.contains(.authenticationData),
            !names.contains(.authenticationMethod)
        {
            faults.insert(0x82)
        }
        return contents
    }

    private mutating func property(
        at place: Character, after others: [PropertyContent]
    ) -> PropertyContent? {
        let number = variable()
        guard let entry = PropertyModel.table[number],
            let name = PropertyIdentifier(rawValue: UInt8(number))
        else {
            breakOff()
            return nil
        }
        if !entry.places.contains(place) {
            // Two have a rule of their own: a client's identifier and a server's expiry.
            faults.insert(
                (number == 0x0B && place == "P") || (number == 0x11 && place == "E") ? 0x82 : 0x81)
        }
        let mayRepeat = number == 0x26 || (number == 0x0B && place == "Q")
        if !mayRepeat, others.contains(where: { $0.identifier == name }) { faults.insert(0x82) }
        return value(entry.kind, name)
    }

    private mutating func value(
        _ kind: PropertyModel.Kind, _ name: PropertyIdentifier
    ) -> PropertyContent {
        switch kind {
        case .byte:
            let value = number(1)
            if value > 1 { faults.insert(0x82) }
            return .number(name, value)
        case .two:
            let value = number(2)
            if value == 0, name == .receiveMaximum { faults.insert(0x82) }
            if value == 0, name == .topicAlias { faults.insert(0x94) }
            return .number(name, value)
        case .four:
            let value = number(4)
            if value == 0, name == .maximumPacketSize { faults.insert(0x82) }
            return .number(name, value)
        case .variable:
            let value = variable()
            if value == 0 { faults.insert(0x82) }
            return .number(name, UInt32(value))
        case .text:
            let value = text()
            if name == .responseTopic, value.isEmpty || value.contains(0x2B) || value.contains(0x23)
            {
                faults.insert(0x82)
            }
            return .field(name, value)
        case .data: return .field(name, field())
        case .pair: return .pair(text(), text())
        }
    }
}
