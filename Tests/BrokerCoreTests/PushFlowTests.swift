import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Store
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Pushes, from the request to the queues of their clients.
@Suite("Pushes")
struct PushFlowTests {
    private static func request(
        _ id: String, to target: PushTarget, qos: QoS = .exactlyOnce, topic: String = "news",
        isFollowed: Bool = true, deliverAtMs: Int64? = nil, expiresInMs: Int64 = 0,
        spreadMs: Int64 = 0
    ) -> PushRequest {
        var publication = Publication(
            topic: Array(topic.utf8), payload: Array("payload".utf8), qos: qos)
        if isFollowed { publication.receiptID = Array(id.utf8) }
        return PushRequest(
            publication: publication, pushID: Array(id.utf8), target: target,
            deliverAtMs: deliverAtMs, expiresInMs: expiresInMs, spreadMs: spreadMs)
    }

    private static func tags(
        any: [String] = [], all: [String] = [], none: [String] = []
    ) -> PushTarget {
        .tags(
            TagExpression(
                any: any.map { Array($0.utf8) }, all: all.map { Array($0.utf8) },
                none: none.map { Array($0.utf8) }))
    }

    private static func list(_ clients: [String]) -> PushTarget {
        .clients(clients.map { Array($0.utf8) })
    }

    /// Clients with persistent sessions and without subscriptions, all offline.
    private func addOffline(_ clients: [String], _ link: ShardLink) throws {
        for client in clients {
            let phone = try link.connect(client, cleanSession: false)
            try link.send(phone, .disconnect)
            link.commitAll()
        }
    }

    private func tag(_ client: String, _ tags: String..., in link: ShardLink) {
        let answers = Answers<TagChange>()
        link.shard.changeTags(of: client, add: tags, remove: [], reply: answers.reply)
        link.turn()
        link.commitAll()
        #expect(answers.last == .changed(tags.sorted()))
    }

    private func push(_ request: PushRequest, _ link: ShardLink) -> PublishOutcome? {
        let answers = Answers<PublishOutcome>()
        link.shard.push(request, reply: answers.reply)
        link.turn()
        link.commitAll()
        return answers.last
    }

    /// Runs turns until the push has ended.
    private func finish(_ id: String, _ link: ShardLink, most: Int = 1_000) -> PushStatus? {
        for _ in 0..<most {
            link.advance(milliseconds: 1)
            link.commitAll()
            if let status = link.shard.pushStatus(OwnedName(Array(id.utf8), of: .unknown)),
                status.endedAtMs != nil
            {
                return status
            }
        }
        return link.shard.pushStatus(OwnedName(Array(id.utf8), of: .unknown))
    }

    private func state(of id: String, _ link: ShardLink) -> PushStatus? {
        link.shard.pushStatus(OwnedName(Array(id.utf8), of: .unknown))
    }

    private func list(below: UInt64?, _ link: ShardLink) -> PushPage {
        link.shard.pushList(below: below, limit: 1)
    }

    private func waiting(_ client: String, _ link: ShardLink) -> Int? {
        link.shard.client(client) { _ in "" }?.summary.queued
    }

