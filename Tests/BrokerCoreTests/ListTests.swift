import BrokerAPI
import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Synchronization
import Testing

/// Lists of subscriptions and retained messages, and the receivers of a topic.
@Suite("Lists of subscriptions and retained messages")
struct ListTests {
    // MARK: Subscriptions

    private func subscriptions(
        _ link: ShardLink, clientID: String? = nil, prefix: String = "", limit: Int = 2
    ) -> [String] {
        var query = SubscriptionQuery(clientID: clientID, prefix: prefix, limit: limit)
        var found: [String] = []
        while true {
            let page = link.shard.subscriptionPage(query)
            #expect(page.subscriptions.count <= limit)
            found += page.subscriptions.map { "\($0.clientID) \($0.filter) \($0.qos)" }
            guard let next = page.next.flatMap({ UInt64($0) }) else { return found.sorted() }
            #expect(next > query.from, "a page advances")
            query.from = next
        }
    }

    @Test("every subscription is listed once, whatever the size of a page", arguments: 1...7)
    func subscriptions(limit: Int) throws {
        let link = ShardLink()
        let a = try link.connect("a", cleanSession: false)
        try link.send(a, .subscribe("x/#", .exactlyOnce))
        try link.send(a, .subscribe("$share/g/x", .atLeastOnce))
        try link.send(a, .subscribe("y", .atMostOnce))
        link.lose(a)
        _ = try link.connect("b")
        let c = try link.connect("c")
        try link.send(c, .subscribe("x/1", .atMostOnce))
        let all = ["a $share/g/x 1", "a x/# 2", "a y 0", "c x/1 0"]
        #expect(subscriptions(link, limit: limit) == all)
        #expect(subscriptions(link, clientID: "a", limit: limit) == Array(all.prefix(3)))
        #expect(subscriptions(link, prefix: "x/", limit: limit) == [all[1], all[3]])
        #expect(subscriptions(link, clientID: "nobody", limit: limit) == [])
        #expect(subscriptions(link, clientID: "b", limit: limit) == [])
    }

    /// A page passes over the filters that pages before it have listed, and went no further than so many.
    @Test("a client with very many filters is listed to the end, and shown with the first")
    func mostFilters() throws {
        let link = ShardLink()
        let handle = try link.connect("a")
        let count = 70_000
        for first in stride(from: 0, to: count, by: 5_000) {
            let filters = (first..<first + 5_000).map {
                PacketContent.Request("\($0)", .atMostOnce)
            }
            link.receive(handle, try PacketContent.subscribe(7, filters).encoded())
            for _ in 0..<100 where try link.take(handle).isEmpty { link.turnOnce() }
        }
        try link.send(try link.connect("b"), .subscribe("last", .atMostOnce))
        let listed = subscriptions(link, limit: 1_000)
        #expect(listed.count == count + 1 && Set(listed).count == listed.count)
        let detail = link.shard.client("a") { _ in "" }
        #expect(detail?.summary.subscriptions == count)
        #expect(detail?.subscriptionList.count == ClientDetail.mostListed)
    }

    @Test("long filters end a page and a client's detail before they are many")
    func longFilters() throws {
        let link = ShardLink()
        let handle = try link.connect("a")
        let long = String(repeating: "x", count: 60_000)
        for number in 0..<30 { try link.send(handle, .subscribe("\(number)\(long)", .atMostOnce)) }
        let page = link.shard.subscriptionPage(SubscriptionQuery(limit: 1_000))
        #expect((1..<20).contains(page.subscriptions.count) && page.next != nil)
        #expect(subscriptions(link, limit: 1_000).count == 30)
        let detail = link.shard.client("a") { _ in "" }
        #expect(detail?.summary.subscriptions == 30)
        #expect((1..<20).contains(detail?.subscriptionList.count ?? 0))
    }

    @Test("one answer looks at a bounded part of very many subscriptions")
    func bounded() throws {
        let link = ShardLink()
        let handle = try link.connect("a")
        for number in 0..<3_000 { try link.send(handle, .subscribe("\(number)", .atMostOnce)) }
        let page = link.shard.subscriptionPage(SubscriptionQuery(prefix: "none", limit: 1_000))
        #expect(page.subscriptions.isEmpty)
        #expect(page.next != nil)
        #expect(subscriptions(link, limit: 1_000).count == 3_000)
    }

    // MARK: Receivers

