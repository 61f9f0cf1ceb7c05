import HermesTesting
import MQTTCodec

/// Reads fields from the front of an array, and notes the reason codes of all faults it meets. After
/// a field that is not whole it reads zeros and nothing.
struct SlowReader {
    private var rest: ArraySlice<UInt8>
    var faults: Set<UInt8> = []
    private(set) var isBroken = false

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isAtEnd: Bool { rest.isEmpty }
    var count: Int { rest.count }

    /// Nothing further can be read.
    mutating func breakOff() {
        if !isBroken { faults.insert(0x81) }
        isBroken = true
        rest = []
    }

    mutating func take(_ count: Int) -> [UInt8] {
        guard rest.count >= count else {
            breakOff()
            return []
        }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func number(_ size: Int) -> UInt32 {
        take(size).reduce(0) { $0 * 256 + UInt32($1) }
    }

    mutating func variable() -> Int {
        var value = 0
        var factor = 1
        for index in 0..<4 {
            let byte = Int(number(1))
            value += byte % 128 * factor
            factor *= 128
            if byte < 128 {
                if byte == 0, index > 0 { faults.insert(0x81) }
                return value
            }
        }
        breakOff()
        return 0
    }

    mutating func field() -> [UInt8] { take(Int(number(2))) }

    /// A string by the standard library's idea of UTF-8.
    mutating func text() -> [UInt8] {
        let bytes = field()
        if String(validating: bytes, as: UTF8.self) == nil || bytes.contains(0) {
            faults.insert(0x81)
        }
        return bytes
    }

    mutating func topicName() -> [UInt8] {
        let bytes = text()
        if bytes.contains(0x2B) || bytes.contains(0x23) { faults.insert(0x90) }
        return bytes
    }

    mutating func identifier() -> PacketIdentifier? {
        let value = UInt16(number(2))
        if value == 0 { faults.insert(0x82) }
        return PacketIdentifier(value)
    }

    mutating func code(_ allowed: Set<UInt8>) -> ReasonCode? {
        let value = UInt8(number(1))
        if !allowed.contains(value) { faults.insert(0x82) }
        return ReasonCode(rawValue: value)
    }

    mutating func finish() {
        if !rest.isEmpty { faults.insert(0x81) }
    }
}
