import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Store
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Messages whose time is over, wherever they are.
@Suite("Expiry")
struct ExpiryFlowTests {
    private static func message(
        _ id: String, on topic: String = "t", in milliseconds: Int64?, _ link: ShardLink,
        qos: QoS = .atLeastOnce, retain: Bool = false, isFollowed: Bool = true
    ) -> Publication {
        var publication = Publication(
            topic: Array(topic.utf8), payload: Array(id.utf8), qos: qos, retain: retain,
            expiresAtMs: milliseconds.map { link.shard.wallClockMs + $0 })
        if isFollowed { publication.receiptID = Array(id.utf8) }
        return publication
    }

    @discardableResult
    private func publish(_ publication: Publication, _ link: ShardLink) -> PublishOutcome? {
        let answers = Answers<PublishOutcome>()
        link.shard.publish(publication, reply: answers.reply)
        link.turn()
        link.commitAll()
        return answers.last
    }

    @discardableResult
    private func publish(
        _ id: String, in milliseconds: Int64? = nil, _ link: ShardLink
    ) -> PublishOutcome? {
        publish(Self.message(id, in: milliseconds, link), link)
    }

    /// The states of a message's receivers, with their reasons.
    private func states(_ id: String, _ link: ShardLink) -> [String] {
        let name = OwnedName(Array(id.utf8), of: .unknown)
        return link.shard.receipt(of: name)?.receivers?.map { receiver in
            receiver.state.rawValue + (receiver.reason.map { " \($0)" } ?? "")
        } ?? ["unknown"]
    }

    private func addOffline(
        _ client: String, _ link: ShardLink, _ qos: QoS = .atLeastOnce
    ) throws {
        let phone = try link.subscriber(client, to: "t", qos)
        try link.send(phone, .disconnect)
        link.commitAll()
    }

    /// What waits for a client that comes back.
    private func receive(_ client: String, _ link: ShardLink) throws -> [String] {
        let phone = try link.beginConnect(client)
        var found: [String] = []
        while true {
            link.commitAll()
            let packets = try link.take(phone)
            guard !packets.isEmpty else { break }
            for case .publish(let publish) in packets {
                found.append(String(decoding: publish.payload, as: UTF8.self))
                if case .atLeastOnce(let identifier, _) = publish.delivery {
                    try link.send(phone, .puback(identifier))
                }
            }
        }
        try link.send(phone, .disconnect)
        link.commitAll()
        return found
    }

    // MARK: Queues

    @Test(
        "dead messages take no place from living ones, in memory and in the store",
        arguments: [true, false], BrokerLimits.QueuePolicy.allCases)
    func livingComesFirst(isDurable: Bool, policy: BrokerLimits.QueuePolicy) throws {
        let link = ShardLink(
            {
                $0.queueMessages = 3
                $0.queuePolicy = policy
            }, isDurable: isDurable)
        try addOffline("phone", link)
        publish("living", link)
        for number in 1...3 {
            publish("dead \(number)", in: 1_000, link)
            link.advance(milliseconds: 1_300)
        }
        #expect(link.shard.figures.queued == 1)
        #expect(states("dead 1", link) == ["expired"])
        publish("second", link)
        publish("third", link)
        #expect(try receive("phone", link) == ["living", "second", "third"])
        #expect(link.reached(.queueMessages) == 0)
        #expect(link.shard.figures.queued == 0)
        #expect(link.shard.figures.queuedBytes == 0)
    }

    @Test(
        "an incoming message removes dead ones before a sweep has come",
        arguments: [true, false], BrokerLimits.QueuePolicy.allCases)
    func incomingRemovesDead(isDurable: Bool, policy: BrokerLimits.QueuePolicy) throws {
        let link = ShardLink(
            {
                $0.queueMessages = 3
                $0.queuePolicy = policy
            }, isDurable: isDurable)
        try addOffline("phone", link)
        publish("living", link)
        publish("dead 1", in: 50, link)
        publish("dead 2", in: 50, link)
        // The time passes within a turn.
        link.shard.beginTurn(
            at: link.shard.now.advanced(byMilliseconds: 50),
            wallClockMs: link.shard.wallClockMs + 50)
        publish("second", link)
        #expect(states("dead 2", link) == ["expired"])
        #expect(link.reached(.queueMessages) == 0)
        #expect(try receive("phone", link) == ["living", "second"])
    }