    @Test("receivers are told apart by what would become of the message")
    func receivers() throws {
        let link = ShardLink()
        for (name, cleanSession, qos) in [
            ("here", true, QoS.exactlyOnce), ("away", false, .atLeastOnce),
            ("careless", false, .atMostOnce),
        ] {
            let handle = try link.connect(name, cleanSession: cleanSession)
            try link.send(handle, .subscribe("a/+", qos), .subscribe("a/b", .atMostOnce))
            if name != "here" { link.lose(handle) }
        }
        let member = try link.connect("member")
        try link.send(member, .subscribe("$share/g/a/#", .atMostOnce))
        let resting = try link.connect("resting", cleanSession: false)
        try link.send(resting, .subscribe("$share/g/a/#", .exactlyOnce))
        link.lose(resting)
        let answer = try #require(receivers(link, "a/b", .atLeastOnce, limit: 100))
        let found = answer.receivers.map { "\($0.clientID) \($0.qos) \($0.outcome.rawValue)" }
        #expect(found.sorted() == ["away 1 queued", "careless 0 lost", "here 1 sent"])
        #expect(answer.groups == ["$share/g/a/#"])
        let group = try #require(answer.candidates.first)
        #expect(answer.candidates.count == 1)
        #expect(group.filter == "$share/g/a/#" && group.members == 2)
        let candidates = group.candidates.map {
            "\($0.clientID) \($0.qos) \($0.outcome.rawValue)"
        }
        #expect(candidates == ["member 0 sent", "resting 1 queued"], "the connected one first")
        let cut = receivers(link, "a/b", .atMostOnce, limit: 1)
        #expect(cut?.matched == 3)
        #expect(cut?.receivers.count == 1)
        #expect(cut?.candidates.first?.candidates.count == 1)
        let nobody = receivers(link, "b", .atMostOnce, limit: 1)
        #expect(nobody?.matched == 0)
    }

    /// The receivers of a topic, which few filters match.
    private func receivers(
        _ link: ShardLink, _ topic: String, _ qos: QoS, limit: Int
    ) -> TopicReceivers? {
        let answers = Answers<TopicReceivers>()
        link.shard.listReceivers(of: topic, qos: qos, limit: limit, reply: answers.reply)
        link.shard.continueListings(address: { _ in "" }, peer: { _ in .unknown })
        return answers.last
    }

