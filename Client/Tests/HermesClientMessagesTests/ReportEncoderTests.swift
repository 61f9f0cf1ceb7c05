import HermesClientCore
import HermesClientMessages
import Testing

@Suite("The client's report")
struct ReportEncoderTests {
    @Test("each counter goes into the field of its name")
    func counters() throws {
        var counters = ClientCounters()
        counters.received = 1
        counters.duplicates = 2
        counters.connects = 3
        counters.lostConnections = 4
        counters.lostSessions = 5
        counters.droppedAtMostOnce = 6
        counters.published = 7
        counters.sinceUnixMilliseconds = 8
        let expected = SampleReport(
            received: 1, duplicates: 2, losses: [("c", 9)], connects: 3, heartbeatSeconds: 120,
            sinceMs: 8, network: "wifi", lostConnections: 4, lostSessions: 5, droppedAtMostOnce: 6,
            published: 7)
        #expect(
            ReportEncoder.encode(
                counters, losses: [(Array("c".utf8), 9)], heartbeatSeconds: 120,
                network: Array("wifi".utf8)) == expected.encoded)
    }

    @Test("of too many channels those with the most losses are told")
    func bounded() throws {
        let losses = (1...1_000).map { number in
            (
                channel: Array("\(number)/".utf8) + [UInt8](repeating: 0x61, count: 1_019),
                count: UInt64(number)
            )
        }
        let bytes = ReportEncoder.encode(
            ClientCounters(), losses: losses, heartbeatSeconds: 0, network: nil)
        #expect(bytes.count < 16 << 10)
        let report = try Hermes_V1_ClientReport(serializedBytes: bytes)
        #expect(report.losses.count == 8)
        #expect(report.losses.values.min() == 993)
    }
}
