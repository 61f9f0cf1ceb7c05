import HermesTesting
import MQTTCodec
import Testing

@Suite("Malformed packets")
struct MalformedPacketTests {
    @Test("is refused for the rule that it breaks", arguments: MalformedTable.all)
    func refused(row: MalformedRow) {
        #expect(throws: row.error) { try decodeFirst(row.wire.bytes) }
        #expect(!row.error.statement.isEmpty)
        #expect(!row.error.explanation.isEmpty)
    }

    @Test("is refused in the middle of a stream too", arguments: MalformedTable.all)
    func refusedBehindAnother(row: MalformedRow) {
        let stream = [0xC0, 0x00] + row.wire.bytes + [0xC0, 0x00]
        #expect(throws: row.error) { try PacketContent.decode(stream) }
        #expect(throws: row.error) { try decodeFirst(stream, at: 2) }
    }

    @Test("never yields a packet when cut, nor another error", arguments: MalformedTable.all)
    func cutAnywhere(row: MalformedRow) {
        for count in 0..<row.wire.count {
            do throws(MalformedPacket) {
                let packet = try decodeFirst(Array(row.wire.bytes[..<count]))
                #expect(packet == nil, "cut at \(count)")
            } catch {
                // Rejected early: the violation is in the bytes so far.
                #expect(error == row.error, "cut at \(count)")
            }
        }
    }

    @Test("outnumber the valid ones")
    func balance() {
        #expect(MalformedTable.all.count > GoldenTable.all.count)
    }

    @Test("every first byte is judged before anything else is read")
    func firstBytes() {
        for first in UInt8.min...UInt8.max {
            let expected: MalformedPacket? =
                switch (first >> 4, first & 0x0F) {
                case (0, _), (15, _): .reservedPacketType
                case (3, _): nil
                case (6, 2), (8, 2), (10, 2): nil
                case (6, _), (8, _), (10, _): .reservedFlags
                case (_, 0): nil
                default: .reservedFlags
                }
            do throws(MalformedPacket) {
                let framing = try PacketDecoder.frame(
                    [first].span.bytes, at: 0, maximumSize: anySize)
                #expect(framing == .incomplete(needed: 0))
                #expect(expected == nil, "first byte \(first)")
            } catch {
                #expect(error == expected, "first byte \(first)")
            }
        }
    }

    @Test("every set of connect flags is taken or refused as table 3.1.2.3 says")
    func connectFlags() throws {
        for flags in UInt8.min...UInt8.max {
            let hasWill = flags & 0x04 != 0
            let willQoS = flags >> 3 & 3
            let hasUserName = flags & 0x80 != 0
            let hasPassword = flags & 0x40 != 0
            var body: [UInt8] = [0, 4, 0x4D, 0x51, 0x54, 0x54, 4, flags, 0, 9, 0, 1, 0x61]
            if hasWill { body += [0, 1, 0x77, 0, 1, 0x6D] }
            if hasUserName { body += [0, 1, 0x75] }
            if hasPassword { body += [0, 1, 0x70] }
            let isAllowed =
                flags & 1 == 0 && willQoS < 3 && (hasWill || flags & 0x38 == 0)
                && (hasUserName || !hasPassword)
            let wire = WireBytes.packet(0x10, body).bytes
            guard isAllowed else {
                #expect(throws: MalformedPacket.self, "flags \(flags)") { try decodeFirst(wire) }
                continue
            }
            var expected = PacketContent.Connect(clientID: "a")
            expected.cleanSession = flags & 2 != 0
            expected.keepAlive = 9
            if hasWill {
                expected.will = .init(
                    topic: "w", message: [0x6D], qos: try #require(QoS(rawValue: willQoS)),
                    retain: flags & 0x20 != 0)
            }
            if hasUserName { expected.userName = [0x75] }
            if hasPassword { expected.password = [0x70] }
            #expect(try decodeFirst(wire) == .connect(expected), "flags \(flags)")
        }
    }

    @Test(
        "a body that is cut, with a length that says so, is no whole packet",
        arguments: GoldenTable.all)
    func shortenedBody(row: GoldenPacket) {
        let body = Array(row.wire.bytes[2...])
        for count in 0..<body.count {
            let wire = WireBytes.packet(row.wire.bytes[0], Array(body[..<count])).bytes
            do throws(MalformedPacket) {
                let packet = try decodeFirst(wire)
                // Only a list or payload may end earlier; it then has less content.
                switch packet {
                case .publish, .subscribe, .suback, .unsubscribe:
                    #expect(packet != row.content)
                default: Issue.record("\(WireBytes(wire)) was taken")
                }
            } catch {
                #expect(
                    [.truncated, .noTopicFilter, .noTopicFilterToRemove].contains(error),
                    "\(WireBytes(wire))")
            }
        }
    }

    @Test(
        "a byte behind the last field is no part of a packet", arguments: GoldenTable.all,
        [0, 0xFF] as [UInt8])
    func lengthenedBody(row: GoldenPacket, extra: UInt8) throws {
        let wire = WireBytes.packet(row.wire.bytes[0], row.wire.bytes[2...] + [extra]).bytes
        switch row.content {
        case .publish(var publish):
            publish.payload.append(extra)
            #expect(try decodeFirst(wire) == .publish(publish))
        case .suback(let identifier, let codes) where extra == 0:
            #expect(try decodeFirst(wire) == .suback(identifier, codes + [0]))
        case .suback:
            #expect(throws: MalformedPacket.returnCode) { try decodeFirst(wire) }
        case .subscribe, .unsubscribe:
            #expect(throws: MalformedPacket.truncated) { try decodeFirst(wire) }
        case .connect, .connack, .puback, .pubrec, .pubrel, .pubcomp, .unsuback, .pingreq,
            .pingresp, .disconnect:
            #expect(throws: MalformedPacket.trailingBytes) { try decodeFirst(wire) }
        }
    }
}
