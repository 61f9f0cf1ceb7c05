import BrokerAPI
import Testing

@testable import OperatorCLI

@Suite("hermesctl top and trace")
struct WatchCommandTests {
    private static func status(
        received: UInt64, dropped: [String: UInt64], startedAtMs: Int64 = 1
    ) -> BrokerStatus {
        var figures = BrokerFigures()
        figures.version = "1.0"
        figures.startedAtMs = startedAtMs
        figures.durability = "none"
        var status = BrokerStatus(figures)
        status.publishesReceived = received
        status.dropped = dropped
        return status
    }

    @Test("the second look tells what happened between, by the second")
    func rates() {
        let first = TopFrame(
            status: Self.status(received: 100, dropped: ["offline": 1]), clients: [], atMs: 1_000)
        let second = TopFrame(
            status: Self.status(received: 180, dropped: ["offline": 4, "x\u{1B}": 1]),
            clients: [.example("p\u{1B}", queued: 3)], atMs: 5_000)
        let text = second.rendered(after: first, sortedBy: .queued, width: nil)
        #expect(text.contains("messages  20/s in, 0/s out"))
        #expect(text.contains("dropped   offline 4 (+3), x\\u{1B} 1 (+1)"))
        #expect(text.contains("p\\u{1B}"))
        #expect(!text.contains("\u{1B}"))
        let alone = first.rendered(after: nil, sortedBy: .queued, width: nil)
        #expect(alone.contains("messages  100 in"))
        #expect(alone.contains("dropped   offline 1\n"))
    }

    @Test("a broker that was started anew between two looks gives no rates")
    func restarted() {
        let first = TopFrame(
            status: Self.status(received: 100, dropped: ["offline": 9]), clients: [], atMs: 1_000)
        let second = TopFrame(
            status: Self.status(received: 5, dropped: ["offline": 1], startedAtMs: 2), clients: [],
            atMs: 5_000)
        let text = second.rendered(after: first, sortedBy: .queued, width: nil)
        #expect(text.contains("messages  5 in"))
        #expect(text.contains("dropped   offline 1\n"))
    }

    @Test("lines of a trace are told with the time of day, and escaped")
    func trace() {
        let line = TraceLine(
            atMs: 86_400_000 + 3_723_045, kind: .received, clientID: "a\n", address: "1.2.3.4:5",
            text: "PUBLISH \u{1B}", payload: "x\ty")
        #expect(
            TraceOptions.rendered(line)
                == "01:02:03.045  a\\n  sends PUBLISH \\u{1B}: x\\ty")
        let stranger = TraceLine(atMs: 0, kind: .sent, address: "1.2.3.4:5", text: "CONNACK 5")
        #expect(TraceOptions.rendered(stranger) == "00:00:00.000  1.2.3.4:5  gets CONNACK 5")
        let own = TraceLine(atMs: -1, kind: .trace, text: "the time is over")
        #expect(TraceOptions.rendered(own) == "23:59:59.999  -- the time is over")
    }
}
