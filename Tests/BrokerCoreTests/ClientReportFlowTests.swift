import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

@Suite("Reports of clients, and lost connections")
struct ClientReportFlowTests {
    /// Times at which counters begin: before and after the start of ``ShardLink``'s broker.
    private static let (before, after): (UInt64, UInt64) = (1_600_000_000_000, 1_700_000_000_001)

    private static func varint(_ number: UInt64) -> [UInt8] {
        number < 128 ? [UInt8(number)] : [UInt8(number & 0x7F) | 0x80] + varint(number >> 7)
    }

    /// `hermes.v1.ClientReport`.
    private static func report(
        received: UInt64, duplicates: UInt64 = 0, losses: UInt64 = 0, sinceMs: UInt64 = after,
        network: String = ""
    ) -> [UInt8] {
        let loss = [0x0A, 1, 0x63, 0x10] + varint(losses)
        return [0x08] + varint(received) + [0x10] + varint(duplicates)
            + [0x1A] + varint(UInt64(loss.count)) + loss + [0x28, 240]
            + [1, 0x30] + varint(sinceMs) + [0x3A] + varint(UInt64(network.utf8.count))
            + Array(network.utf8)
    }

    private static func send(
        _ link: ShardLink, _ handle: Handle, _ payload: [UInt8], of client: String,
        qos: QoS = .atMostOnce
    ) throws {
        let delivery: Delivery =
            switch qos {
            case .atMostOnce: .atMostOnce
            case .atLeastOnce: .atLeastOnce(1, isDuplicate: false)
            case .exactlyOnce: .exactlyOnce(1, isDuplicate: false)
            }
        try link.send(
            handle,
            .publish(
                PacketContent.Publish(
                    delivery, topic: "hermes/reports/\(client)", payload: payload, retain: false)))
    }

    private static func outcomes(_ link: ShardLink) -> [String: UInt64] {
        link.shard.arrivals(of: "").total.reports.filter { $0.value > 0 }
    }

