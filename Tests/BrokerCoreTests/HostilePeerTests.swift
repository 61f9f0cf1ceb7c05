import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

/// Peers that ask for more than they give; each once exhausted memory, time or queues.
@Suite("Hostile and unlucky peers")
struct HostilePeerTests {
    private func reconnect(_ link: ShardLink, _ identifier: String) throws -> Handle {
        let handle = link.open()
        var connect = PacketContent.Connect(clientID: identifier)
        connect.cleanSession = false
        try link.send(handle, .connect(connect))
        return handle
    }

    @Test("answers to a peer that never reads end at the output limit")
    func unreadAnswers() throws {
        let link = ShardLink({
            $0.outputBytes = 1_024
            $0.maxPacketBytes = 1_024
        })
        let peer = try link.connect("peer")
        // Without a turn nothing is sent, as with a full socket.
        let pings = [UInt8]((0..<4_000).flatMap { _ in [0xC0, 0x00] })
        _ = pings.withUnsafeBytes { link.shard.receive(peer, $0) }
        link.turn()
        #expect(link.closeReasons == [.outputLimit])
    }

    @Test("an unacknowledged message costs an offline client none of the newest messages")
    func unacknowledgedHead() throws {
        let link = ShardLink({ $0.queueMessages = 100 })
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a", .atLeastOnce))
        let publisher = try link.connect("publisher")
        try link.send(publisher, .publish("a", "head", qos: .atLeastOnce, 1))
        link.lose(phone)
        for number in 0..<70_000 {
            try link.send(publisher, .publish("a", "\(number)", qos: .atLeastOnce, 1))
        }
        let again = try reconnect(link, "phone")
        var payloads: [String] = []
        for _ in 0..<100 {
            for packet in try link.take(again) {
                guard case .publish(let publish) = packet else { continue }
                payloads.append(String(decoding: publish.payload, as: UTF8.self))
                guard case .atLeastOnce(let identifier, _) = publish.delivery else { continue }
                try link.send(again, .puback(identifier))
            }
        }
        #expect(payloads == ["head"] + (69_900..<70_000).map { "\($0)" })
    }

    @Test("re-deliveries do not count against a client's output limit")
    func largeRedelivery() throws {
        let link = ShardLink({ $0.outputBytes = 64 * 1_024 })
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("a", .atLeastOnce))
        let publisher = try link.connect("publisher")
        let large = String(repeating: "x", count: 900_000)
        for _ in 0..<10 { try link.send(publisher, .publish("a", large, qos: .atLeastOnce, 1)) }
        link.lose(phone)
        var connect = PacketContent.Connect(clientID: "phone")
        connect.cleanSession = false
        let again = link.open()
        try link.send(again, .connect(connect), .subscribe("b", .atLeastOnce), .pingreq)
        #expect(!link.closed.contains(again))
        #expect(try link.take(again).count == 13)
    }

    @Test("a will that is published while output fails is work for the next turn")
    func workOutlivesTheTurn() throws {
        let link = ShardLink()
        let publisher = try link.connect("publisher") {
            $0.will = PacketContent.Will(topic: "w", message: [1], qos: .atLeastOnce, retain: true)
        }
        link.shard.lost(publisher, .networkError(code: 32))
        _ = link.shard.closeNow()
        let deadline = link.shard.nextDeadline
        #expect(deadline == link.shard.now)
    }

    @Test("a reconnect does not overtake the commits of the connection before")
    func reconnectWaitsForCommits() throws {
        let link = ShardLink(isImmediate: false)
        let first = try link.connect("publisher", cleanSession: false)
        try link.send(first, .publish("a", "x", qos: .exactlyOnce, 5))
        let pending = link.store.pending
        let second = try reconnect(link, "publisher")
        try link.send(second, .publish("a", "x", qos: .exactlyOnce, 5, isDuplicate: true))
        // Its own commit has completed, an earlier one has not.
        for ticket in link.store.pending where !pending.contains(ticket) {
            link.store.complete(ticket)
        }
        link.turn()
        #expect(try link.take(second) == [])
        link.store.completeAll()
        link.turn()
        #expect(
            try link.take(second) == [.connack(.accepted(sessionPresent: true)), .pubrec(5)])
    }

    @Test("a store that hangs closes no connection, and fires no will before CONNACK")
    func hangingStore() throws {
        let link = ShardLink({ $0.connectTimeout = .seconds(2) }, isImmediate: false)
        let handle = link.open()
        var connect = PacketContent.Connect(clientID: "phone")
        connect.cleanSession = false
        connect.will = PacketContent.Will(topic: "w", message: [1])
        try link.send(handle, .connect(connect))
        link.advance(milliseconds: 30_000)
        #expect(!link.closed.contains(handle))
        link.store.completeAll()
        link.turn()
        #expect(try link.take(handle) == [.connack(.accepted(sessionPresent: false))])

        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("w", .atMostOnce))
        _ = try link.take(watcher)
        let impatient = link.open()
        connect.clientID = Array("impatient".utf8)
        try link.send(impatient, .connect(connect))
        link.lose(impatient)
        link.store.completeAll()
        link.turn()
        #expect(try link.take(watcher) == [])
    }

    @Test("PUBRELs of unknown identifiers behind a pending commit end at a limit")
    func endlessPubrels() throws {
        let link = ShardLink(isImmediate: false)
        let peer = try link.connect("peer", cleanSession: false)
        try link.send(peer, .publish("a", "x", qos: .exactlyOnce, 1))
        let pubrels = [UInt8]((0..<200_000).flatMap { _ in [0x62, 0x02, 0x00, 0x09] })
        link.send(peer, pubrels)
        #expect(link.closeReasons == [.outputLimit])
    }
}
