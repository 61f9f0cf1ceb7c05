import HermesTesting
import MQTTCodec

/// Any bytes yield packets or ``MalformedPacket``; decoded packets mean exactly what was sent.
///
/// The first byte of an input seeds the splits of its stream, the second chooses the largest
/// packet; the rest is the stream. Checks that nothing traps; that frames lie within stream and
/// limit; that a packet encodes to the bytes it was decoded from; that splits change no packet and
/// no error; and that an incomplete packet asks for exactly the bytes it lacks.
enum PacketCheck {
    private static let sizeLimits = [Int.max, 1_024 * 1_024, 330 * 1_024, 200, 64, 16, 5, 2]

    /// The way in which a stream of packets ended.
    private enum Ending: Hashable {
        case incomplete(needed: Int)
        case malformed(MalformedPacket)
    }

    /// The result of reading a stream.
    private struct Reading: Hashable {
        var packets: [PacketContent] = []
        /// Each packet's first byte.
        var starts: [Int] = []
        /// Offset after the last packet.
        var end = 0
        var ending = Ending.incomplete(needed: 0)
    }

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        var program = ByteProgram(input)
        let seed = program.byte()
        let maximumSize = sizeLimits[Int(program.byte()) % sizeLimits.count]
        let stream = program.rest()

        let whole = try read(stream, maximumSize)
        trace?("\(whole.packets.count) packets of \(stream.count) bytes, then \(whole.ending)")
        for packet in whole.packets { trace?("  \(packet)") }

        var random = SplitMix64(seed: UInt64(seed))
        for largestPiece in [1, 3, 40] {
            let pieces = try readInPieces(stream, maximumSize) {
                random.number(in: 1...largestPiece)
            }
            try CheckFailure.unless(
                pieces == whole,
                "in pieces of up to \(largestPiece) bytes the stream means \(pieces), "
                    + "at once \(whole)")
        }
    }

    private static func read(
        _ stream: [UInt8], _ maximumSize: Int
    ) throws(CheckFailure) -> Reading {
        var reading = Reading()
        reading.ending = try read(stream, maximumSize, &reading)
        return reading
    }

    /// Reads like a connection: keeps an incomplete packet and offers it again with more bytes.
    private static func readInPieces(
        _ stream: [UInt8], _ maximumSize: Int, _ pieceSize: () -> Int
    ) throws(CheckFailure) -> Reading {
        var reading = Reading()
        var kept: [UInt8] = []
        var offset = 0
        while offset < stream.count {
            let end = min(stream.count, offset + pieceSize())
            kept += stream[offset..<end]
            offset = end
            let before = reading.end
            reading.ending = try read(kept, maximumSize, &reading)
            kept.removeFirst(reading.end - before)
            if case .malformed = reading.ending { break }
        }
        return reading
    }

    /// Reads `bytes`, which continue the stream after `reading`.
    private static func read(
        _ bytes: [UInt8], _ maximumSize: Int, _ reading: inout Reading
    ) throws(CheckFailure) -> Ending {
        let base = reading.end
        var offset = 0
        while true {
            let framing: PacketDecoder.Framing
            do throws(MalformedPacket) {
                framing = try PacketDecoder.frame(
                    bytes.span.bytes, at: offset, maximumSize: maximumSize)
            } catch {
                return .malformed(error)
            }
            let frame: PacketDecoder.Frame
            switch framing {
            case .incomplete(let needed):
                try checkNeed(needed, bytes, offset, maximumSize)
                return .incomplete(needed: needed)
            case .frame(let found):
                frame = found
            }
            let packet: ControlPacket
            do throws(MalformedPacket) {
                packet = try PacketDecoder.decode(frame, bytes.span.bytes)
            } catch {
                return .malformed(error)
            }
            try checkFrame(frame, offset, bytes.count, maximumSize)
            let content = PacketContent(packet, in: bytes)
            try CheckFailure.unless(
                packet.type == frame.type,
                "\(frame.type) decoded as \(packet.type)")
            try checkEncoding(
                content, [UInt8](bytes[frame.packet.start..<frame.packet.end]))
            reading.packets.append(content)
            reading.starts.append(base + offset)
            offset = frame.packet.end
            reading.end = base + offset
        }
    }

    private static func checkFrame(
        _ frame: PacketDecoder.Frame, _ offset: Int, _ available: Int, _ maximumSize: Int
    ) throws(CheckFailure) {
        try CheckFailure.unless(
            frame.packet.start == offset && frame.packet.end <= available
                && frame.packet.count <= maximumSize && frame.packet.count >= 2
                && frame.body.start - frame.packet.start >= 2 && frame.body.count >= 0
                && frame.body.end == frame.packet.end,
            "\(frame) at \(offset) of \(available) bytes, at most \(maximumSize)")
    }

    private static func checkEncoding(
        _ content: PacketContent, _ wire: [UInt8]
    ) throws(CheckFailure) {
        let encoded: [UInt8]
        let again: [PacketContent]
        do throws(MalformedPacket) {
            encoded = try content.encoded()
            again = try PacketContent.decode(encoded)
        } catch {
            throw CheckFailure("\(content) does not survive its own encoding: \(error)")
        }
        try CheckFailure.unless(again == [content], "\(content) decodes again as \(again)")
        // A remaining length may be encoded longer than needed (section 2.2.3); the encoder never
        // does so.
        var bodyStart = 1
        while bodyStart < wire.count, wire[bodyStart] & 0x80 != 0 { bodyStart += 1 }
        let body = wire[min(bodyStart + 1, wire.count)...]
        try CheckFailure.unless(
            encoded.first == wire.first && encoded.suffix(body.count).elementsEqual(body),
            "\(WireBytes(wire)) encodes as \(WireBytes(encoded))")
    }

    /// An incomplete packet asks for its whole size once its length is known, and for no more.
    private static func checkNeed(
        _ needed: Int, _ bytes: [UInt8], _ offset: Int, _ maximumSize: Int
    ) throws(CheckFailure) {
        guard needed > 0 else { return }
        let available = bytes.count - offset
        try CheckFailure.unless(
            needed > available && needed <= maximumSize,
            "\(needed) bytes needed with \(available) there, at most \(maximumSize)")
        // The check itself allocates nothing for a length that a peer only announces.
        guard needed <= 64 * 1_024 else { return }
        let completed = bytes[offset...] + [UInt8](repeating: 0, count: needed - available)
        let framing = try? PacketDecoder.frame(
            [UInt8](completed).span.bytes, at: 0, maximumSize: maximumSize)
        guard case .frame(let frame)? = framing, frame.packet.count == needed else {
            throw CheckFailure("\(needed) bytes gave \(String(describing: framing)) at \(offset)")
        }
    }
}
