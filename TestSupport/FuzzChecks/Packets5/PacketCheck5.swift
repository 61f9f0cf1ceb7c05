import HermesTesting
import MQTTCodec

/// Any bytes yield packets of MQTT 5.0 or ``PacketFault``, as a slow decoder that builds values
/// finds; messages are sent on with exactly what a server passes on.
///
/// The first byte of an input seeds the splits of its stream and what is sent on with its messages,
/// the second chooses the sender and the largest packet; the rest is the stream. Checks besides that
/// splits change nothing, that an unfinished packet asks for exactly the bytes it lacks, that
/// decoded packets survive their encoding and are no larger in it, and that lookups find what the
/// properties hold.
enum PacketCheck5 {
    private static let sizeLimits = [Int.max, 1_024 * 1_024, 330 * 1_024, 200, 64, 16, 5, 2]

    /// The way in which a stream of packets ended.
    private enum Ending: Hashable {
        case incomplete(needed: Int)
        case fault(PacketFault)
    }

    private struct Reading: Hashable {
        var packets: [PacketContent5] = []
        /// Offset after the last packet.
        var end = 0
        var ending = Ending.incomplete(needed: 0)
    }

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        var program = ByteProgram(input)
        var random = SplitMix64(seed: UInt64(program.byte()))
        let choice = program.byte()
        let sender: PacketSender = choice & 8 == 0 ? .client : .server
        let maximumSize = sizeLimits[Int(choice % 8)]
        let stream = program.rest()

        let whole = try readWhole(stream, sender, maximumSize, &random)
        trace?("\(whole.packets.count) packets of \(stream.count) bytes, then \(whole.ending)")
        for packet in whole.packets { trace?("  \(packet)") }
        for largestPiece in [1, 40] {
            let pieces = readInPieces(stream, sender, maximumSize) {
                random.number(in: 1...largestPiece)
            }
            try CheckFailure.unless(
                pieces == whole,
                "in pieces of up to \(largestPiece) bytes the stream means \(pieces), "
                    + "at once \(whole)")
        }
    }

    /// Reads the stream at once, and compares each step with the model.
    private static func readWhole(
        _ stream: [UInt8], _ sender: PacketSender, _ maximumSize: Int, _ random: inout SplitMix64
    ) throws(CheckFailure) -> Reading {
        var reading = Reading()
        while true {
            let expected = SlowDecoder5.decode(
                stream[reading.end...], from: sender, maximumSize: maximumSize)
            switch step(stream, at: reading.end, sender, maximumSize) {
            case .packet(let packet, let end):
                let content = PacketContent5(packet, in: stream)
                try CheckFailure.unless(
                    expected == .packet(content, size: end - reading.end),
                    "\(content) up to \(end) at \(reading.end); the model says \(expected)")
                try PacketClaims5.check(
                    packet, content, stream, size: end - reading.end, &random)
                reading.packets.append(content)
                reading.end = end
            case .ending(let ending):
                try CheckFailure.unless(
                    isSame(ending, expected),
                    "\(ending) at \(reading.end); the model says \(expected)")
                reading.ending = ending
                return reading
            }
        }
    }

    private static func isSame(_ ending: Ending, _ expected: SlowDecoder5.Outcome) -> Bool {
        switch (ending, expected) {
        case (.incomplete(let needed), .incomplete(let expected)): needed == expected
        // Two faults in one packet: either may be named.
        case (.fault(let fault), .faults(let codes)): codes.contains(fault.reasonCode.rawValue)
        case (_, .packet), (.incomplete, .faults), (.fault, .incomplete): false
        }
    }

    /// Reads like a connection: keeps an incomplete packet and offers it again with more bytes.
    private static func readInPieces(
        _ stream: [UInt8], _ sender: PacketSender, _ maximumSize: Int, _ pieceSize: () -> Int
    ) -> Reading {
        var reading = Reading()
        var kept: [UInt8] = []
        var offset = 0
        while offset < stream.count {
            let end = min(stream.count, offset + pieceSize())
            kept += stream[offset..<end]
            offset = end
            while case .packet(let packet, let end) = advance(&reading, kept, sender, maximumSize) {
                reading.packets.append(PacketContent5(packet, in: kept))
                kept.removeFirst(end)
                reading.end += end
            }
            if case .fault = reading.ending { break }
        }
        return reading
    }

    /// One step from the front of what is kept, with the ending noted.
    private static func advance(
        _ reading: inout Reading, _ kept: [UInt8], _ sender: PacketSender, _ maximumSize: Int
    ) -> Step {
        let step = step(kept, at: 0, sender, maximumSize)
        if case .ending(let ending) = step { reading.ending = ending }
        return step
    }

    private enum Step {
        case packet(ControlPacket5, end: Int)
        case ending(Ending)
    }

    private static func step(
        _ bytes: [UInt8], at offset: Int, _ sender: PacketSender, _ maximumSize: Int
    ) -> Step {
        do throws(PacketFault) {
            let framing = try PacketDecoder5.frame(
                bytes.span.bytes, at: offset, from: sender, maximumSize: maximumSize)
            switch framing {
            case .incomplete(let needed): return .ending(.incomplete(needed: needed))
            case .frame(let frame):
                let packet = try PacketDecoder5.decode(frame, bytes.span.bytes, from: sender)
                return .packet(packet, end: frame.packet.end)
            }
        } catch {
            return .ending(.fault(error))
        }
    }
}
