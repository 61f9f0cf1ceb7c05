@testable import Transport

/// A frame of a client, of any form.
func clientFrame(
    _ opcode: AnyOpcode, _ payload: some Collection<UInt8> = [UInt8](), isFinal: Bool = true,
    reserved: UInt8 = 0, mask: [UInt8] = [0x37, 0xFA, 0x21, 0x3D], form: LengthForm = .shortest,
    length: UInt64? = nil
) -> [UInt8] {
    let length = length ?? UInt64(payload.count)
    let first = (isFinal ? 0x80 : 0) | reserved << 4 | opcode.number
    let masked: UInt8 = mask.isEmpty ? 0 : 0x80
    var frame: [UInt8]
    switch form.resolved(length) {
    case .shortest, .seven: frame = [first, masked | UInt8(length)]
    case .sixteen: frame = [first, masked | 126] + bigEndian(length, 2)
    case .sixtyFour: frame = [first, masked | 127] + bigEndian(length, 8)
    }
    frame += mask
    return frame + payload.enumerated().map { $1 ^ (mask.isEmpty ? 0 : mask[$0 % 4]) }
}

/// How the length of a frame is written.
enum LengthForm {
    case shortest, seven, sixteen, sixtyFour

    func resolved(_ length: UInt64) -> LengthForm {
        guard case .shortest = self else { return self }
        return length <= 125 ? .seven : length <= 0xFFFF ? .sixteen : .sixtyFour
    }
}

func bigEndian(_ number: UInt64, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * UInt64(count - 1 - $0))) }
}

/// A close frame's payload.
func closing(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
    bigEndian(UInt64(code), 2) + reason
}

/// Bytes that differ from their neighbours.
func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 * 7 + $0 / 256) }
}

/// An opcode, also one that nobody may send.
struct AnyOpcode: ExpressibleByIntegerLiteral, CustomStringConvertible {
    let number: UInt8

    init(integerLiteral number: UInt8) { self.number = number }
    init(_ number: UInt8) { self.number = number }

    var description: String { "\(number)" }

    static let continuation: Self = 0
    static let text: Self = 1
    static let binary: Self = 2
    static let close: Self = 8
    static let ping: Self = 9
    static let pong: Self = 10
}
