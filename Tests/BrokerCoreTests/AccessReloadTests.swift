import Authorization
import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

@Suite("New access rules for connected clients, offline clients and queued messages")
struct AccessReloadTests {
    private static let open = "allow user backend publish #\nallow user anna subscribe #"
    private static let closed =
        "allow user backend publish #\ndeny user anna subscribe secret/#\nallow user anna subscribe #"

    @Test("a subscription delivers nothing while the right is revoked")
    func liveSubscription() throws {
        let link = try link(Self.open)
        let anna = try link.connect("a", user: "anna")
        try link.send(anna, .subscribe("secret/x", .atLeastOnce))
        _ = try link.take(anna)
        let backend = try link.connect("b", user: "backend")
        try link.send(backend, .publish("secret/x", "1"))
        try link.use(Self.closed)
        try link.send(backend, .publish("secret/x", "2"), .publish("secret/x", "3"))
        #expect(link.refusals("deliver") == 2)
        try link.use(Self.open)
        try link.send(backend, .publish("secret/x", "4"))
        #expect(payloads(try link.take(anna)) == ["1", "4"])
    }

    @Test("without rules again, everything is allowed")
    func rulesRemoved() throws {
        let link = try link("")
        let client = try link.connect("c")
        try link.send(client, .subscribe("a", .atMostOnce))
        #expect(try link.take(client) == [.suback(1, [0x80])])
        link.shard.setAccess(nil)
        try link.send(client, .subscribe("a", .atMostOnce), .publish("a", "x"))
        #expect(try link.take(client).count == 2)
    }

    @Test("an offline client's subscription queues nothing that the client may not read")
    func durableSubscription() throws {
        let link = try link(Self.open)
        let anna = try link.connect("a", user: "anna", cleanSession: false)
        try link.send(anna, .subscribe("#", .atLeastOnce))
        link.lose(anna)
        try link.use(Self.closed)
        let backend = try link.connect("b", user: "backend")
        for topic in ["secret/x", "open"] {
            try link.send(backend, .publish(topic, topic, qos: .atLeastOnce, 1))
        }
        #expect(link.client("a")?.queued == 1)
        #expect(payloads(try link.comeBack("a", "anna").packets) == ["open"])
    }

    @Test(
        "queued messages are dropped when their client reconnects without the right",
        arguments: [QoS.atLeastOnce, .exactlyOnce], [true, false])
    func queuedMessages(qos: QoS, isDurable: Bool) throws {
        let link = ShardLink(access: try rules(Self.open), isDurable: isDurable)
        let anna = try link.connect("a", user: "anna", cleanSession: false)
        try link.send(anna, .subscribe("#", .exactlyOnce))
        link.lose(anna)
        let backend = try link.connect("b", user: "backend")
        for (number, topic) in ["secret/1", "open/2", "secret/3", "open/4"].enumerated() {
            let identifier = try #require(PacketIdentifier(UInt16(number + 1)))
            try link.send(backend, .publish(topic, topic, qos: qos, identifier))
        }
        #expect(link.client("a")?.queued == 4)
        try link.use(Self.closed)
        let again = try link.comeBack("a", "anna")
        #expect(payloads(again.packets) == ["open/2", "open/4"])
        let dropped = link.shard.figures.dropped.first { $0.label == "acl" }
        #expect(dropped?.value == 2)
        #expect(link.refusals("deliver") == 2)
        #expect(link.reports.filter { $0.event == .deliver }.map(\.line) == [2, 2])
        let drops = link.notices.count { if case .dropping = $0 { true } else { false } }
        #expect(drops == 0, "it is said once")
        // The store dropped the messages too, so a regained right does not bring them back.
        link.lose(again.handle)
        try link.use(Self.open)
        #expect(payloads(try link.comeBack("a", "anna").packets) == ["open/2", "open/4"])
        #expect(link.client("a")?.queued == 0)
        #expect(link.client("a")?.inFlight == 2)
    }

    @Test("messages in flight are not re-sent without the right", arguments: [true, false])
    func inFlight(isDurable: Bool) throws {
        let link = ShardLink(access: try rules(Self.open), isDurable: isDurable)
        let anna = try link.connect("a", user: "anna", cleanSession: false)
        try link.send(anna, .subscribe("#", .exactlyOnce))
        let backend = try link.connect("b", user: "backend")
        for (number, topic) in ["secret/1", "open/2", "secret/3", "open/4"].enumerated() {
            let identifier = try #require(PacketIdentifier(UInt16(number + 1)))
            try link.send(backend, .publish(topic, topic, qos: .exactlyOnce, identifier))
        }
        #expect(payloads(try link.take(anna)).count == 4)
        // The third message was received already: PUBREL is due and carries no content.
        try link.send(anna, .pubrec(3))
        link.lose(anna)
        try link.use(Self.closed)
        let again = try link.comeBack("a", "anna")
        #expect(payloads(again.packets) == ["open/2", "open/4"])
        #expect(again.packets.contains(.pubrel(3)))
        #expect(link.client("a")?.inFlight == 3)
        for identifier: PacketIdentifier in [2, 4] {
            try link.send(again.handle, .pubrec(identifier), .pubcomp(identifier))
        }
        try link.send(again.handle, .pubcomp(3), .puback(1))
        #expect(link.client("a")?.inFlight == 0)
        #expect(link.shard.figures.inFlight == 0)
        #expect(!link.closed.contains(again.handle))
    }