    @Test("go to the clients with the tags, without subscriptions, online and offline")
    func tags() throws {
        let link = ShardLink()
        try addOffline(["a", "b", "c", "d"], link)
        tag("a", "vip", "cn", in: link)
        tag("b", "vip", in: link)
        tag("c", "vip", "test", in: link)
        tag("d", "cn", in: link)
        tag("nobody", "vip", in: link)
        let online = try link.connect("e")
        tag("e", "vip", in: link)
        let now = link.shard.wallClockMs
        let outcome = push(
            Self.request("p", to: Self.tags(any: ["vip", "unknown"], none: ["test"])), link)
        #expect(outcome == .scheduled(deliverAtMs: now))
        let status = try #require(finish("p", link))
        #expect(status.state == .done)
        #expect((status.matched, status.reached) == (4, 4))
        #expect((status.online, status.queued, status.withoutSession) == (1, 2, 1))
        #expect(["a", "b", "c", "d"].map { waiting($0, link) } == [1, 1, 0, 0])
        #expect(status.receipts?.receivers == 3)
        let packets = try link.take(online)
        guard case .publish(let publish)? = packets.first, packets.count == 1 else {
            Issue.record("\(packets)")
            return
        }
        #expect(publish.topic == Array("news".utf8))
        #expect(publish.payload == Array("payload".utf8))
        try link.send(online, .pubrec(1), .pubcomp(1))
        let acknowledged = state(of: "p", link)?.receipts?.acknowledged
        #expect(acknowledged == 1)
        let preview = Answers<PushPreview>()
        link.shard.previewPush(Self.tags(any: ["vip"]), reply: preview.reply)
        link.turn()
        #expect(
            preview.last == PushPreview(matched: 5, online: 1, offline: 3, withoutSession: 1))
    }

    @Test("go to a list in its order, and QoS 0 is lost for those who are offline")
    func list() throws {
        let link = ShardLink()
        try addOffline(["a", "b"], link)
        let online = try link.connect("c")
        _ = push(
            Self.request("p", to: Self.list(["b", "x", "c", "a"]), qos: .atMostOnce), link)
        let status = try #require(finish("p", link))
        #expect((status.matched, status.reached) == (4, 4))
        #expect((status.online, status.dropped, status.withoutSession) == (1, 2, 1))
        #expect(try link.take(online).count == 1)
    }

    @Test("are refused to clients who may not read the topic")
    func denied() throws {
        let link = try link("allow user ann subscribe news\nallow user bob subscribe other")
        for name in ["ann", "bob"] {
            _ = try link.connect(name, user: name)
        }
        _ = push(Self.request("p", to: Self.list(["ann", "bob"])), link)
        let status = try #require(finish("p", link))
        #expect((status.online, status.denied) == (1, 1))
    }

    @Test("are spread evenly, and what has not left can be cancelled")
    func spread() throws {
        let link = ShardLink()
        let clients = (1...100).map { "client \($0)" }
        for client in clients { tag(client, "all", in: link) }
        _ = push(
            Self.request(
                "p", to: Self.tags(all: ["all"]), deliverAtMs: link.shard.wallClockMs + 5_000,
                spreadMs: 10_000), link)
        link.advance(milliseconds: 4_999)
        #expect(state(of: "p", link)?.state == .scheduled)
        #expect(state(of: "p", link)?.matched == nil)
        link.advance(milliseconds: 1)
        #expect(state(of: "p", link)?.state == .sending)
        for second in 1...4 {
            for _ in 1...100 { link.advance(milliseconds: 10) }
            let reached = try #require(state(of: "p", link)).reached
            #expect(abs(reached - second * 10) <= 2)
        }
        let answers = Answers<PushStatus?>()
        link.shard.cancelPush(OwnedName(Array("p".utf8), of: .unknown), reply: answers.reply)
        link.turn()
        let status = try #require(answers.last ?? nil)
        #expect(status.state == .cancelled)
        #expect(status.matched == 100 && status.reached < 50)
        for _ in 1...100 { link.advance(milliseconds: 100) }
        #expect(state(of: "p", link) == status)
        link.shard.cancelPush(OwnedName(Array("unknown".utf8), of: .unknown), reply: answers.reply)
        #expect(answers.last == .some(nil))
    }

    @Test("leave out whoever has lost the tags before its turn, and end when they expire")
    func leftOut() throws {
        let link = ShardLink()
        for client in 1...50 { tag("client \(client)", "all", in: link) }
        _ = push(
            Self.request(
                "p", to: Self.tags(all: ["all"]), expiresInMs: 8_000, spreadMs: 10_000), link)
        link.advance(milliseconds: 1)
        link.advance(milliseconds: 4_000)
        let half = try #require(state(of: "p", link)).reached
        #expect((18...22).contains(half))
        for client in 1...50 {
            link.shard.changeTags(of: "client \(client)", add: [], remove: ["all"]) { _ in }
        }
        tag("late", "all", in: link)
        for _ in 1...20 { link.advance(milliseconds: 100) }
        var status = try #require(state(of: "p", link))
        #expect(status.reached == half)
        for _ in 1...21 { link.advance(milliseconds: 100) }
        status = try #require(state(of: "p", link))
        #expect(status.state == .done)
        #expect(status.endedAtMs ?? 0 <= status.createdAtMs + 8_200)
    }

    @Test("have limits: the oldest ended one makes room, and an open one does not")
    func limits() throws {
        let link = ShardLink { $0.pushes = 2 }
        let now = link.shard.wallClockMs
        let later = now + 60_000
        #expect(
            push(Self.request("1", to: Self.list(["a"])), link)
                == .scheduled(deliverAtMs: now))
        _ = finish("1", link)
        _ = push(Self.request("2", to: Self.list(["a"]), deliverAtMs: later), link)
        #expect(
            push(Self.request("2", to: Self.list(["a"])), link) == .alreadyScheduled)
        _ = push(Self.request("3", to: Self.list(["a"]), deliverAtMs: later), link)
        #expect(state(of: "1", link) == nil)
        #expect(push(Self.request("4", to: Self.list(["a"])), link) == .tooManyScheduled)
        #expect(list(below: nil, link).pushes.map(\.pushID) == ["3"])
        let next = try #require(list(below: nil, link).next)
        let second = try #require(state(of: "2", link))
        #expect(list(below: UInt64(next), link) == PushPage(pushes: [second]))
        let small = ShardLink { $0.scheduledBytes = 500 }
        #expect(
            push(Self.request("1", to: Self.list(["a", "b", "c"])), small) == .tooManyScheduled)
        let tags = Answers<TagChange>()
        let full = ShardLink { $0.tagBytes = 150 }
        full.shard.changeTags(of: "a", add: ["x"], remove: [], reply: tags.reply)
        full.turn()
        full.shard.changeTags(of: "b", add: ["y"], remove: [], reply: tags.reply)
        full.shard.changeTags(
            of: "a", add: (1...64).map { "\($0)" }, remove: [], reply: tags.reply)
        #expect(tags.last == .tooManyTags)
        #expect((try? tags.values[1].get()) == .full)
    }

    @Test("that have ended go in the order of their ends")
    func order() throws {
        let link = ShardLink { $0.pushes = 2 }
        _ = push(Self.request("slow", to: Self.list(["a", "b"]), spreadMs: 5_000), link)
        _ = push(Self.request("quick", to: Self.list(["a"])), link)
        _ = finish("quick", link)
        #expect(state(of: "slow", link)?.state == .sending)
        for _ in 1...60 { link.advance(milliseconds: 100) }
        #expect(state(of: "slow", link)?.state == .done)
        _ = push(Self.request("third", to: Self.list(["a"])), link)
        #expect(state(of: "slow", link) != nil)
        #expect(state(of: "quick", link) == nil)
        // A day after their ends they go without a push that needs the room.
        link.advance(milliseconds: 24 * 3_600_000 - 10_000)
        #expect(state(of: "slow", link) != nil)
        link.advance(milliseconds: 11_000)
        link.turn()
        #expect(state(of: "slow", link) == nil)
    }

    /// Whatever the store has when the broker ends, each client gets the push once: what the store
    /// has, and what is sent after the start, are together one delivery for each.
    @Test("reach each client once, wherever the broker ends", arguments: [false, true])
    func restart(isList: Bool) throws {
        let clients = (1...120).map { "client \($0)" }
        let link = ShardLink(isImmediate: false)
        try addOffline(clients, link)
        for client in clients { tag(client, "all", in: link) }
        let begin = link.store.groups.count
        let target = isList ? Self.list(clients) : Self.tags(all: ["all"])
        _ = push(Self.request("p", to: target, spreadMs: 2_000), link)
        for _ in 1...40 {
            link.advance(milliseconds: 100)
            link.commitAll()
        }
        #expect(state(of: "p", link)?.state == .done)
        let groups = link.store.groups
        #expect(groups.count - begin > 10)
        for end in begin + 1...groups.count {
            let records = groups[..<end].flatMap(\.records)
            // Sessions get the same numbers again.
            let restarted = ShardLink()
            try addOffline(clients, restarted)
            var names: [UInt64: String] = [:]
            var model = StoreModel()
            model.apply(records)
            var deliveries: [String: Int] = [:]
            for record in records {
                switch record {
                case .session(let number, let identifier, _):
                    names[number] = String(decoding: identifier, as: UTF8.self)
                case .queued(let session, _, _, _, _, _):
                    deliveries[names[session] ?? "?", default: 0] += 1
                default: break
                }
            }
            for (name, kept) in model.facts.sorted(by: { $0.key < $1.key }) {
                let fact = StoreRecord.Fact(
                    table: name.table, owner: kept.owner, key: name.key, value: kept.value,
                    isNew: false)
                let isKnown = fact.read { restarted.shard.visit($0) }
                #expect(isKnown == true)
            }
            restarted.shard.finishRestoring()
            let status = try #require(finish("p", restarted, most: 4_000))
            #expect(status.state == .done)
            for (_, records) in restarted.store.groups {
                for case .queued(let session, _, _, _, _, _) in records {
                    deliveries[names[session] ?? "?", default: 0] += 1
                }
            }
            #expect(deliveries == Dictionary(uniqueKeysWithValues: clients.map { ($0, 1) }))
            #expect((status.reached, status.queued) == (120, 120))
        }
    }
}
