import Glibc
import HermesTesting
import MQTTCodec
import Testing

@testable import MQTTCore
@testable import Structures

/// A trie with the lists of its sessions.
struct Subscribers: ~Copyable {
    var trie: SubscriptionTrie
    var lists: [SubscriptionTrie.List]
    /// Each session's subscriptions, as a dictionary.
    var model: [[String: QoS]]

    init(sessions: Int, pool: BytePool) {
        trie = SubscriptionTrie(hash: KeyedHash(seed: 11), pool: pool)
        lists = [SubscriptionTrie.List](repeating: SubscriptionTrie.List(), count: sessions)
        model = [[String: QoS]](repeating: [:], count: sessions)
    }

    mutating func subscribe(_ session: Int, _ filter: String, _ qos: QoS) {
        let result = filter.withTopicBytes {
            trie.subscribe(
                UInt32(session), &lists[session], filter: $0, grant: SubscriptionGrant(qos))
        }
        let isNew = model[session].updateValue(qos, forKey: filter) == nil
        #expect((result == .added) == isNew, "\(filter) of \(session)")
    }

    mutating func unsubscribe(_ session: Int, _ filter: String) {
        let found = filter.withTopicBytes {
            trie.unsubscribe(UInt32(session), &lists[session], filter: $0)
        }
        let wasThere = model[session].removeValue(forKey: filter) != nil
        #expect(found == wasThere, "\(filter)")
    }

    mutating func removeAll(_ session: Int) {
        trie.removeAll(&lists[session])
        model[session] = [:]
    }

    /// Matches in the trie, by session; a duplicate session is an error.
    mutating func match(
        _ topic: String, most: Int = .max, _ comment: Comment = ""
    ) -> [Int: QoS] {
        var found: [Int: QoS] = [:]
        topic.withTopicBytes { bytes in
            guard let matches = trie.match(bytes, most: most) else { return }
            for match in matches {
                let former = found.updateValue(match.qos, forKey: Int(match.session))
                #expect(former == nil, "session \(match.session) twice for \(topic). \(comment)")
            }
        }
        return found
    }

    func expected(_ topic: String) -> [Int: QoS] {
        var found: [Int: QoS] = [:]
        for (session, filters) in model.enumerated() {
            let granted = filters.filter { matches($0.key, topic) }.values.max()
            if let granted { found[session] = granted }
        }
        return found
    }

    func filters(_ session: Int) -> [String: QoS] {
        var result: [String: QoS] = [:]
        for (filter, qos) in trie.subscriptions(of: lists[session]) {
            let former = result.updateValue(qos, forKey: String(decoding: filter, as: UTF8.self))
            #expect(former == nil)
        }
        return result
    }
}

