import Addresses
import BrokerAPI
import HermesTesting
import MQTTCodec
import Structures
import Testing

@testable import BrokerRuntime

@Suite("Live traces")
struct TracerTests {
    // MARK: Packets

    /// The packets that a tap finds in bytes that come in parts of this size.
    private func packets(_ bytes: [UInt8], inParts size: Int) -> [String] {
        var tap = PacketTap()
        var found: [String] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            Array(bytes[start..<min(start + size, bytes.count)]).withUnsafeBytes {
                tap.feed($0) { found.append(PacketText($0, size: $1).text) }
            }
        }
        return found
    }

    @Test(
        "packets are told apart, however they are divided", arguments: [1, 2, 3, 7, 4_096, 100_000])
    func divided(size: Int) throws {
        let packets: [(PacketContent, String)] = [
            (
                .connect(PacketContent.Connect(clientID: "phone")),
                "CONNECT 3.1.1, client phone, clean session, keep alive 0 s"
            ),
            (
                .publish(
                    PacketContent.Publish(topic: "a", payload: [UInt8](repeating: 1, count: 9_000))),
                "PUBLISH a, QoS 0, 9000 bytes"
            ),
            (.pingreq, "PINGREQ"),
            (
                .publish(
                    PacketContent.Publish(
                        .atLeastOnce(7, isDuplicate: true), topic: "b/c", payload: [1, 2],
                        retain: true)),
                "PUBLISH b/c, QoS 1, id 7, DUP, 2 bytes, RETAIN"
            ),
            (.pubrel(9), "PUBREL id 9"),
            (.disconnect, "DISCONNECT"),
        ]
        let bytes = try packets.flatMap { try $0.0.encoded() }
        #expect(self.packets(bytes, inParts: size) == packets.map(\.1))
    }

    @Test(
        "bytes that are no packet are told as such, and what follows is looked at",
        arguments: [
            ([0x30, 0xFF, 0xFF, 0xFF, 0xFF], "bytes that are no packet"),
            ([0x00, 0x00], "bytes that are no packet"),
            ([0x40, 0x01, 0x00], "PUBACK, 3 bytes, malformed"),
            ([0x82, 0x02, 0x00, 0x01], "SUBSCRIBE, 4 bytes, malformed"),
            ([0x10, 0x02, 0x00, 0x09], "CONNECT, 4 bytes, malformed"),
        ] as [([UInt8], String)])
    func malformed(bytes: [UInt8], text: String) {
        #expect(packets(bytes + [0xC0, 0x00], inParts: 1) == [text, "PINGREQ"])
    }

    @Test("any bytes in any parts leave a tap with a bounded memory and no trap")
    func anyBytes() {
        var random = SplitMix64(seed: 7)
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 1...64, using: &random)).map { _ in
                UInt8.random(in: .min ... .max, using: &random)
            }
            _ = packets(bytes, inParts: Int.random(in: 1...9, using: &random))
        }
    }

    // MARK: Traces

    private static let now = MonotonicTime(milliseconds: 1_000_000)

    private func texts(_ tracer: inout Tracer, _ id: UInt32, after milliseconds: UInt64 = 0)
        -> [String]
    {
        let lines = tracer.take(
            id, at: Self.now.advanced(byMilliseconds: milliseconds), wallClockMs: 5_000)
        return lines?.lines.map(\.text) ?? []
    }

    @Test("a trace is bounded in its rate, and tells what it left out")
    func rate() {
        var tracer = Tracer()
        let begun = tracer.begin(
            TraceRequest(.client("a"), linesPerSecond: 2), at: Self.now)
        let id = begun ?? 0
        for number in 0..<5 {
            tracer.event("event \(number)", client: Array("a".utf8), atMs: 5_000)
        }
        tracer.event("another second", client: Array("a".utf8), atMs: 6_000)
        tracer.event("of another", client: Array("b".utf8), atMs: 6_000)
        let lines = texts(&tracer, id)
        #expect(lines == ["event 0", "event 1", "another second", "3 lines are left out"])
        #expect(texts(&tracer, id).isEmpty)
    }

    @Test("a trace is bounded in its bytes")
    func bytes() {
        var tracer = Tracer()
        let begun = tracer.begin(
            TraceRequest(.client("a"), linesPerSecond: 1_000), at: Self.now)
        let long = String(repeating: "x", count: 60_000)
        for second in 0..<60 {
            tracer.event(long, client: Array("a".utf8), atMs: Int64(second) * 1_000)
        }
        let lines = texts(&tracer, begun ?? 0)
        #expect(lines.count == 18)
        #expect(lines.last == "43 lines are left out")
    }

    @Test("traces end by their time and when nobody asks, and there are only so many")
    func ends() {
        var tracer = Tracer()
        var ids: [UInt32] = []
        for _ in 0..<TraceRequest.most {
            ids.append(tracer.begin(TraceRequest(.client("a"), seconds: 10), at: Self.now) ?? 0)
        }
        let oneMore = tracer.begin(TraceRequest(.client("a")), at: Self.now)
        #expect(oneMore == nil)
        let over = tracer.take(
            ids[0], at: Self.now.advanced(byMilliseconds: 10_000), wallClockMs: 1)
        #expect(over?.isOver == true)
        #expect(over?.lines.map(\.text) == ["the time is over"])
        let late = Self.now.advanced(byMilliseconds: 15_001)
        #expect(Set(tracer.abandoned(at: late)) == Set(ids.dropFirst()))
        for id in ids { tracer.end(id) }
        #expect(!tracer.isActive)
        let gone = tracer.take(ids[1], at: late, wallClockMs: 1)
        #expect(gone == nil)
    }

    @Test("a connection is looked at for its address, its client, or both")
    func taps() throws {
        var tracer = Tracer()
        let address = IPAddress(ipv4: 0x0A01_0203, port: 9)
        let byAddress = tracer.begin(TraceRequest(.address("10.1.0.0/16")), at: Self.now) ?? 0
        let byClient = tracer.begin(TraceRequest(.client("a")), at: Self.now) ?? 0
        let (near, far) = (Handle(packed: 1 << 32 | 1), Handle(packed: 1 << 32 | 2))
        tracer.watch(near, address, client: Array("a".utf8))
        tracer.watch(far, IPAddress(ipv4: 0x0B00_0001, port: 9), client: nil)
        let ping: [UInt8] = [0xC0, 0x00]
        ping.withUnsafeBytes {
            tracer.received(near, $0, atMs: 5_000)
            tracer.received(far, $0, atMs: 5_000)
        }
        #expect(texts(&tracer, byAddress) == ["PINGREQ"])
        #expect(texts(&tracer, byClient) == ["PINGREQ"])
        #expect(!tracer.isUnknown(far))
        #expect(!tracer.watchesOutput(of: far))
        // Output that was seen is not told again.
        let pong: [UInt8] = [0xD0, 0x00, 0xD0, 0x00]
        pong.withUnsafeBytes { pong in
            tracer.output(near, [UnsafeRawBufferPointer(rebasing: pong[..<2])], atMs: 5_000)
            tracer.unsent(near, 2)
            tracer.output(near, [pong], atMs: 5_000)
        }
        #expect(texts(&tracer, byClient) == ["PINGRESP", "PINGRESP"])
        tracer.forget(near)
        #expect(tracer.isUnknown(near))
    }

    @Test("packets beyond a trace's lines become no text, and are counted")
    func room() throws {
        var tracer = Tracer()
        let id =
            tracer.begin(TraceRequest(.client("a"), linesPerSecond: 5), at: Self.now) ?? 0
        let handle = Handle(packed: 1 << 32 | 1)
        tracer.watch(handle, IPAddress(ipv4: 0x0A01_0203, port: 9), client: Array("a".utf8))
        let burst = [[UInt8]](repeating: [0xC0, 0x00], count: 1_000).flatMap { $0 }
        let looked = burst.withUnsafeBytes { tracer.received(handle, $0, atMs: 5_000) }
        #expect(looked.told == 5 && looked.untold == 995 && looked.bytes == 2_000)
        #expect(tracer.room(of: id, atMs: 5_999) == 0)
        #expect(
            texts(&tracer, id)
                == [String](repeating: "PINGREQ", count: 5) + ["995 lines are left out"])
        // The next second has lines of its own.
        #expect(tracer.room(of: id, atMs: 6_000) == 5)
        let later = burst.prefix(4).withUnsafeBytes { tracer.output(handle, [$0], atMs: 6_000) }
        #expect(later.told == 2 && later.untold == 0)
    }
}