    @Test("limits.queue_bytes counts no dead message", arguments: [true, false])
    func bytes(isDurable: Bool) throws {
        let link = ShardLink(
            {
                $0.queueBytes = 500
                $0.queuePolicy = .dropNewest
            }, isDurable: isDurable)
        try addOffline("phone", link)
        let long = String(repeating: "x", count: 200)
        publish("living", link)
        publish(long, in: 1_000, link)
        publish(long, in: 1_000, link)
        link.advance(milliseconds: 1_300)
        publish(long + "2", link)
        publish(long + "3", link)
        #expect(try receive("phone", link) == ["living", long + "2", long + "3"])
    }

    @Test("dead messages between living ones leave; the order and the counts stay right")
    func between() throws {
        let link = ShardLink()
        try addOffline("phone", link)
        var living: [String] = []
        for number in 0..<700 {
            let isLiving = number % 7 == 3
            if isLiving { living.append("\(number)") }
            publish("\(number)", in: isLiving ? nil : 1_000 + Int64(number % 5) * 100, link)
        }
        for _ in 0..<30 { link.advance(milliseconds: 100) }
        #expect(link.shard.figures.queued == living.count)
        publish("last", link)
        #expect(try receive("phone", link) == living + ["last"])
        #expect(link.shard.figures.queued == 0)
        let holes = link.shard.sessions.holes.isEmpty
        #expect(holes)
    }

    @Test("a client whose window holds dead messages alone gets what lies behind them")
    func emptiedWindow() throws {
        let link = ShardLink { $0.maxInFlight = 2 }
        let phone = try link.subscriber("phone", to: "t", .atLeastOnce)
        publish("1", link)
        publish("2", link)
        // The window of memory, and some that only the store has.
        for number in 0..<80 { publish("dead \(number)", in: 1_000, link) }
        publish("behind", link)
        #expect(try link.takePayloads(phone) == ["1", "2"])
        for _ in 0..<4 { link.advance(milliseconds: 500) }
        link.commitAll()
        #expect(states("dead 79", link) == ["expired"])
        try link.send(phone, .puback(1))
        link.commitAll()
        #expect(try link.takePayloads(phone) == ["behind"])
        #expect(link.shard.figures.queued == 0)
    }

    @Test("what was sent and not acknowledged stays, and is sent again", arguments: [true, false])
    func inFlight(isDurable: Bool) throws {
        let link = ShardLink(isDurable: isDurable)
        let phone = try link.subscriber("phone", to: "t", .atLeastOnce)
        publish("sent", in: 1_000, link)
        #expect(try link.takePayloads(phone) == ["sent"])
        link.lose(phone)
        for _ in 0..<8 { link.advance(milliseconds: 500) }
        link.commitAll()
        #expect(states("sent", link) == ["sent"])
        #expect(link.shard.figures.inFlight == 1)
        #expect(try receive("phone", link) == ["sent"])
        #expect(states("sent", link) == ["acknowledged"])
    }

    @Test(
        "a message that comes dead goes to nobody and pushes nothing out", arguments: QoS.allCases)
    func deadOnArrival(qos: QoS) throws {
        let link = ShardLink { $0.queueMessages = 1 }
        try addOffline("phone", link)
        publish("living", link)
        let outcome = publish(Self.message("dead", in: -1, link, qos: qos), link)
        guard case .published(let counts) = outcome else {
            Issue.record("\(String(describing: outcome))")
            return
        }
        #expect((counts.matched, counts.queued, counts.dropped) == (1, 0, 1))
        #expect(states("dead", link) == ["expired"])
        #expect(try receive("phone", link) == ["living"])
    }