    @Test("messages waiting for the window are checked when they leave the queue")
    func behindTheWindow() throws {
        let link = ShardLink({ $0.maxInFlight = 1 }, access: try rules(Self.open))
        let anna = try link.connect("a", user: "anna", cleanSession: false)
        try link.send(anna, .subscribe("#", .atLeastOnce))
        _ = try link.take(anna)
        let backend = try link.connect("b", user: "backend")
        for number in 1...200 {
            let topic = number % 2 == 0 ? "secret/x" : "open"
            let identifier = try #require(PacketIdentifier(UInt16(number)))
            try link.send(
                backend, .publish(topic, "\(number)", qos: .atLeastOnce, identifier))
        }
        try link.use(Self.closed)
        var received: [String] = []
        for _ in 0..<200 {
            for packet in try link.take(anna) {
                guard case .publish(let publish) = packet,
                    case .atLeastOnce(let identifier, _) = publish.delivery
                else { continue }
                received.append(String(decoding: publish.payload, as: UTF8.self))
                try link.send(anna, .puback(identifier))
            }
        }
        #expect(received == (1...200).filter { $0 % 2 == 1 }.map { "\($0)" })
        #expect(link.shard.figures.queued == 0)
        #expect(link.shard.figures.inFlight == 0)
    }

    @Test("a QoS 2 exchange ends normally when its sender loses the right before PUBREL")
    func inboundExactlyOnce() throws {
        let link = try link(Self.open)
        let anna = try link.connect("a", user: "anna")
        try link.send(anna, .subscribe("#", .atMostOnce))
        _ = try link.take(anna)
        let backend = try link.connect("b", user: "backend", cleanSession: false)
        try link.send(backend, .publish("open", "1", qos: .exactlyOnce, 5))
        #expect(try link.take(backend) == [.pubrec(5)])
        link.lose(backend)
        try link.use("allow user anna subscribe #")
        let again = try link.connect("b", user: "backend", cleanSession: false)
        // The repeated PUBLISH is acknowledged and not published; a new one is denied.
        try link.send(
            again, .publish("open", "1", qos: .exactlyOnce, 5, isDuplicate: true), .pubrel(5))
        #expect(try link.take(again) == [.pubrec(5), .pubcomp(5)])
        try link.send(again, .publish("open", "2", qos: .exactlyOnce, 6, isDuplicate: true))
        #expect(link.closed.contains(again))
        #expect(payloads(try link.take(anna)) == ["1"])
    }

    @Test("a session belongs to its client identifier and its proven user")
    func sessionOwner() throws {
        let link = try link(Self.open)
        let anna = try link.connect("a", user: "anna", cleanSession: false)
        try link.send(anna, .subscribe("secret/x", .atLeastOnce))
        _ = try link.take(anna)
        for user in ["backend", nil, ""] {
            for cleanSession in [true, false] {
                let thief = link.open()
                var connect = PacketContent.Connect(clientID: "a")
                connect.cleanSession = cleanSession
                connect.userName = user.map { Array($0.utf8) }
                try link.send(thief, .connect(connect))
                // An empty name is nobody's, whatever its password.
                let code: Connack.ReturnCode =
                    user == "" ? .badUserNameOrPassword : .notAuthorized
                #expect(try link.take(thief) == [.connack(.refused(code))])
            }
        }
        #expect(!link.closed.contains(anna))
        let backend = try link.connect("b", user: "backend")
        try link.send(backend, .publish("secret/x", "1", qos: .atLeastOnce, 1))
        #expect(payloads(try link.take(anna)) == ["1"])
    }
}

extension ShardLink {
    /// Connects a client to its session again; returns all packets sent to it, including CONNACK.
    fileprivate func comeBack(
        _ identifier: String, _ user: String
    ) throws -> (handle: Handle, packets: [PacketContent]) {
        let handle = open()
        var connect = PacketContent.Connect(clientID: identifier)
        connect.cleanSession = false
        connect.userName = Array(user.utf8)
        connect.password = [1]
        try send(handle, .connect(connect))
        store.completeAll()
        turn()
        return (handle, try take(handle))
    }
}
