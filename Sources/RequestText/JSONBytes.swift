import PlainText

/// JSON as it is written.
package struct JSONBytes {
    package private(set) var bytes: [UInt8] = []

    package init() { bytes.reserveCapacity(512) }

    package mutating func text(_ text: String) { bytes.append(contentsOf: text.utf8) }

    package mutating func value(_ value: JSONValue) {
        switch value {
        case .string(let text): string(text.string)
        case .number(let digits): text(digits)
        case .bool(let flag): text(flag ? "true" : "false")
        case .null, .array, .object: text("null")
        }
    }

    package mutating func object(_ members: [(name: String, value: JSONValue)]) {
        text("{")
        for (index, member) in members.enumerated() {
            if index > 0 { text(",") }
            string(member.name)
            text(":")
            value(member.value)
        }
        text("}")
    }

    /// A string with what RFC 8259, section 7, wants escaped.
    package mutating func string(_ value: String) { string(utf8: value.utf8) }

    /// The same for the bytes of a text in UTF-8.
    package mutating func string(utf8 value: some Sequence<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        for byte in value {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20, 0x7F:
                text("\\u00")
                bytes.append(Hexadecimal.digit(byte >> 4))
                bytes.append(Hexadecimal.digit(byte))
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
