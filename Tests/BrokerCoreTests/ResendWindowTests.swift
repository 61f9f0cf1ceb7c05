import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

/// A broker that crashed does not know which messages it had sent; and a reload can lower
/// `limits.max_in_flight`. Then more messages are in flight than the window holds.
@Suite("Messages sent again, within the in-flight window")
struct ResendWindowTests {
    /// A client with 40 messages in flight that left, and for which 10 more wait.
    private static func link(_ qos: QoS) throws -> ShardLink {
        let link = ShardLink { $0.maxInFlight = 40 }
        let phone = try link.subscriber("phone", to: "orders", qos)
        let publisher = try link.connect("publisher")
        for number in 0..<50 {
            try link.send(publisher, .publish("orders", "\(number)", qos: qos))
            if qos == .exactlyOnce { try link.send(publisher, .pubrel(1)) }
        }
        let sent = try link.take(phone)
        #expect(sent.count == 40)
        link.lose(phone)
        link.shard.limits.maxInFlight = 7
        return link
    }

    private static func publishes(_ packets: [PacketContent]) -> [PacketContent.Publish] {
        packets.compactMap { if case .publish(let publish) = $0 { publish } else { nil } }
    }

    private static func identifier(_ publish: PacketContent.Publish) -> PacketIdentifier? {
        switch publish.delivery {
        case .atMostOnce: nil
        case .atLeastOnce(let identifier, _), .exactlyOnce(let identifier, _): identifier
        }
    }

    private static func isDuplicate(_ publish: PacketContent.Publish) -> Bool {
        switch publish.delivery {
        case .atMostOnce: false
        case .atLeastOnce(_, let isDuplicate), .exactlyOnce(_, let isDuplicate): isDuplicate
        }
    }

    private static func connect(_ link: ShardLink) throws -> (Handle, [PacketContent]) {
        let handle = link.open()
        var connect = PacketContent.Connect(clientID: "phone")
        connect.cleanSession = false
        try link.send(handle, .connect(connect))
        return (handle, try link.take(handle))
    }

