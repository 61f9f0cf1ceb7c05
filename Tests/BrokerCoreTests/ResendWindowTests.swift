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
        var connect = PacketContent.Connect(clientIdentifier: "phone")
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
}

extension PacketContent.Publish {
    fileprivate var text: String { String(decoding: payload, as: UTF8.self) }
}
