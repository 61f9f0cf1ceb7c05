import RequestText

/// JSON as it is written.
struct JSONBytes {
    private(set) var bytes: [UInt8] = []

    init() { bytes.reserveCapacity(512) }

    mutating func text(_ text: String) { bytes.append(contentsOf: text.utf8) }

    mutating func value(_ value: JSONValue) {
        switch value {
        case .string(let text): string(text.string)
        case .number(let digits): text(digits)
        case .bool(let flag): text(flag ? "true" : "false")
        case .null, .array, .object: text("null")
        }
    }

    mutating func object(_ members: [(name: String, value: JSONValue)]) {
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
    mutating func string(_ value: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in value.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20:
                let digits = Array("0123456789abcdef".utf8)
                text("\\u00")
                bytes.append(digits[Int(byte >> 4)])
                bytes.append(digits[Int(byte & 15)])
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