    @Test("a window is sent again, then as much as is acknowledged, all in order, with DUP")
    func atLeastOnce() throws {
        let link = try Self.link(.atLeastOnce)
        // It never acknowledges: each time the same ones are sent again.
        for _ in 0..<3 {
            let (phone, packets) = try Self.connect(link)
            let again = Self.publishes(packets)
            #expect(again.map { $0.text } == (0..<7).map { "\($0)" })
            #expect(again.allSatisfy(Self.isDuplicate))
            #expect(link.shard.figures.inFlight == 40)
            link.lose(phone)
        }
        let (phone, packets) = try Self.connect(link)
        var outstanding = Self.publishes(packets)
        var arrived: [String] = []
        while !outstanding.isEmpty {
            #expect(outstanding.count <= 7)
            let first = outstanding.removeFirst()
            arrived.append(first.text)
            #expect(Self.isDuplicate(first) == (arrived.count <= 40))
            try link.send(phone, .puback(try #require(Self.identifier(first))))
            outstanding += Self.publishes(try link.take(phone))
        }
        #expect(arrived == (0..<50).map { "\($0)" })
        #expect(link.shard.figures.inFlight == 0)
    }

    @Test("QoS 2: PUBREL and PUBLISH are sent again within one window")
    func exactlyOnce() throws {
        let link = try Self.link(.exactlyOnce)
        var (phone, packets) = try Self.connect(link)
        // The first four reach PUBREC; then the client is gone.
        for publish in Self.publishes(packets).prefix(4) {
            try link.send(phone, .pubrec(try #require(Self.identifier(publish))))
        }
        link.lose(phone)
        (phone, packets) = try Self.connect(link)
        let released = packets.count { if case .pubrel = $0 { true } else { false } }
        #expect(released == 4)
        #expect(Self.publishes(packets).map { $0.text } == ["4", "5", "6"])
        var arrived = ["0", "1", "2", "3"]
        while !packets.isEmpty {
            switch packets.removeFirst() {
            case .publish(let publish):
                arrived.append(publish.text)
                try link.send(phone, .pubrec(try #require(Self.identifier(publish))))
            case .pubrel(let identifier): try link.send(phone, .pubcomp(identifier))
            default: break
            }
            packets += try link.take(phone)
        }
        #expect(arrived == (0..<50).map { "\($0)" })
        #expect(link.shard.figures.inFlight == 0)
    }

    // MARK: PUBREC for a message that is not in memory yet

    /// Acknowledges all that comes; returns the texts that came as PUBLISH, and every PUBREL.
    private static func drain(
        _ link: ShardLink, _ phone: Handle, _ first: [PacketContent]
    ) throws -> (arrived: [String], released: [PacketIdentifier]) {
        var packets = first
        var (arrived, released): ([String], [PacketIdentifier]) = ([], [])
        while !packets.isEmpty {
            switch packets.removeFirst() {
            case .publish(let publish):
                arrived.append(publish.text)
                let identifier = try #require(Self.identifier(publish))
                let isExactlyOnce = publish.delivery.qos == .exactlyOnce
                try link.send(phone, isExactlyOnce ? .pubrec(identifier) : .puback(identifier))
            case .pubrel(let identifier):
                released.append(identifier)
                try link.send(phone, .pubcomp(identifier))
            default: break
            }
            packets += try link.take(phone)
        }
        return (arrived, released)
    }

    /// The texts of all 50 messages but the 21st and the 31st, whose identifiers are 21 and 31.
    private static let others = (0..<50).filter { $0 != 20 && $0 != 30 }.map { "\($0)" }

    @Test("a message behind the window whose PUBREC comes is never sent again [MQTT-4.3.3-1]")
    func latePubrec() throws {
        let link = try Self.link(.exactlyOnce)
        let (phone, packets) = try Self.connect(link)
        try link.send(phone, .pubrec(31), .pubrec(21), .pubrec(31))
        #expect(try link.take(phone) == [.pubrel(31), .pubrel(21), .pubrel(31)])
        let writes = link.store.records.filter { if case .released = $0 { true } else { false } }
        #expect(writes.count == 2, "a repeated PUBREC writes nothing")
        let (arrived, released) = try Self.drain(link, phone, packets)
        #expect(arrived == Self.others)
        // PUBREL comes again in its turn, since PUBCOMP did not come before.
        #expect(released.sorted { $0.rawValue < $1.rawValue }.map(\.rawValue) == Array(1...50))
        #expect(link.shard.figures.inFlight == 0)
        #expect(link.store.positions(of: 1) == [])
    }

    @Test("the store knows it by the next connection, and PUBCOMP ends it before it is loaded")
    func lateEnd() throws {
        let link = try Self.link(.exactlyOnce)
        var (phone, packets) = try Self.connect(link)
        try link.send(phone, .pubrec(21), .pubrec(31), .pubcomp(31))
        link.lose(phone)
        (phone, packets) = try Self.connect(link)
        try link.send(phone, .pubcomp(31))
        // Without PUBREC on this connection the broker does not take PUBCOMP for the end.
        try link.send(phone, .pubrec(31), .pubcomp(31))
        #expect(try link.take(phone) == [.pubrel(31)])
        let (arrived, released) = try Self.drain(link, phone, packets)
        #expect(arrived == Self.others)
        #expect(released.contains(21))
        #expect(!released.contains(31))
        #expect(link.shard.figures.inFlight == 0)
        #expect(link.store.positions(of: 1) == [])
    }

    @Test("a part that the store has read before PUBREC came does not bring the message again")
    func pubrecDuringRead() throws {
        let link = try Self.link(.exactlyOnce)
        let (phone, packets) = try Self.connect(link)
        link.store.holdsReads = true
        // Half a window has room: the next part is read, and waits.
        for identifier in 1...7 as ClosedRange<UInt16> {
            let identifier = try #require(PacketIdentifier(identifier))
            try link.send(phone, .pubrec(identifier), .pubcomp(identifier))
        }
        #expect(link.store.isReading)
        _ = try link.take(phone)
        try link.send(phone, .pubrec(9), .pubrec(10), .pubcomp(10))
        #expect(try link.take(phone) == [.pubrel(9), .pubrel(10)])
        link.store.holdsReads = false
        link.turn()
        let next = try link.take(phone)
        #expect(Self.publishes(next).first?.text == "7")
        let (arrived, released) = try Self.drain(link, phone, next)
        #expect(arrived == (7..<50).filter { $0 != 8 && $0 != 9 }.map { "\($0)" })
        #expect(released.contains(9) && !released.contains(10))
        #expect(Self.publishes(packets).count == 7)
        #expect(link.shard.figures.inFlight == 0)
        #expect(link.store.positions(of: 1) == [])
    }

    @Test("a PUBREC that names a message of QoS 1 in the store does not take it")
    func pubrecForAnotherQoS() throws {
        let link = try Self.link(.atLeastOnce)
        let (phone, packets) = try Self.connect(link)
        try link.send(phone, .pubrec(21), .pubcomp(21))
        #expect(try link.take(phone) == [.pubrel(21)])
        let (arrived, _) = try Self.drain(link, phone, packets)
        #expect(arrived == (0..<50).map { "\($0)" })
    }

    @Test("PUBREC for no message in flight is answered, and nothing is written")
    func pubrecForNothing() throws {
        let link = try Self.link(.exactlyOnce)
        let (phone, packets) = try Self.connect(link)
        let groups = link.store.groups.count
        // 41 waits, and was never sent.
        try link.send(phone, .pubrec(41), .pubrec(65_535))
        #expect(try link.take(phone) == [.pubrel(41), .pubrel(65_535)])
        #expect(link.store.groups.count == groups)
        #expect(try Self.drain(link, phone, packets).arrived == (0..<50).map { "\($0)" })
    }
}

extension PacketContent.Publish {
    fileprivate var text: String { String(decoding: payload, as: UTF8.self) }
}
