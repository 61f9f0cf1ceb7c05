import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Testing

/// Rules across connections or over time, tested without sockets.
@Suite("One shard")
struct ShardTests {
    @Test("[MQTT-3.1.4-2] a take-over is fenced: late events of the old connection change nothing")
    func takeOverIsFenced() throws {
        let link = ShardLink()
        let old = try link.connect("phone", cleanSession: false) {
            $0.will = PacketContent.Will(topic: "will", message: [1])
        }
        try link.send(old, .subscribe("a", .atLeastOnce))
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("will", .atMostOnce))
        _ = try link.take(watcher)

        let new = link.open()
        var connect = PacketContent.Connect(clientID: "phone")
        connect.cleanSession = false
        try link.send(new, .connect(connect))
        #expect(try link.take(new) == [.connack(.accepted(sessionPresent: true))])
        #expect(link.closed.contains(old))
        #expect(try link.take(watcher).count == 1, "the will of the old connection, once")

        // Late events of the old connection: data, loss, drained output.
        try link.send(old, .disconnect)
        link.lose(old)
        link.shard.drained(old)
        try link.send(watcher, .publish("a", "x", qos: .atLeastOnce, 1))
        #expect(try link.take(new) == [.publish("a", "x", qos: .atLeastOnce, 1)])
        #expect(try link.take(watcher) == [.puback(1)])
    }

    @Test(
        "[MQTT-4.4.0-1] messages in flight are re-sent first, with DUP, identifiers and order kept")
    func redelivery() throws {
        let link = ShardLink({ $0.maxInFlight = 3 })
        let first = try link.connect("phone", cleanSession: false)
        try link.send(first, .subscribe("a", .exactlyOnce))
        _ = try link.take(first)
        let publisher = try link.connect("publisher")
        for (number, qos) in [QoS.atLeastOnce, .exactlyOnce, .exactlyOnce, .atLeastOnce]
            .enumerated()
        {
            let identifier = try #require(PacketIdentifier(UInt16(number + 1)))
            try link.send(publisher, .publish("a", "\(number)", qos: qos, identifier))
        }
        #expect(try link.take(first).count == 3)
        try link.send(first, .pubrec(2))
        #expect(try link.take(first) == [.pubrel(2)])
        link.lose(first)

        let second = link.open()
        var connect = PacketContent.Connect(clientID: "phone")
        connect.cleanSession = false
        try link.send(second, .connect(connect))
        #expect(
            try link.take(second) == [
                .connack(.accepted(sessionPresent: true)),
                .publish("a", "0", qos: .atLeastOnce, 1, isDuplicate: true),
                .pubrel(2),
                .publish("a", "2", qos: .exactlyOnce, 3, isDuplicate: true),
            ])
        try link.send(second, .puback(1))
        #expect(try link.take(second) == [.publish("a", "3", qos: .atLeastOnce, 4)])
    }

    @Test("[MQTT-2.3.1-4] inbound and outbound identifiers are two spaces")
    func identifierSpaces() throws {
        let link = ShardLink()
        let client = try link.connect("client")
        try link.send(client, .subscribe("a", .exactlyOnce))
        _ = try link.take(client)
        try link.send(client, .publish("a", "x", qos: .exactlyOnce, 1))
        #expect(
            try link.take(client) == [.publish("a", "x", qos: .exactlyOnce, 1), .pubrec(1)])
        try link.send(client, .pubrel(1))
        #expect(try link.take(client) == [.pubcomp(1)])
        try link.send(client, .pubrec(1))
        #expect(try link.take(client) == [.pubrel(1)])
    }

    @Test("[MQTT-3.1.2-24] one and a half keep alives without a packet, to within a wheel's slot")
    func keepAlive() throws {
        let link = ShardLink()
        let client = try link.connect("client") { $0.keepAlive = 10 }
        link.advance(milliseconds: 14_900)
        try link.send(client, .pingreq)
        link.advance(milliseconds: 14_990)
        // An incomplete packet does not count.
        link.send(client, [0xC0])
        #expect(!link.closed.contains(client))
        link.advance(milliseconds: 10 + 64)
        #expect(link.closed.contains(client))
        #expect(link.closeReasons == [.keepAlive])
    }

    @Test("a CONNECT that does not come in time ends the connection")
    func connectDeadline() throws {
        let link = ShardLink({ $0.connectTimeout = .seconds(2) })
        let silent = link.open()
        link.send(silent, [0x10, 0x20, 0x00])
        link.advance(milliseconds: 1_999)
        #expect(!link.closed.contains(silent))
        link.advance(milliseconds: 65)
        #expect(link.closed.contains(silent))
    }

    @Test("a session expires after its time, with its queue")
    func sessionExpiry() throws {
        let link = ShardLink({ $0.sessionExpiry = .seconds(60) })
        let client = try link.connect("client", cleanSession: false)
        try link.send(client, .subscribe("a", .atLeastOnce))
        try link.send(client, .disconnect)
        let publisher = try link.connect("publisher")
        try link.send(publisher, .publish("a", "x", qos: .atLeastOnce, 1))
        link.advance(milliseconds: 60_065)
        let again = link.open()
        var connect = PacketContent.Connect(clientID: "client")
        connect.cleanSession = false
        try link.send(again, .connect(connect))
        #expect(try link.take(again) == [.connack(.accepted(sessionPresent: false))])
    }

    @Test("an offline client's queue keeps the newest messages, in order")
    func offlineQueueLimit() throws {
        let link = ShardLink({ $0.queueMessages = 3 })
        let client = try link.connect("client", cleanSession: false)
        try link.send(client, .subscribe("a", .atLeastOnce))
        link.lose(client)
        let publisher = try link.connect("publisher")
        for number in 1...5 {
            try link.send(publisher, .publish("a", "\(number)", qos: .atLeastOnce, 1))
        }
        let again = link.open()
        var connect = PacketContent.Connect(clientID: "client")
        connect.cleanSession = false
        try link.send(again, .connect(connect))
        let payloads = try link.take(again).compactMap { packet -> String? in
            guard case .publish(let publish) = packet else { return nil }
            return String(decoding: publish.payload, as: UTF8.self)
        }
        #expect(payloads == ["3", "4", "5"])
    }

    @Test("retained messages of a wide filter come in slices, none missed, none twice")
    func retainedInSlices() throws {
        let link = ShardLink()
        let publisher = try link.connect("publisher")
        for number in 0..<5_000 {
            try link.send(
                publisher, .publish("r/\(number % 70)/\(number)", "x", retain: true))
        }
        let reader = try link.connect("reader")
        try link.send(reader, .subscribe("r/#", .atMostOnce))
        var topics: [String] = []
        for _ in 0..<100 {
            for packet in try link.take(reader) {
                guard case .publish(let publish) = packet else { continue }
                #expect(publish.retain)
                topics.append(String(decoding: publish.topic, as: UTF8.self))
            }
            link.turn()
        }
        #expect(topics.count == 5_000)
        #expect(Set(topics).count == 5_000)
    }

    @Test("another user's client identifier is refused before any take-over")
    func foreignIdentifier() throws {
        let link = ShardLink()
        let owner = try link.connect("phone", cleanSession: false) {
            $0.userName = Array("alice".utf8)
        }
        let thief = link.open()
        var connect = PacketContent.Connect(clientID: "phone")
        connect.userName = Array("mallory".utf8)
        try link.send(thief, .connect(connect))
        #expect(try link.take(thief) == [.connack(.refused(.notAuthorized))])
        #expect(link.closed == [thief])
        try link.send(owner, .pingreq)
        #expect(try link.take(owner) == [.pingresp])
    }

    @Test("every sequence of acknowledgements that a hostile receiver can think of is survived")
    func hostileAcknowledgements() throws {
        let link = ShardLink()
        var client = try link.connect("client", cleanSession: false)
        try link.send(client, .subscribe("a", .exactlyOnce))
        var generator = SplitMix64(seed: 7)
        var violations = 0
        for round in 0..<5_000 {
            let identifier = try #require(
                PacketIdentifier(UInt16.random(in: 1...25, using: &generator)))
            switch Int.random(in: 0..<7, using: &generator) {
            case 0: try link.send(client, .puback(identifier))
            case 1: try link.send(client, .pubrec(identifier))
            case 2: try link.send(client, .pubcomp(identifier))
            case 3: try link.send(client, .pubrel(identifier))
            case 4: try link.send(client, .publish("a", "\(round)", qos: .exactlyOnce, identifier))
            case 5: try link.send(client, .publish("a", "\(round)", qos: .atLeastOnce, identifier))
            default: try link.send(client, .pingreq)
            }
            guard link.closed.contains(client) else { continue }
            violations += 1
            client = try link.connect("client", cleanSession: false)
        }
        try link.send(client, .pingreq)
        #expect(try link.take(client).last == .pingresp)
        #expect(violations > 50)
        #expect(link.shard.figures.protocolViolations == UInt64(violations))
    }
}