    @Test("a report is read and delivered, whatever its QoS", arguments: [0, 1, 2] as [UInt8])
    func read(qos: UInt8) throws {
        let qos = try #require(QoS(rawValue: qos))
        let link = ShardLink()
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("hermes/reports/#", .atMostOnce))
        _ = try link.take(watcher)
        let phone = try link.connect("phone", cleanSession: false)
        let bytes = Self.report(received: 10, duplicates: 1, losses: 3, network: "wifi")
        try Self.send(link, phone, bytes, of: "phone", qos: qos)
        // A repeated PUBLISH of QoS 2 is read once.
        if qos == .exactlyOnce { try Self.send(link, phone, bytes, of: "phone", qos: qos) }
        let kept = link.shard.report(of: "phone")
        let report = try #require(kept)
        #expect(report.counts.received == 10)
        #expect(report.counts.losses == 3)
        #expect(report.arrivalRate == 0.75)
        #expect(report.heartbeatSeconds == 240)
        #expect(report.network == "wifi")
        #expect(report.reportedAtMs == link.shard.wallClockMs)
        #expect(report.sinceMs == Int64(Self.after))
        #expect(Self.outcomes(link) == ["taken": 1])
        let detail = link.shard.client("phone") { _ in "" }
        #expect(detail?.report == report)
        let delivered = try link.take(watcher).contains { packet in
            if case .publish(let publish) = packet { publish.payload == bytes } else { false }
        }
        #expect(delivered)
    }

    @Test("only its own client's report is believed, and other topics are none")
    func foreign() throws {
        let link = ShardLink()
        let phone = try link.connect("phone")
        let bytes = Self.report(received: 1)
        for client in ["phones", "phon", "Phone", "phone/"] {
            try Self.send(link, phone, bytes, of: client)
        }
        #expect(Self.outcomes(link) == ["foreign": 4])
        for topic in ["hermes/r", "hermes/report/phone", "hermes/reports/", "hermes/reports"] {
            try link.send(phone, .publish(topic, "x"))
        }
        #expect(Self.outcomes(link) == ["foreign": 4])
        #expect(link.shard.figures.feature("hermes_clients_with_reports") == 0)
    }

    @Test("malformed and too large reports are counted, and the former one stays")
    func wrong() throws {
        let link = ShardLink { $0.maxPacketBytes = 200_000 }
        let phone = try link.connect("phone")
        try Self.send(link, phone, Self.report(received: 5), of: "phone")
        try Self.send(link, phone, [0x08], of: "phone")
        let padding = [UInt8](repeating: 0x08, count: ReportReader.mostBytes + 1)
        try Self.send(link, phone, padding, of: "phone")
        #expect(Self.outcomes(link) == ["taken": 1, "malformed": 1, "too_large": 1])
        #expect(link.shard.report(of: "phone")?.counts.received == 5)
    }

    @Test("sums are those of the newest reports; growth goes on over restarts of a client")
    func sums() throws {
        let link = ShardLink()
        let (one, two) = (try link.connect("1"), try link.connect("2"))
        // Counters that began before the broker: what they had counted is no growth.
        try Self.send(link, one, Self.report(received: 100, sinceMs: Self.before), of: "1")
        try Self.send(link, two, Self.report(received: 10, losses: 2), of: "2")
        var figures = link.shard.figures
        #expect(figures.reportedGrowth.received == 10)
        try Self.send(link, one, Self.report(received: 107, sinceMs: Self.before), of: "1")
        // New counters: the app was installed anew.
        try Self.send(
            link, two, Self.report(received: 4, losses: 1, sinceMs: Self.after + 1), of: "2")
        figures = link.shard.figures
        #expect(figures.reportedGrowth.received == 21)
        #expect(figures.reportedGrowth.losses == 3)
        let total = link.shard.arrivals(of: "1").total
        #expect(total.clients == 2)
        #expect(total.counts.received == 111)
        #expect(total.counts.losses == 1)
        #expect(total.arrivalRate == 111.0 / 112)
        // Counters that go back within one series are no growth, and no trap.
        try Self.send(link, one, Self.report(received: 1, sinceMs: Self.before), of: "1")
        #expect(link.shard.figures.reportedGrowth.received == 21)
        #expect(link.shard.arrivals(of: "1").total.counts.received == 5)
    }

    @Test("reports outlive sessions; beyond the limit the oldest goes, and 0 reads none")
    func bounded() throws {
        let link = ShardLink { $0.reportBytes = 2 * 161 }
        // Later than the counters began.
        link.advance(milliseconds: 1_000)
        for client in ["a", "b"] {
            let handle = try link.connect(client)
            try Self.send(link, handle, Self.report(received: 1), of: client)
            link.lose(handle)
        }
        let ended = link.shard.client("a") { _ in "" }
        #expect(ended == nil)
        let again = try link.connect("a")
        try Self.send(link, again, Self.report(received: 2), of: "a")
        let third = try link.connect("c")
        try Self.send(link, third, Self.report(received: 4), of: "c")
        #expect(link.shard.report(of: "b") == nil)
        let page = link.shard.arrivals(from: 0, limit: 9, withLosses: false)
        #expect(Set(page.clients.map(\.clientID)) == ["a", "c"])
        #expect(page.total.counts.received == 6)
        #expect(page.total.reports["forgotten"] == 1)
        #expect(link.shard.figures.feature("hermes_report_bytes") == 2 * 161)
        // The records are as large as they count.
        #expect(MemoryLayout<ClientReports.Record>.stride + 16 <= 160)
        // What the forgotten report had told is no growth again.
        let growth = link.shard.figures.reportedGrowth.received
        try Self.send(link, try link.connect("b"), Self.report(received: 3), of: "b")
        #expect(link.shard.figures.reportedGrowth.received == growth)
        #expect(link.shard.report(of: "b")?.counts.received == 3)
        try Self.send(link, third, Self.report(received: 4), of: "c")
        link.shard.limits.reportBytes = 161
        link.shard.trimReports()
        #expect(link.shard.figures.feature("hermes_clients_with_reports") == 1)
        link.shard.limits.reportBytes = 0
        try Self.send(link, third, Self.report(received: 9), of: "c")
        #expect(link.shard.report(of: "c")?.counts.received == 4)
    }

    @Test("pages lead from one to the next, and hold only clients with losses if asked")
    func pages() throws {
        let link = ShardLink()
        for index in 0..<5 {
            let handle = try link.connect("\(index)")
            let bytes = Self.report(received: 1, losses: UInt64(index % 2))
            try Self.send(link, handle, bytes, of: "\(index)")
        }
        let first = link.shard.arrivals(from: 0, limit: 2, withLosses: false)
        #expect(first.clients.map(\.clientID) == ["0", "1"])
        let next = try #require(first.next.flatMap { UInt32($0) })
        let rest = link.shard.arrivals(from: next, limit: 9, withLosses: false)
        #expect(rest.clients.map(\.clientID) == ["2", "3", "4"])
        #expect(rest.next == nil)
        let lossy = link.shard.arrivals(from: 0, limit: 9, withLosses: true)
        #expect(lossy.clients.map(\.clientID) == ["1", "3"])
        #expect(link.shard.arrivals(from: .max, limit: 9, withLosses: true).clients.isEmpty)
    }

    @Test("lost connections count by cause, network and silence; wanted ends do not")
    func lostConnections() throws {
        let link = ShardLink { $0.maxKeepAlive = nil }
        func heartbeat() -> Int? { link.shard.client("phone") { _ in "" }?.heartbeatSeconds }
        func lost() -> [String] {
            link.shard.figures.lostConnections.map { lost in
                let bucket: (bound: Int, count: UInt64)? = lost.silence.cumulative.first {
                    $0.count > 0
                }
                let below = bucket?.bound ?? 0
                return "\(lost.cause.name) \(lost.network) \(lost.silence.count) below \(below)"
            }
        }
        let wanted = try link.connect("wanted")
        try link.send(wanted, .disconnect)
        let stranger = link.open()
        link.lose(stranger)
        #expect(lost() == [])
        let phone = try link.connect("phone", cleanSession: false) { $0.keepAlive = 100 }
        try Self.send(link, phone, Self.report(received: 1, network: "cell"), of: "phone")
        link.advance(milliseconds: 100_000)
        try link.send(phone, .pingreq)
        #expect(heartbeat() == 100)
        link.advance(milliseconds: 150_000)
        #expect(lost() == ["keep_alive cell 1 below 180"])
        let anew = try link.connect("phone", cleanSession: false)
        #expect(heartbeat() == nil)
        link.advance(milliseconds: 20_000)
        _ = try link.connect("phone", cleanSession: false)
        #expect(link.closed.contains(anew))
        let other = try link.connect("other")
        link.advance(milliseconds: 3_600_000)
        link.lose(other)
        #expect(
            lost() == [
                "keep_alive cell 1 below 180", "peer_closed  1 below 0",
                "taken_over cell 1 below 30",
            ])
    }

    @Test("one client brings in four names at most")
    func newNames() throws {
        let link = ShardLink()
        let phone = try link.connect("phone")
        for number in 0..<6 {
            let bytes = Self.report(received: 1, network: "n\(number)")
            try Self.send(link, phone, bytes, of: "phone")
            #expect(
                link.shard.report(of: "phone")?.network == (number < 4 ? "n\(number)" : "other"))
        }
        let other = try link.connect("2")
        try Self.send(link, other, Self.report(received: 1, network: "n5"), of: "2")
        #expect(link.shard.report(of: "2")?.network == "n5")
    }

    @Test("networks beyond the first 64 are others; names that are none count as none")
    func networks() throws {
        var labels = NetworkLabels()
        func number(_ name: [UInt8]) -> UInt8 {
            name.withUnsafeBytes { labels.number(of: $0) }
        }
        for name in [[], [0xFF], [0x41, 10], Array(repeating: 0x41, count: 33)] as [[UInt8]] {
            let none = number(name)
            #expect(none == NetworkLabels.none)
        }
        for index in 1...64 {
            let first = number(Array("n\(index)".utf8))
            let again = number(Array("n\(index)".utf8))
            #expect(first == UInt8(index))
            #expect(again == UInt8(index))
        }
        var few = NetworkLabels()
        let reserved = Array("other".utf8).withUnsafeBytes { few.number(of: $0) }
        #expect(reserved == NetworkLabels.others)
        let (beyond, known) = (number([0x41]), number(Array("n64".utf8)))
        #expect(labels.name(beyond) == "other")
        #expect(labels.name(known) == "n64")
        #expect(labels.name(NetworkLabels.none) == "")
    }
}
