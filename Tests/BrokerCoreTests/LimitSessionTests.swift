import BrokerCore
import BrokerFeatures
import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

/// Limits of a session's content, of the number of sessions and of their time offline.
@Suite("Limits of sessions")
struct LimitSessionTests {
    // MARK: The queue of an absent client

    /// The limits of a queue, each set to three messages of one byte.
    enum QueueLimit: CaseIterable, Sendable {
        case messages, bytes

        func apply(_ settings: inout BrokerLimits, messages: Int) {
            switch self {
            case .messages: settings.queueMessages = UInt32(messages)
            // The topic "a", and one byte.
            case .bytes: settings.queueBytes = messages * 2
            }
        }

        var limit: Limit { self == .messages ? .queueMessages : .queueBytes }
    }

    @Test(
        "limits.queue_messages and _bytes: messages at the limit wait; one more drops one by limits.queue_policy",
        arguments: QueueLimit.allCases,
        [BrokerLimits.QueuePolicy.dropOldest, .dropNewest])
    func queue(limit: QueueLimit, policy: BrokerLimits.QueuePolicy) throws {
        let link = ShardLink({
            limit.apply(&$0, messages: 3)
            $0.queuePolicy = policy
            $0.maxInFlight = 2
        })
        let phone = try link.subscriber("phone", to: "a", .exactlyOnce)
        let publisher = try link.connect("publisher")
        // Two are in flight when the client goes offline, one awaiting PUBCOMP: no limit drops
        // these.
        try link.publish(["p", "q"], to: "a", qos: .exactlyOnce, from: publisher)
        #expect(try link.takePayloads(phone) == ["p", "q"])
        try link.send(phone, .pubrec(1))
        link.lose(phone)
        try link.publish(["1", "2", "3"], to: "a", from: publisher)
        #expect(link.reached(limit.limit) == 0)
        try link.publish(["4", "5"], to: "a", from: publisher)
        #expect(link.reached(limit.limit) == 2)
        #expect(link.shard.counters.dropped[.queueFull] == 2)
        let reported = link.notices.count { notice in
            if case .dropping(_, .queueFull, _, _) = notice { true } else { false }
        }
        #expect(reported == 1, "the first of its kind is reported, all are counted")

        let again = try link.beginConnect("phone")
        let packets = try link.take(again)
        #expect(
            Array(packets.prefix(3)) == [
                .connack(.accepted(sessionPresent: true)), .pubrel(1),
                .publish("a", "q", qos: .exactlyOnce, 2, isDuplicate: true),
            ])
        try link.send(again, .pubcomp(1), .pubrec(2))
        try link.send(again, .pubcomp(2))
        let rest = try Array(packets.dropFirst(3)).payloads + link.takeAll(again)
        #expect(rest == (policy == .dropOldest ? ["3", "4", "5"] : ["1", "2", "3"]))
        let figures = link.shard.figures
        #expect((figures.queued, figures.queuedBytes, figures.inFlight) == (0, 0, 0))
    }

    @Test(
        "a message larger than limits.queue_bytes is dropped alone")
    func tooLargeForQueue() throws {
        let link = ShardLink({ $0.queueBytes = 100 })
        let phone = try link.subscriber("phone", to: "a", .atLeastOnce)
        link.lose(phone)
        let publisher = try link.connect("publisher")
        try link.publish(
            ["1", String(repeating: "x", count: 200), "2"], to: "a", from: publisher)
        let again = try link.beginConnect("phone")
        #expect(try link.takeAll(again) == ["1", "2"])
        #expect(link.reached(.queueBytes) == 1)
    }

    @Test("a connected client's queue is cut to limits.queue_messages once it is offline")
    func trimmedWhenAway() throws {
        let link = ShardLink({
            $0.queueMessages = 100
            $0.maxInFlight = 5
        })
        let phone = try link.subscriber("phone", to: "a", .atLeastOnce)
        let publisher = try link.connect("publisher")
        try link.publish((1...1_000).map { "\($0)" }, to: "a", from: publisher)
        #expect(link.reached(.queueMessages) == 0, "a connected client catches up")
        link.lose(phone)
        try link.publish(["1001"], to: "a", from: publisher)
        let figures = link.shard.figures
        #expect((figures.queued, figures.inFlight) == (100, 5))
        let again = try link.beginConnect("phone")
        #expect(try link.takeAll(again) == (Array(1...5) + Array(902...1_001)).map { "\($0)" })
    }

    // MARK: Subscriptions

    /// A filter of so many levels, distinct for each number.
    private func filter(_ number: Int, levels: Int) -> String {
        (["f\(number)"] + Array(repeating: "x", count: levels - 1)).joined(separator: "/")
    }

    @Test(
        "limits.max_subscriptions: a filter counts once for every eight levels, further ones get 0x80",
        arguments: [1, 8, 9, 16, 17])
    func maxSubscriptions(levels: Int) throws {
        let each = (levels + 7) / 8
        let link = ShardLink({ $0.maxSubscriptions = UInt32(4 * each) })
        let client = try link.connect("client", cleanSession: false)
        func code(_ number: Int, _ prefix: String = "") throws -> UInt8? {
            try link.send(client, .subscribe(prefix + filter(number, levels: levels), .atLeastOnce))
            guard case .suback(1, let codes)? = try link.take(client).last else { return nil }
            return codes.first
        }
        for number in 1...4 { #expect(try code(number) == 1) }
        #expect(link.reached(.maxSubscriptions) == 0)
        #expect(try code(5) == 0x80)
        #expect(link.reached(.maxSubscriptions) == 1)
        // An existing subscription is replaced, and all others remain.
        #expect(try code(2) == 1)
        #expect(try code(6) == 0x80)
        try link.send(client, .unsubscribe(1, [Array(filter(3, levels: levels).utf8)]))
        _ = try link.take(client)
        #expect(try code(5) == 1)
        for number in [1, 2, 4, 5] {
            try link.send(client, .publish(filter(number, levels: levels), "x"))
        }
        #expect(try link.takePayloads(client).count == 4)
        let figures = link.shard.figures
        #expect(figures.subscriptions == 4)
    }

    @Test("shared subscriptions count too, and a new connection inherits its session's count")
    func sharedCount() throws {
        let link = ShardLink({ $0.maxSubscriptions = 2 })
        var client = try link.connect("client", cleanSession: false)
        try link.send(client, .subscribe("$share/g/a", .atMostOnce))
        try link.send(client, .subscribe("a", .atMostOnce))
        link.lose(client)
        client = try link.connect("client", cleanSession: false)
        try link.send(client, .subscribe("b", .atMostOnce))
        try link.send(client, .subscribe("$share/h/a", .atMostOnce))
        try link.send(client, .unsubscribe(2, [Array("$share/g/a".utf8)]))
        try link.send(client, .subscribe("b", .atMostOnce))
        let codes = try link.take(client).compactMap { packet -> UInt8? in
            if case .suback(_, let codes) = packet { codes.first } else { nil }
        }
        #expect(codes == [0x80, 0x80, 0])
        // Clean session 1 starts at zero.
        client = try link.connect("client")
        try link.send(client, .subscribe("c", .atMostOnce), .subscribe("d", .atMostOnce))
        #expect(try link.take(client) == [.suback(1, [0]), .suback(1, [0])])
    }

    // MARK: How many, how long

    @Test(
        "limits.max_sessions: one persistent session too many gets 0x03; a known client reconnects")
    func maxSessions() throws {
        let link = ShardLink({
            $0.maxSessions = 2
            $0.sessionExpiry = .seconds(60)
        })
        let first = try link.connect("1", cleanSession: false)
        _ = try link.connect("2", cleanSession: false)
        let third = try link.beginConnect("3")
        #expect(try link.take(third) == [.connack(.refused(.serverUnavailable))])
        #expect(link.closed == [third])
        #expect(link.reached(.maxSessions) == 1)
        // A clean session needs no place, and a stored one already has its own.
        let clean = try link.beginConnect("3", cleanSession: true)
        #expect(try link.take(clean) == [.connack(.accepted(sessionPresent: false))])
        link.lose(first)
        let again = try link.beginConnect("1")
        #expect(try link.take(again) == [.connack(.accepted(sessionPresent: true))])
        link.lose(again)
        link.advance(milliseconds: 60_250)
        let free = try link.beginConnect("4")
        #expect(try link.take(free) == [.connack(.accepted(sessionPresent: false))])
        #expect(link.reached(.maxSessions) == 1)
    }

    @Test("limits.session_expiry counts from the last disconnection, to within 250 ms")
    func sessionExpiry() throws {
        let link = ShardLink({ $0.sessionExpiry = .seconds(60) })
        for round in 0..<3 {
            let client = try link.beginConnect("client")
            #expect(
                try link.take(client) == [.connack(.accepted(sessionPresent: round > 0))])
            // While connected, it never expires.
            link.advance(milliseconds: 300_000)
            if round == 1 { try link.send(client, .disconnect) } else { link.lose(client) }
            link.advance(milliseconds: 59_999)
        }
        #expect(link.reached(.sessionExpiry) == 0)
        link.advance(milliseconds: 1 + 250)
        #expect(link.reached(.sessionExpiry) == 1)
        let figures = link.shard.figures
        #expect((figures.sessions, figures.sessionsExpired) == (0, 1))
        let client = try link.beginConnect("client")
        #expect(try link.take(client) == [.connack(.accepted(sessionPresent: false))])
    }

    @Test("what a persistent session held unacknowledged is counted and told when it ends")
    func lostWithSessions() throws {
        let link = ShardLink({
            $0.sessionExpiry = .seconds(60)
            $0.maxInFlight = 2
        })
        let publisher = try link.connect("publisher")
        for client in ["expired", "ended", "clean"] {
            let phone = try link.subscriber(client, to: "a", .atLeastOnce)
            try link.publish(["1", "2", "3"], to: "a", from: publisher)
            try link.send(phone, .puback(1))
            link.lose(phone)
            switch client {
            case "ended": link.shard.endSession(of: client) { _ in }
            case "clean": _ = try link.beginConnect(client, cleanSession: true)
            default: link.advance(milliseconds: 60_250)
            }
            link.turn()
        }
        #expect(link.shard.counters.lostWithSessions == 6)
        let told = link.notices.compactMap { notice -> String? in
            guard case .sessionEnded(let client, let end, let lost) = notice else { return nil }
            return "\(String(decoding: client, as: UTF8.self)) \(end?.name ?? "") \(lost)"
        }
        #expect(told == ["expired session_expiry 2", "ended operator 2", "clean clean_session 2"])
        let figures = link.shard.figures
        #expect(figures.dropped.contains { $0.label == "session_ended" && $0.value == 6 })
    }

    @Test(
        "a client that reconnects at the moment of expiry gets the whole session or a new one")
    func expiryRace() throws {
        for early in [true, false] {
            let link = ShardLink({ $0.sessionExpiry = .seconds(60) }, isImmediate: false)
            let client = try link.subscriber("client", to: "a", .atLeastOnce)
            link.lose(client)
            link.commitAll()
            link.shard.beginTurn(
                at: link.shard.now.advanced(byMilliseconds: early ? 59_990 : 61_000),
                wallClockMs: link.shard.wallClockMs)
            if !early { link.turn() }
            let again = try link.beginConnect("client")
            link.advance(milliseconds: 2_000)
            link.commitAll()
            #expect(try link.take(again) == [.connack(.accepted(sessionPresent: early))])
            try link.send(again, .publish("a", "x", qos: .atLeastOnce, 1))
            link.commitAll()
            #expect(try link.takePayloads(again) == (early ? ["x"] : []))
        }
    }
}