    @Test("messages that are moved over holes in memory still end at their time")
    func moved() throws {
        let link = ShardLink({ $0.queueMessages = 1_000_000 }, isDurable: false)
        try addOffline("phone", link)
        publish("a", in: 1_000, link)
        publish("b", in: 5_000, link)
        publish("c", in: 3_000, link)
        publish("d", link)
        link.advance(milliseconds: 1_300)
        let session = try #require(
            Array("phone".utf8).withUnsafeBytes { link.shard.sessions.find($0) })
        link.shard.closeHoles(session)
        #expect(link.shard.figures.queued == 3)
        link.advance(milliseconds: 2_000)
        #expect(states("c", link) == ["expired"])
        #expect(states("b", link) == ["queued"])
        #expect(try receive("phone", link) == ["b", "d"])
    }

    @Test("the event says expired at its time, while the client is away")
    func event() throws {
        let link = ShardLink({ $0.keepsReceiptEvents = true })
        try addOffline("phone", link)
        let expiry = link.shard.wallClockMs + 600_000
        publish("status", in: 600_000, link)
        let answers = Answers<[ReceiptEvent]>()
        link.advance(milliseconds: 599_900)
        #expect(states("status", link) == ["queued"])
        link.advance(milliseconds: 500)
        link.commitAll()
        #expect(states("status", link) == ["expired"])
        link.shard.receiptEvents(after: 0, most: 10, reply: answers.reply)
        link.turn()
        let event = try #require(answers.last?.first)
        #expect(event.outcome == .expired)
        #expect(event.atMs >= expiry && event.atMs < expiry + 1_000)
        #expect(try receive("phone", link) == [])
    }

    @Test("the deadline of a turn is that of the next message to expire")
    func deadline() throws {
        let link = ShardLink(systemTopicInterval: .seconds(0))
        try addOffline("phone", link)
        for _ in 0..<3 { link.advance(milliseconds: 2_000) }
        publish("status", in: 700, link)
        link.turn()
        let deadline = link.shard.nextDeadline
        let wait = try #require(deadline).milliseconds(since: link.shard.now)
        #expect(wait >= 650 && wait <= 800, "\(wait) ms")
    }

    @Test("very many that expire at once leave in slices, and no turn does more than one")
    func slices() throws {
        let link = ShardLink { $0.queueMessages = 10_000 }
        try addOffline("phone", link)
        for number in 0..<2_000 { publish("\(number)", in: 10_000, link) }
        link.shard.beginTurn(
            at: link.shard.now.advanced(byMilliseconds: 11_000),
            wallClockMs: link.shard.wallClockMs + 11_000)
        var left = [link.shard.figures.queued]
        while left[left.count - 1] > 0, left.count < 20 {
            let deadline = link.shard.nextDeadline
            #expect(try #require(deadline) <= link.shard.now)
            link.turnOnce()
            left.append(link.shard.figures.queued)
        }
        #expect(left.count >= 4 && left.last == 0, "\(left)")
        #expect(zip(left, left.dropFirst()).allSatisfy { $0 - $1 <= 512 }, "\(left)")
    }

    // MARK: After a crash

    @Test(
        "what cannot have been sent before a crash and has expired is not sent",
        arguments: [QoS.atLeastOnce, .exactlyOnce])
    func neverSent(qos: QoS) throws {
        // As after a crash: more positions may have been sent than the client may have in flight.
        let link = ShardLink { $0.maxInFlight = 40 }
        let phone = try link.subscriber("phone", to: "t", qos)
        for number in 0..<40 {
            let expiry: Int64? = number % 10 == 9 ? nil : 1_000
            publish(Self.message("\(number)", in: expiry, link, qos: qos), link)
        }
        #expect(try link.takePayloads(phone).count == 40)
        link.lose(phone)
        link.shard.limits.maxInFlight = 12
        for _ in 0..<4 { link.advance(milliseconds: 1_000) }
        link.commitAll()
        let again = try link.beginConnect("phone")
        var payloads: [String] = []
        var packets = try link.take(again)
        for _ in 0..<200 {
            link.commitAll()
            packets += try link.take(again)
            guard !packets.isEmpty else { break }
            switch packets.removeFirst() {
            case .publish(let publish):
                payloads.append(String(decoding: publish.payload, as: UTF8.self))
                switch publish.delivery {
                case .atMostOnce: break
                case .atLeastOnce(let identifier, _): try link.send(again, .puback(identifier))
                case .exactlyOnce(let identifier, _): try link.send(again, .pubrec(identifier))
                }
            case .pubrel(let identifier): try link.send(again, .pubcomp(identifier))
            default: break
            }
        }
        #expect(payloads == (0..<12).map { "\($0)" } + ["19", "29", "39"])
        #expect(states("15", link) == ["expired"])
        #expect(link.shard.figures.inFlight == 0)
    }

    @Test(
        "receipts tell of it at its time, while the client is away",
        arguments: [QoS.atLeastOnce, .exactlyOnce])
    func neverSentWhileAway(qos: QoS) throws {
        let link = ShardLink { $0.maxInFlight = 40 }
        let phone = try link.subscriber("phone", to: "t", qos)
        for number in 0..<30 {
            let expiry: Int64? = number % 10 == 9 ? nil : 1_000
            publish(Self.message("\(number)", in: expiry, link, qos: qos), link)
        }
        link.lose(phone)
        link.shard.limits.maxInFlight = 12
        for _ in 0..<4 { link.advance(milliseconds: 1_000) }
        link.commitAll()
        #expect(states("11", link) == ["sent"])
        #expect(states("12", link) == ["expired"])
        #expect(states("19", link) == ["sent"])
        #expect(states("28", link) == ["expired"])
        // The packet identifiers of QoS 2 stay.
        #expect(link.shard.figures.inFlight == (qos == .atLeastOnce ? 14 : 30))
        _ = try link.beginConnect("phone")
        link.commitAll()
        #expect(link.shard.figures.inFlight == (qos == .atLeastOnce ? 14 : 30))
    }

    // MARK: Retained messages

    private func retained(_ link: ShardLink) -> [String] {
        let answers = Answers<RetainedPage>()
        link.shard.listRetained(
            RetainedQuery(filter: "#", limit: 100), reply: answers.reply)
        while answers.values.isEmpty {
            link.shard.continueListings(address: { _ in "" }, peer: { _ in fatalError() })
        }
        return answers.last?.retained.map(\.topic) ?? []
    }

    @Test("an expired retained message is neither listed nor served, and makes room")
    func retainedRoom() throws {
        let link = ShardLink { $0.maxRetained = 2 }
        func keep(_ topic: String, in milliseconds: Int64?) -> NotRetained? {
            let message = Self.message(
                topic, on: topic, in: milliseconds, link, retain: true, isFollowed: false)
            guard case .published(let counts) = publish(message, link) else { return nil }
            return counts.notRetained
        }
        #expect(keep("a", in: 1_000) == nil)
        #expect(keep("b", in: nil) == nil)
        #expect(keep("c", in: nil) == .maxRetained)
        #expect(keep("b", in: -1) == .expired)
        link.shard.beginTurn(
            at: link.shard.now.advanced(byMilliseconds: 1_000),
            wallClockMs: link.shard.wallClockMs + 1_000)
        #expect(link.shard.retainedMessage(of: "a") == nil)
        #expect(retained(link) == ["b"])
        for _ in 0..<2 { link.advance(milliseconds: 300) }
        #expect(link.shard.figures.retained == 1)
        link.commitAll()
        #expect(
            link.store.records.contains(.retainedRemoved(topic: Array("a".utf8))),
            "it leaves the store, too")
        #expect(keep("d", in: nil) == nil)
        #expect(retained(link) == ["b", "d"])
    }

    @Test("a retained message makes room for another before a sweep has come")
    func retainedAtOnce() throws {
        let link = ShardLink { $0.maxRetained = 1 }
        publish(Self.message("a", on: "a", in: 50, link, retain: true), link)
        link.shard.beginTurn(
            at: link.shard.now.advanced(byMilliseconds: 50),
            wallClockMs: link.shard.wallClockMs + 50)
        publish(Self.message("b", on: "b", in: nil, link, retain: true), link)
        #expect(retained(link) == ["b"])
        #expect(link.reached(.maxRetained) == 0)
    }

    @Test("a later retained message of the topic keeps its own time")
    func retainedReplaced() throws {
        let link = ShardLink()
        publish(Self.message("1", on: "a", in: 1_000, link, retain: true), link)
        publish(Self.message("2", on: "a", in: 5_000, link, retain: true), link)
        for _ in 0..<3 { link.advance(milliseconds: 700) }
        #expect(link.shard.retainedMessage(of: "a")?.payload == Array("2".utf8))
        publish(Self.message("3", on: "a", in: nil, link, retain: true), link)
        for _ in 0..<9 { link.advance(milliseconds: 700) }
        #expect(link.shard.retainedMessage(of: "a")?.payload == Array("3".utf8))
    }

    // MARK: Scheduled messages

    @Test(
        "a scheduled message whose time was over while the broker was down is told of",
        arguments: [true, false])
    func scheduled(isFollowed: Bool) throws {
        let link = ShardLink({ $0.keepsReceiptEvents = true })
        try addOffline("phone", link)
        var message = Self.message("s", in: nil, link, retain: true, isFollowed: isFollowed)
        message.schedule = MessageSchedule(
            messageID: Array("s".utf8), deliverAtMs: link.shard.wallClockMs + 1_000,
            expiresInMs: 2_000)
        #expect(publish(message, link) == .scheduled(deliverAtMs: link.shard.wallClockMs + 1_000))
        // No turn comes in time, as when the broker is down.
        for _ in 0..<3 { link.advance(milliseconds: 60_000) }
        link.commitAll()
        #expect(link.shard.scheduledMessage(OwnedName(Array("s".utf8), of: .unknown)) == nil)
        #expect(states("s", link) == [isFollowed ? "expired" : "unknown"])
        #expect(link.shard.figures.feature("hermes_scheduled_expired_total") == 1)
        #expect(link.shard.figures.feature("hermes_scheduled_fired_total") == 0)
        #expect(link.shard.retainedMessage(of: "t") == nil)
        let told = link.notices.contains { notice in
            if case .scheduledExpired(let id, _) = notice { id == Array("s".utf8) } else { false }
        }
        #expect(told)
        let answers = Answers<[ReceiptEvent]>()
        link.shard.receiptEvents(after: 0, most: 10, reply: answers.reply)
        link.advance(milliseconds: 11_000)
        #expect(answers.last?.map(\.outcome) == (isFollowed ? [.expired] : []))
        #expect(try receive("phone", link) == [])
    }

    // MARK: Sessions

    @Test("entries of ended sessions, and of acknowledged messages, end nothing of others")
    func otherSessions() throws {
        let link = ShardLink()
        for round in 0..<20 {
            let client = "phone \(round)"
            try addOffline(client, link)
            publish("x", in: 1_000, link)
            let answers = Answers<Bool>()
            link.shard.endSession(of: client, reply: answers.reply)
            link.turn()
            link.commitAll()
        }
        // It has the index and the positions of those before.
        try addOffline("last", link)
        publish("living", link)
        for _ in 0..<3 { link.advance(milliseconds: 1_000) }
        #expect(try receive("last", link) == ["living"])
        let left = link.shard.expiries.isEmpty
        #expect(left)
    }
}