    @Test("receivers that very many filters match take slices, in turn with clients' messages")
    func manyFilters() throws {
        let link = ShardLink()
        let subscriber = try link.connect("subscriber")
        try link.subscribeToManyFilters(subscriber)
        let publisher = try link.connect("publisher")
        let topic = [String](repeating: "a", count: 13).joined(separator: "/")
        let answers = Answers<TopicReceivers>()
        for name in ["x", "y", "z"] {
            link.shard.listReceivers(
                of: "\(topic)/\(name)", qos: .atMostOnce, limit: 10, reply: answers.reply)
        }
        link.receive(publisher, try PacketContent.publish("\(topic)/p", "p").encoded())
        var (turns, arrivedAfter) = (0, 0)
        while answers.values.count < 3 || link.shard.hasTurnWaiters, turns < 1_000 {
            let before = link.shard.context.budget.unitsLeft
            link.shard.continueListings(address: { _ in "" }, peer: { _ in .unknown })
            #expect(before - link.shard.context.budget.unitsLeft < 8_192)
            link.turnOnce()
            turns += 1
            if try !link.take(subscriber).isEmpty { arrivedAfter = answers.values.count }
        }
        #expect(turns > 6 && arrivedAfter < 3, "\(turns) turns, \(arrivedAfter) answers before")
        #expect(
            answers.values.allSatisfy {
                if case .success(let found) = $0 { found.matched == 1 } else { false }
            })
    }

    // MARK: Retained messages

    private func page(_ link: ShardLink, _ query: RetainedQuery) throws -> RetainedPage {
        let answer = Mutex<BrokerAnswer<RetainedPage>?>(nil)
        link.shard.listRetained(query) { page in answer.withLock { $0 = page } }
        #expect(link.shard.nextDeadline == link.shard.now, "the loop goes on with it at once")
        for _ in 0..<1_000 {
            link.shard.continueListings(address: { _ in "" }, peer: { _ in .unknown })
            if let page = answer.withLock({ $0 }) { return try page.get() }
        }
        throw NoAnswer()
    }

    private struct NoAnswer: Error {}

    @Test("topics that may be on a page count for more of a turn than others")
    func candidates() throws {
        let link = ShardLink()
        let publisher = try link.connect("p")
        try retain(link, publisher, (1_000..<2_000).map { "\($0)" })
        func turns(_ query: RetainedQuery) -> Int {
            let answers = Answers<RetainedPage>()
            link.shard.listRetained(query, reply: answers.reply)
            var turns = 0
            while answers.values.isEmpty, turns < 1_000 {
                link.shard.continueListings(address: { _ in "" }, peer: { _ in .unknown })
                turns += 1
            }
            return turns
        }
        #expect(turns(RetainedQuery(limit: 1_000)) > 6)
        #expect(turns(RetainedQuery(filter: "none/+", limit: 1_000)) == 1)
    }

    private func retain(_ link: ShardLink, _ publisher: Handle, _ topics: [String]) throws {
        for topic in topics { try link.send(publisher, .publish(topic, "v", retain: true)) }
    }

    @Test("retained messages are listed by topic, each once", arguments: 1...6)
    func retained(limit: Int) throws {
        let link = ShardLink()
        let publisher = try link.connect("p")
        let long = "a/" + String(repeating: "x", count: 300)
        try retain(link, publisher, ["b", "a/2", long + "2", "a", "ä", "a/1", long + "1"])
        for (filter, topics) in [
            ("#", ["a", "a/1", "a/2", long + "1", long + "2", "b", "ä"]), ("+", ["a", "b", "ä"]),
            ("a/1", ["a/1"]), ("none/#", []),
        ] {
            var query = RetainedQuery(filter: filter, limit: limit)
            var found: [String] = []
            repeat {
                let page = try page(link, query)
                found += page.retained.map(\.topic)
                query.cursor = page.next
            } while query.cursor != nil
            // The hash decides among long topics with one beginning.
            #expect(found.map { String($0.prefix(256)) } == topics.map { String($0.prefix(256)) })
            #expect(Set(found) == Set(topics))
        }
    }

    @Test("a page holds what it lists, and frees it, while messages change")
    func changes() throws {
        let link = ShardLink(isDurable: false)
        let publisher = try link.connect("p")
        try retain(link, publisher, (0..<10_000).map { "t/\($0)" })
        let before = link.shard.pool.bytesInUse
        let answer = Mutex<BrokerAnswer<RetainedPage>?>(nil)
        link.shard.listRetained(RetainedQuery(limit: 3)) { page in answer.withLock { $0 = page } }
        link.shard.continueListings(address: { _ in "" }, peer: { _ in .unknown })
        #expect(answer.withLock { $0 } == nil, "10,000 topics take several turns")
        for number in 0..<10_000 {
            try link.send(publisher, .publish("t/\(number)", "", retain: true))
        }
        while answer.withLock({ $0 }) == nil {
            link.shard.continueListings(address: { _ in "" }, peer: { _ in .unknown })
        }
        try retain(link, publisher, (0..<10_000).map { "t/\($0)" })
        #expect(link.shard.pool.bytesInUse == before)
    }

    @Test("a retained message is shown and deleted, and nobody is told")
    func deleted() throws {
        let link = ShardLink()
        let publisher = try link.connect("p")
        try retain(link, publisher, ["a"])
        let subscriber = try link.connect("s")
        try link.send(subscriber, .subscribe("a", .atMostOnce))
        let shown = link.shard.retainedMessage(of: "a")
        #expect(shown?.payload == Array("v".utf8))
        let absent = link.shard.retainedMessage(of: "b")
        #expect(absent == nil)
        let received = try link.take(subscriber).count
        #expect(received > 0)
        for expected in [true, false] {
            let answer = Mutex<BrokerAnswer<Bool>?>(nil)
            link.shard.removeRetained("a") { wasThere in answer.withLock { $0 = wasThere } }
            link.turn()
            #expect(answer.withLock { $0 } == .success(expected))
        }
        let deleted = link.shard.retainedMessage(of: "a")
        #expect(deleted == nil)
        let later = try link.take(subscriber)
        #expect(later.isEmpty)
    }

    @Test("a waiting list gets an error when the shard stops")
    func stop() throws {
        let link = ShardLink()
        let publisher = try link.connect("p")
        try retain(link, publisher, ["a"])
        let answer = Mutex<BrokerAnswer<RetainedPage>?>(nil)
        link.shard.listRetained(RetainedQuery()) { page in answer.withLock { $0 = page } }
        link.shard.abandonReplies()
        #expect(answer.withLock { $0 } == .failure(.stopping))
    }
}
