import HermesTesting
import MQTTCodec
import Testing

/// Known faults of brokers that no single statement's test shows. The whole list with its tests is
/// in `docs/conformance.md`.
@Suite("Where brokers break the protocol")
struct WhereBrokersBreakTests {
    @Test(
        "Where brokers break 1: after a resume new identifiers skip those still in flight",
        arguments: Transport.all, [QoS.atLeastOnce, .exactlyOnce])
    func identifiersAfterResume(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        var client = try broker.subscriber("client", to: topic, qos, cleanSession: false)
        for number in 1...3 { try publisher.publish(topic, "\(number)", qos: qos) }
        _ = try client.takeAll()
        for round in 1...3 {
            try client.finish()
            client = try broker.connect("client", cleanSession: false, sessionPresent: true)
            let redelivered = try client.takeAll()
            #expect(redelivered.count == 2 + round)
            let identifier = try #require(PacketIdentifier(UInt16(3 + round)))
            try publisher.publish(topic, "\(3 + round)", qos: qos)
            try client.expect(.publish(topic, "\(3 + round)", qos: qos, identifier))
            try client.expectNothing()
        }
        for number in UInt16(1)...6 {
            try client.acknowledge(try #require(PacketIdentifier(number)), qos)
        }
        try client.finish()
        let last = try broker.connect("client", cleanSession: false, sessionPresent: true)
        try last.expectNothing()
    }

    @Test(
        "Where brokers break 6: retained QoS 1 and 2 deliveries keep the window and their state",
        arguments: Transport.all, [QoS.atLeastOnce, .exactlyOnce])
    func retainedInFlight(transport: Transport, qos: QoS) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let publisher = try broker.connect("publisher")
        for number in 1...25 {
            try publisher.publish(
                broker.topic("r/\(number)"), "\(number)", qos: .exactlyOnce, retain: true)
        }
        var client = try broker.subscriber(
            "client", to: broker.topic("r/#"), qos, cleanSession: false)
        let first = try client.takeAll()
        #expect(first.count == 20)
        // They are re-sent like others, with waiting messages after them.
        try client.finish()
        client = try broker.connect("client", cleanSession: false, sessionPresent: true)
        var topics: Set<[UInt8]> = []
        for number in UInt16(1)...25 {
            let identifier = try #require(PacketIdentifier(number))
            let packet = try #require(try client.next())
            guard case .publish(let publish) = packet else {
                Issue.record("\(packet) instead of a PUBLISH")
                return
            }
            let isDuplicate = number <= 20
            let delivery: Delivery =
                qos == .atLeastOnce
                ? .atLeastOnce(identifier, isDuplicate: isDuplicate)
                : .exactlyOnce(identifier, isDuplicate: isDuplicate)
            #expect(publish.delivery == delivery)
            #expect(publish.retain)
            #expect(publish.topic == Array(broker.topic("r/").utf8) + publish.payload)
            topics.insert(publish.topic)
            try client.acknowledge(identifier, qos)
        }
        #expect(topics.count == 25)
        try client.expectNothing()
    }

    @Test(
        "Where brokers break 7: the late end of a replaced connection harms neither session nor will",
        arguments: Transport.all, [true, false])
    func lateEndAfterTakeOver(transport: Transport, cleanSession: Bool) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let will = broker.topic("will")
        let watcher = try broker.subscriber("watcher", to: will, .atMostOnce)
        func connect(_ message: String, sessionPresent: Bool) throws -> Client {
            try broker.connect(
                "client", cleanSession: cleanSession,
                will: PacketContent.Will(topic: will, message: Array(message.utf8)),
                sessionPresent: sessionPresent)
        }
        let old = try connect("old", sessionPresent: false)
        try old.subscribe(broker.topic("old"), .atLeastOnce)
        let new = try connect("new", sessionPresent: !cleanSession)
        // The peer of the old connection continues unaware, and sends DISCONNECT.
        try old.send(
            .publish(broker.topic("old"), "late", qos: .atLeastOnce, 1), .disconnect)
        try old.expectClosed()
        old.reset()
        try watcher.expect(.publish(will, "old"))
        try watcher.expectNothing()
        try new.subscribe(broker.topic("new"), .atLeastOnce)
        try watcher.publish(broker.topic("new"), "x", qos: .atLeastOnce)
        try new.expect(.publish(broker.topic("new"), "x", qos: .atLeastOnce, 1))
        // A clean session inherits no subscription.
        try watcher.publish(broker.topic("old"), "y", qos: .atLeastOnce)
        if !cleanSession {
            try new.expect(.publish(broker.topic("old"), "y", qos: .atLeastOnce, 2))
        }
        try new.expectNothing()
        try new.finish()
        try watcher.expect(.publish(will, "new"))
        try watcher.expectNothing()
    }

    @Test(
        "Where brokers break 8: resuming over and over redelivers the same bounded window each time",
        arguments: Transport.all)
    func resumingOverAndOver(transport: Transport) throws {
        let broker = try BrokerUnderTest(transport)
        defer { broker.close() }
        let topic = broker.topic("a")
        let publisher = try broker.connect("publisher")
        var client = try broker.subscriber("client", to: topic, .exactlyOnce, cleanSession: false)
        try client.finish()
        // More than an offline client's queue holds: the oldest are dropped.
        for number in 1...1_100 { try publisher.publish(topic, "\(number)", qos: .atLeastOnce) }
        for round in 0..<25 {
            client = try broker.connect("client", cleanSession: false, sessionPresent: true)
            let packets = try client.takeAll()
            #expect(packets.count == 20)
            for (offset, packet) in packets.enumerated() {
                guard case .publish(let publish) = packet,
                    case .atLeastOnce(_, let isDuplicate) = publish.delivery
                else {
                    Issue.record("\(packet) instead of a QoS 1 PUBLISH")
                    return
                }
                #expect(publish.payload == Array("\(101 + offset)".utf8))
                #expect(isDuplicate == (round > 0))
            }
            try client.finish()
        }
        client = try broker.connect("client", cleanSession: false, sessionPresent: true)
        for number in 101...1_100 {
            guard case .publish(let publish)? = try client.next(),
                case .atLeastOnce(let identifier, _) = publish.delivery
            else {
                Issue.record("message \(number) did not come")
                return
            }
            #expect(publish.payload == Array("\(number)".utf8))
            try client.send(.puback(identifier))
        }
        try client.expectNothing()
    }
}
