import NIOCore

/// Frames of WebSocket (RFC 6455, section 5), as a client writes and reads them.
enum WebSocketFrames {
    enum Opcode: UInt8 {
        case continuation = 0
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10
    }

    /// A rule of section 5 that the server has broken.
    enum Fault: String, Error {
        case reserved = "a frame with reserved bits or an unknown opcode"
        case masked = "a frame with a mask, which only clients set"
        case text = "a frame of text, and MQTT is binary"
        case control = "a control frame in parts, or of more than 125 bytes"
        case order = "a part of a message where none can be"
        case length = "a frame whose length is not in its shortest form"
    }

    /// A whole frame of a client, which has a mask, so that what an app sends can look like nothing
    /// to a proxy.
    static func frame(_ opcode: Opcode, _ payload: ByteBuffer, mask: UInt32) -> ByteBuffer {
        let count = payload.readableBytes
        var frame = ByteBufferAllocator().buffer(capacity: count + 14)
        frame.writeInteger(0x80 | opcode.rawValue)
        switch count {
        case ...125: frame.writeInteger(0x80 | UInt8(count))
        case ...0xFFFF:
            frame.writeInteger(0x80 | UInt8(126))
            frame.writeInteger(UInt16(count))
        default:
            frame.writeInteger(0x80 | UInt8(127))
            frame.writeInteger(UInt64(count))
        }
        frame.writeInteger(mask)
        let bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: mask >> UInt32($0)) }
        frame.writeBytes(payload.readableBytesView.enumerated().map { $1 ^ bytes[$0 & 3] })
        return frame
    }

    /// What a server's bytes hold.
    enum Piece: Equatable {
        /// A part of the stream of packets.
        case data(ByteBuffer)
        case ping(ByteBuffer)
        case close
    }

    /// Reads a server's frames. Payload of messages is handed on as it comes, so that no length
    /// makes it hold anything.
    struct Decoder {
        /// Payload of the present data frame that has not come yet.
        private var rest: UInt64 = 0
        /// A message has begun whose last frame has not.
        private var isWithinMessage = false

        /// Takes the next piece from `buffer`; `nil` asks for more bytes.
        mutating func next(from buffer: inout ByteBuffer) throws(Fault) -> Piece? {
            while true {
                if rest > 0 {
                    let count = Int(min(rest, UInt64(buffer.readableBytes)))
                    guard count > 0, let data = buffer.readSlice(length: count) else { return nil }
                    rest -= UInt64(count)
                    return .data(data)
                }
                guard let header = try Header(buffer) else { return nil }
                if header.isControl {
                    guard buffer.readableBytes >= header.size + Int(header.length) else {
                        return nil
                    }
                    buffer.moveReaderIndex(forwardBy: header.size)
                    let payload = buffer.readSlice(length: Int(header.length)) ?? ByteBuffer()
                    switch header.opcode {
                    case .ping: return .ping(payload)
                    case .close: return .close
                    default: continue
                    }
                }
                guard (header.opcode == .continuation) == isWithinMessage else { throw .order }
                buffer.moveReaderIndex(forwardBy: header.size)
                isWithinMessage = !header.isFinal
                rest = header.length
            }
        }
    }

    private struct Header {
        let opcode: Opcode
        let isFinal: Bool
        let length: UInt64
        /// Bytes of the header itself.
        let size: Int

        var isControl: Bool { opcode.rawValue & 8 != 0 }

        /// `nil` asks for more bytes.
        init?(_ buffer: ByteBuffer) throws(Fault) {
            var bytes = buffer
            guard let first = bytes.readInteger(as: UInt8.self),
                let second = bytes.readInteger(as: UInt8.self)
            else { return nil }
            if first & 0x0F == 1 { throw .text }
            guard first & 0x70 == 0, let opcode = Opcode(rawValue: first & 0x0F) else {
                throw .reserved
            }
            guard second & 0x80 == 0 else { throw .masked }
            self.opcode = opcode
            isFinal = first & 0x80 != 0
            switch second {
            case 126:
                guard let length = bytes.readInteger(as: UInt16.self) else { return nil }
                guard length > 125 else { throw .length }
                self.length = UInt64(length)
            case 127:
                guard let length = bytes.readInteger(as: UInt64.self) else { return nil }
                guard length > 0xFFFF, length >> 63 == 0 else { throw .length }
                self.length = length
            default: length = UInt64(second)
            }
            size = buffer.readableBytes - bytes.readableBytes
            if isControl, !isFinal || length > 125 { throw .control }
        }
    }
}