@Suite("Subscription trie")
struct SubscriptionTrieTests {
    @Test("agrees with a matcher of ten lines", arguments: UInt64(1)...32)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 12, pool: owner.pool)
        let topics = (0..<40).map { _ in random.topic() }
        for step in 0..<600 {
            let session = random.number(in: 0...11)
            switch random.number(in: 0...12) {
            case 0...4:
                subscribers.subscribe(session, random.filter(), random.pick(QoS.allCases))
            case 5:
                // One of its own filters, which is replaced [MQTT-3.8.4-3].
                guard let filter = subscribers.model[session].keys.sorted().first else { continue }
                subscribers.subscribe(session, filter, random.pick(QoS.allCases))
            case 6: subscribers.unsubscribe(session, random.filter())
            case 7...8:
                let own = subscribers.model[session].keys.sorted()
                if !own.isEmpty { subscribers.unsubscribe(session, random.pick(own)) }
            case 9 where random.once(in: 10): subscribers.removeAll(session)
            default:
                // Repeated topics: most results come from the cache.
                let topic = random.pick(topics)
                let comment: Comment = "\(topic), seed \(seed), step \(step)"
                let expected = subscribers.expected(topic)
                #expect(subscribers.match(topic, comment) == expected, comment)
                #expect(subscribers.match(topic, comment) == expected, comment)
            }
            #expect(subscribers.trie.count == subscribers.model.reduce(0) { $0 + $1.count })
        }
        for session in 0..<12 {
            #expect(subscribers.filters(session) == subscribers.model[session], "seed \(seed)")
            #expect(Int(subscribers.lists[session].count) == subscribers.model[session].count)
        }
        for _ in 0..<200 {
            let topic = random.topic(levels: 6)
            #expect(
                subscribers.match(topic) == subscribers.expected(topic), "\(topic), seed \(seed)")
        }
    }

    @Test("gives back every node and every buffer", arguments: UInt64(1)...8)
    func noResidue(seed: UInt64) {
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 8, pool: owner.pool)
        var before: [Int] = []
        for round in 0..<4 {
            var random = SplitMix64(seed: seed)
            for _ in 0..<400 {
                subscribers.subscribe(random.number(in: 0...7), random.filter(), .atLeastOnce)
            }
            #expect(subscribers.trie.nodeCount > 1)
            for session in 0..<8 {
                if session % 2 == 0 {
                    subscribers.removeAll(session)
                } else {
                    var own = subscribers.model[session].keys.sorted()
                    own.shuffle(using: &random)
                    for filter in own { subscribers.unsubscribe(session, filter) }
                }
                #expect(subscribers.lists[session].count == 0)
            }
            #expect(subscribers.trie.count == 0)
            #expect(subscribers.trie.nodeCount == 1, "the root alone stays")
            if round > 1 { #expect(owner.freeCounts == before) }
            before = owner.freeCounts
        }
    }

    @Test("the highest QoS wins, whatever the order of subscribing [MQTT-3.3.5-1]")
    func overlapping() {
        let filters = [("#", QoS.atMostOnce), ("a/+", .exactlyOnce), ("a/b", .atLeastOnce)]
        for first in filters.indices {
            for second in filters.indices where second != first {
                let owner = TestPool()
                var subscribers = Subscribers(sessions: 2, pool: owner.pool)
                let third = 3 - first - second
                for index in [first, second, third] {
                    subscribers.subscribe(1, filters[index].0, filters[index].1)
                }
                subscribers.subscribe(0, "a/#", .atLeastOnce)
                #expect(subscribers.match("a/b") == [0: .atLeastOnce, 1: .exactlyOnce])
                subscribers.unsubscribe(1, "a/+")
                #expect(subscribers.match("a/b") == [0: .atLeastOnce, 1: .atLeastOnce])
            }
        }
    }

    @Test("a cached answer ends with any change that concerns it")
    func cache() {
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 3, pool: owner.pool)
        #expect(subscribers.match("a") == [:])
        subscribers.subscribe(0, "a", .atMostOnce)
        #expect(subscribers.match("a") == [0: .atMostOnce])
        subscribers.subscribe(0, "a", .exactlyOnce)
        #expect(subscribers.match("a") == [0: .exactlyOnce])
        subscribers.subscribe(1, "+", .atMostOnce)
        #expect(subscribers.match("a") == [0: .exactlyOnce, 1: .atMostOnce])
        subscribers.removeAll(0)
        #expect(subscribers.match("a") == [1: .atMostOnce])
        subscribers.unsubscribe(1, "+")
        #expect(subscribers.match("a") == [:])
    }

    @Test("results and topics beyond the cache's bounds are right too")
    func beyondCache() {
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 1_500, pool: owner.pool)
        let long = String(repeating: "x", count: 600)
        for session in 0..<1_500 {
            subscribers.subscribe(session, "many", .atLeastOnce)
            if session % 100 == 0 { subscribers.subscribe(session, long, .exactlyOnce) }
        }
        for _ in 0..<2 {
            #expect(subscribers.match("many").count == 1_500)
            #expect(subscribers.match(long).count == 15)
        }
        subscribers.removeAll(700)
        #expect(subscribers.match("many").count == 1_499)
        #expect(subscribers.match(long).count == 14)
    }

    @Test("many topics in few cache slots do not disturb each other")
    func cacheCollisions() {
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 2, pool: owner.pool)
        subscribers.subscribe(0, "+/number/even", .atMostOnce)
        subscribers.subscribe(1, "+/number/odd", .exactlyOnce)
        var before: [Int] = []
        for round in 0..<4 {
            for number in 0..<6_000 {
                let isEven = number % 2 == 0
                let found = subscribers.match("\(number)/number/\(isEven ? "even" : "odd")")
                #expect(found == (isEven ? [0: .atMostOnce] : [1: .exactlyOnce]))
            }
            // A topic that takes another's cache slot frees the memory of the other.
            if round > 1 { #expect(owner.freeCounts == before) }
            before = owner.freeCounts
        }
    }

    @Test("a topic of 65,535 levels is matched without recursion")
    func deep() {
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 3, pool: owner.pool)
        let deepest = String(repeating: "/", count: 65_535)
        subscribers.subscribe(0, "#", .atMostOnce)
        subscribers.subscribe(1, deepest, .atLeastOnce)
        subscribers.subscribe(2, String(repeating: "+/", count: 32_767) + "#", .exactlyOnce)
        #expect(subscribers.match(deepest).count == 3)
        subscribers.removeAll(1)
        subscribers.removeAll(2)
        #expect(subscribers.match(deepest) == [0: .atMostOnce])
        #expect(subscribers.trie.nodeCount == 2)
    }

    @Test("a change outdates the cached matches that it may affect, and leaves the others")
    func cachedMatches() {
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 3, pool: owner.pool)
        subscribers.subscribe(0, "orders/+/status", .atLeastOnce)
        let topics = ["orders/1/status", "users/7/inbox", "a/b/c/d/e", "/x"]
        func isCached(_ topic: String, _ subscribers: inout Subscribers) -> Bool {
            _ = subscribers.trie.takeWork()
            #expect(subscribers.match(topic) == subscribers.expected(topic), "\(topic)")
            return subscribers.trie.takeWork() == 0
        }
        for topic in topics { _ = isCached(topic, &subscribers) }
        #expect(topics.filter { isCached($0, &subscribers) } == topics)

        let changes: [(filter: String, outdated: Set<String>)] = [
            ("users/8/#", []), ("users/+/inbox", ["users/7/inbox"]), ("orders/2/status", []),
            ("orders/1/status", ["orders/1/status"]), ("a/b/c/d/+", ["a/b/c/d/e"]),
            ("users/7/inbox/#", ["users/7/inbox"]), ("#", Set(topics)),
        ]
        for (filter, outdated) in changes {
            subscribers.subscribe(1, filter, .atMostOnce)
            #expect(Set(topics.filter { !isCached($0, &subscribers) }) == outdated, "\(filter)")
            subscribers.unsubscribe(1, filter)
            #expect(Set(topics.filter { !isCached($0, &subscribers) }) == outdated, "\(filter)")
        }
        subscribers.subscribe(2, "users/7/inbox", .exactlyOnce)
        subscribers.subscribe(2, "orders/+/+", .exactlyOnce)
        _ = topics.map { isCached($0, &subscribers) }
        subscribers.removeAll(2)
        #expect(topics.filter { isCached($0, &subscribers) } == ["a/b/c/d/e", "/x"])
    }

    @Test("cached matches agree with a model through any changes", arguments: UInt64(1)...8)
    func cachedModel(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 4, pool: owner.pool)
        let names = ["a", "b", "", "$x"]
        for _ in 0..<3_000 {
            let session = random.number(in: 0...3)
            var levels = (0...random.number(in: 0...5)).map { _ in random.pick(names) }
            let topic = levels.joined(separator: "/")
            if !topic.isEmpty {
                #expect(subscribers.match(topic) == subscribers.expected(topic), "seed \(seed)")
            }
            for place in levels.indices where random.once(in: 3) { levels[place] = "+" }
            if random.once(in: 3) { levels.append("#") }
            let filter = levels.joined(separator: "/")
            switch random.number(in: 0...20) {
            case _ where filter.isEmpty: continue
            case 0: subscribers.removeAll(session)
            case 1...9: subscribers.unsubscribe(session, filter)
            case 10...14: subscribers.subscribe(session, filter, random.pick(QoS.allCases))
            default: continue
            }
        }
    }

    @Test("sessions with few filters, with many, and again with few", arguments: UInt64(1)...8)
    func manyAndFew(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let owner = TestPool()
        let most = Int(SessionIndex.mostWalked)
        var subscribers = Subscribers(sessions: 4, pool: owner.pool)
        func expectedInIndex() -> Int {
            subscribers.model.map { $0.count > most ? $0.count : 0 }.reduce(0, +)
        }
        // Numbers of filters around the threshold of the index, from both sides.
        for share in [90, 10, 60, 40, 90, 50] {
            for _ in 0..<400 {
                let session = random.number(in: 0...3)
                let filter = "f/\(random.number(in: 0...most + 40))"
                if random.number(in: 0...99) < share {
                    subscribers.subscribe(session, filter, random.pick(QoS.allCases))
                } else {
                    subscribers.unsubscribe(session, filter)
                }
            }
            #expect(subscribers.trie.sessionIndex.count == expectedInIndex(), "seed \(seed)")
            for session in 0..<4 {
                #expect(subscribers.filters(session) == subscribers.model[session], "seed \(seed)")
            }
            if random.once(in: 2) { subscribers.removeAll(random.number(in: 0...3)) }
        }
        for session in 0..<4 { subscribers.removeAll(session) }
        #expect(subscribers.trie.sessionIndex.count == 0 && subscribers.trie.nodeCount == 1)
    }

    @Test("many subscribers of a filter cost no linear search either")
    func popular() {
        func cost(own: Int) -> Int {
            let owner = TestPool()
            var trie = SubscriptionTrie(hash: KeyedHash(seed: 5), pool: owner.pool)
            var lists = [SubscriptionTrie.List](repeating: SubscriptionTrie.List(), count: 10_001)
            func subscribe(_ session: Int, _ filter: String) {
                _ = filter.withTopicBytes {
                    trie.subscribe(
                        UInt32(session), &lists[session], filter: $0,
                        grant: SubscriptionGrant(.atMostOnce))
                }
            }
            for session in 1...10_000 { subscribe(session, "popular") }
            for number in 0..<own { subscribe(0, "own/\(number)") }
            var found = false
            let start = threadNanoseconds()
            "popular".withTopicBytes { filter in
                for _ in 0..<2_000 where trie.unsubscribe(0, &lists[0], filter: filter) {
                    found = true
                }
            }
            let cost = threadNanoseconds() - start
            #expect(!found)
            return cost
        }
        let few = cost(own: 50)
        let many = cost(own: 10_000)
        // A linear search would take 200 times as long.
        #expect(many < few * 20, "\(few) ns with 50 filters and \(many) ns with 10,000")
    }

    @Test("100,000 subscriptions cost a session ten times as much as ten thousand")
    func linear() {
        func cost(_ count: Int) -> Int {
            let owner = TestPool()
            var trie = SubscriptionTrie(hash: KeyedHash(seed: 5), pool: owner.pool)
            var list = SubscriptionTrie.List()
            let filters = (0..<count).map { Array("orders/\($0)/status".utf8) }
            let start = threadNanoseconds()
            for filter in filters {
                filter.withUnsafeBytes {
                    _ = trie.subscribe(0, &list, filter: $0, grant: SubscriptionGrant(.atLeastOnce))
                }
            }
            #expect(trie.count == count && Int(list.count) == count)
            for filter in filters.reversed() {
                filter.withUnsafeBytes { _ = trie.unsubscribe(0, &list, filter: $0) }
            }
            #expect(trie.count == 0)
            return threadNanoseconds() - start
        }
        let small = cost(10_000)
        let large = cost(100_000)
        // Linear cost is ten times as much; quadratic would be a hundred times.
        #expect(large < small * 40, "\(small) ns for 10,000 and \(large) ns for 100,000")
    }

    @Test("a session keeps its message when the match counter wraps around")
    func stampWraps() {
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 4, pool: owner.pool)
        // Session 3 alone has been matched twice; the others have no stamp.
        subscribers.subscribe(3, "x/#", .atMostOnce)
        subscribers.subscribe(3, "x", .exactlyOnce)
        #expect(subscribers.match("x") == [3: .exactlyOnce])
        for session in 0..<3 { subscribers.subscribe(session, "a/b", .atMostOnce) }
        subscribers.subscribe(2, "a/+", .exactlyOnce)
        subscribers.subscribe(1, "+/b", .atLeastOnce)
        subscribers.trie.stamp = .max
        for _ in 0..<3 {
            // A change in between, so that no result comes from the cache.
            subscribers.subscribe(0, "c", .atMostOnce)
            #expect(
                subscribers.match("a/b") == [0: .atMostOnce, 1: .atLeastOnce, 2: .exactlyOnce])
        }
    }
}

/// Time of this thread alone, since tests run in parallel.
private func threadNanoseconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

extension SubscriptionTrie {
    fileprivate var nodeCount: Int { tree.count }
}
