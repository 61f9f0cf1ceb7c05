/// The header of a client's frame.
struct ClientFrameHeader: BitwiseCopyable {
    enum Opcode: UInt8, BitwiseCopyable {
        case continuation = 0x0
        case text = 0x1
        case binary = 0x2
        case close = 0x8
        case ping = 0x9
        case pong = 0xA
    }

    let isFinal: Bool
    let opcode: Opcode
    let mask: PayloadMask
    /// The size of the header.
    let size: Int
    /// The size of the payload.
    let payload: Int

    var isControl: Bool { opcode.rawValue & 0x8 != 0 }

    /// Reads a header; `nil` asks for more bytes. `isContinued`: an unfinished message came before it.
    @inline(__always)
    init?(_ bytes: UnsafeRawBufferPointer, isContinued: Bool) throws(WebSocketFlaw) {
        guard bytes.count >= 2 else { return nil }
        let (first, second) = (bytes[0], bytes[1])
        guard first & 0x70 == 0 else { throw .reservedBits }
        guard let opcode = Opcode(rawValue: first & 0x0F) else { throw .reservedOpcode }
        guard second & 0x80 != 0 else { throw .unmasked }
        self.opcode = opcode
        isFinal = first & 0x80 != 0
        switch opcode {
        // [MQTT-6.0.0-1]
        case .text: throw .textFrame
        case .binary: if isContinued { throw .interruptedMessage }
        case .continuation: if !isContinued { throw .continuation }
        case .close, .ping, .pong:
            guard isFinal else { throw .fragmentedControl }
            guard second & 0x7F <= 125 else { throw .longControl }
        }
        switch second & 0x7F {
        case 126:
            guard bytes.count >= 4 else { return nil }
            payload = Int(bytes[2]) << 8 | Int(bytes[3])
            guard payload > 125 else { throw .longLengthForm }
            size = 8
        case 127:
            guard bytes.count >= 10 else { return nil }
            var length: UInt64 = 0
            for place in 2..<10 { length = length << 8 | UInt64(bytes[place]) }
            guard length >> 63 == 0 else { throw .frameTooLong }
            guard length > 0xFFFF else { throw .longLengthForm }
            payload = Int(length)
            size = 14
        case let short:
            payload = Int(short)
            size = 6
        }
        guard bytes.count >= size, let base = bytes.baseAddress else { return nil }
        mask = PayloadMask(at: base + size - 4)
    }
}
