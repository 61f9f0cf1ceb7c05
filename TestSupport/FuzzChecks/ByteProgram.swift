/// Reads an input as a program. After its end it reads zeros, so that every byte string is a valid
/// program.
struct ByteProgram {
    private let bytes: [UInt8]
    private var offset = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { offset >= bytes.count }

    mutating func byte() -> UInt8 {
        guard offset < bytes.count else { return 0 }
        offset += 1
        return bytes[offset - 1]
    }

    /// The next `count` bytes; fewer at the end.
    mutating func bytes(_ count: Int) -> [UInt8] {
        let taken = bytes[min(offset, bytes.count)...].prefix(count)
        offset += taken.count
        return [UInt8](taken)
    }

    /// All remaining bytes.
    mutating func rest() -> [UInt8] { bytes(.max) }
}

/// The fields of one operand byte, from the lowest bits.
struct OperandBits {
    private var value: UInt8

    init(_ value: UInt8) { self.value = value }

    mutating func flag() -> Bool { take(1) == 1 }

    /// The next `width` bits as a number.
    mutating func take(_ width: UInt8) -> Int {
        let field = value & ((1 << width) - 1)
        value >>= width
        return Int(field)
    }

    /// Picks one of the choices by as many bits as needed; their number is a power of two.
    mutating func pick<Choice>(_ choices: [Choice]) -> Choice {
        let width = UInt8(choices.count.trailingZeroBitCount)
        precondition(choices.count == 1 << width, "\(choices.count) choices need no whole bits")
        return choices[take(width)]
    }
}
