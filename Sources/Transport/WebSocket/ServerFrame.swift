import Structures

/// Frames of the broker, which have no mask (RFC 6455, section 5.2).
enum ServerFrame {
    private static var isFinal: UInt8 { 0x80 }
    /// The most payload of one frame, since the stage counts in 32 bits.
    static var largestPayload: Int { Int(UInt32.max) - 16 }

    /// Puts the header of a binary frame before output that has `payload` bytes of it; returns its size.
    @inline(__always)
    static func prependBinary(
        _ payload: Int, to output: inout OutputQueue, pool: BytePool
    ) -> Int {
        let first = isFinal | ClientFrameHeader.Opcode.binary.rawValue
        if payload <= 125 {
            let header = UInt16(first) | UInt16(truncatingIfNeeded: payload) << 8
            output.prepend(2, pool: pool).storeBytes(of: header.littleEndian, as: UInt16.self)
            return 2
        }
        if payload <= 0xFFFF {
            let length = UInt32(UInt16(truncatingIfNeeded: payload).byteSwapped)
            let header = UInt32(first) | 126 << 8 | length << 16
            output.prepend(4, pool: pool).storeBytes(of: header.littleEndian, as: UInt32.self)
            return 4
        }
        let header = output.prepend(10, pool: pool)
        header.storeBytes(of: (UInt16(first) | 127 << 8).littleEndian, as: UInt16.self)
        (header + 2).storeBytes(of: UInt64(payload).bigEndian, as: UInt64.self)
        return 10
    }

    static func pong(_ payload: UnsafeRawBufferPointer) -> [UInt8] {
        [isFinal | ClientFrameHeader.Opcode.pong.rawValue, UInt8(payload.count)] + payload
    }

    static func close(_ code: WebSocketCloseCode) -> [UInt8] {
        let first = isFinal | ClientFrameHeader.Opcode.close.rawValue
        guard code != .none else { return [first, 0] }
        return [first, 2, UInt8(code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)]
    }
}
