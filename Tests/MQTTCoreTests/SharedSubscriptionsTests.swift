import HermesTesting
import MQTTCodec
import Testing

@testable import MQTTCore
@testable import Structures

@Suite("Shared subscriptions")
struct SharedSubscriptionsTests {
    @Test(
        "which texts name a group and a filter",
        arguments: [
            ("$share/g/a", "a"), ("$share/g/#", "#"), ("$share/g//a", "/a"),
            ("$share/g/+/b", "+/b"),
            ("$share/g/$SYS/x", "$SYS/x"), ("$share/ü/a", "a"), ("$share/g/a/", "a/"),
        ] as [(String, String)])
    func wellFormed(text: String, filter: String) {
        text.withTopicBytes { text in
            #expect(SharedSubscriptions.isShared(text))
            #expect(SharedSubscriptions.filter(in: text).map { [UInt8]($0) } == Array(filter.utf8))
        }
    }

    @Test(
        "texts that look like it and are refused",
        arguments: [
            "$share", "$share/", "$share//a", "$share/g", "$share/g/", "$share/+/a", "$share/a#/a",
        ])
    func refused(text: String) {
        text.withTopicBytes { text in
            #expect(SharedSubscriptions.isShared(text))
            #expect(SharedSubscriptions.filter(in: text) == nil)
        }
    }

    @Test(
        "other topics that begin alike are ordinary",
        arguments: ["$shared/g/a", "$shar", "share/g/a", "a/$share/g"])
    func ordinary(text: String) {
        text.withTopicBytes { #expect(!SharedSubscriptions.isShared($0)) }
    }

    @Test("connected members take turns, in the order in which they came")
    func turns() {
        let bench = Bench(sessions: 3)
        for session in 0..<3 { bench.join(UInt32(session), "$share/g/a") }
        #expect(bench.winners("a", count: 7) == [0, 1, 2, 0, 1, 2, 0])
        bench.setOnline(1, false)
        #expect(bench.winners("a", count: 4) == [2, 0, 2, 0])
        bench.setOnline(1, true)
        #expect(Set(bench.winners("a", count: 3)) == [0, 1, 2])
    }

    @Test("offline members are asked only when none is connected")
    func absent() {
        let bench = Bench(sessions: 2)
        bench.join(0, "$share/g/a")
        bench.join(1, "$share/g/a")
        bench.setOnline(0, false)
        #expect(bench.winners("a", count: 3) == [1, 1, 1])
        bench.setOnline(1, false)
        #expect(bench.winners("a", count: 4) == [0, 1, 0, 1])
    }

    @Test("the same name with another filter is another group; each group gets the message")
    func groups() {
        let bench = Bench(sessions: 2)
        bench.join(0, "$share/g/a")
        bench.join(1, "$share/g/+")
        bench.join(1, "$share/h/a")
        #expect(bench.winners("a", count: 1).sorted() == [0, 1, 1])
        #expect(bench.winners("b", count: 1) == [1])
        #expect(bench.winners("$SYS", count: 1).isEmpty)
    }

    @Test("a session with few groups, with many, and again with few", arguments: UInt64(1)...8)
    func manyAndFew(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let most = Int(SessionIndex.mostWalked)
        let bench = Bench(sessions: 3)
        var members = [Set<String>](repeating: [], count: 3)
        for share in [90, 10, 60, 40, 90, 50] {
            for _ in 0..<400 {
                let session = random.number(in: 0...2)
                let text = "$share/g/\(random.number(in: 0...most + 40))"
                if random.number(in: 0...99) < share {
                    let isNew = members[session].insert(text).inserted
                    #expect(bench.join(UInt32(session), text) == (isNew ? .added : .replaced))
                } else {
                    let wasMember = members[session].remove(text) != nil
                    #expect(bench.leave(UInt32(session), text) == wasMember)
                }
            }
            let indexed = members.map { $0.count > most ? $0.count : 0 }.reduce(0, +)
            #expect(bench.indexed == indexed, "seed \(seed)")
            #expect(bench.count == members.reduce(0) { $0 + $1.count })
            if random.once(in: 2) {
                let session = random.number(in: 0...2)
                bench.leaveAll(UInt32(session))
                members[session] = []
            }
        }
        for session in 0..<3 { bench.leaveAll(UInt32(session)) }
        #expect(bench.indexed == 0 && bench.count == 0)
    }

    @Test("very many memberships change rings in slices, and nobody is chosen in the wrong one")
    func manyMemberships() {
        let bench = Bench(sessions: 2)
        for group in 0..<1_000 {
            for session in UInt32(0)...1 { bench.join(session, "$share/g\(group)/\(group)") }
        }
        for isOnline in [false, true] {
            bench.setOnline(1, isOnline)
            #expect(!bench.isSettled)
            // The last memberships of the list change rings last.
            for group in [0, 500, 999] {
                let winners = Set(bench.winners("\(group)", count: 1))
                #expect(winners.isSubset(of: isOnline ? [0, 1] : [0]))
            }
            if isOnline {
                bench.setOnline(0, false)
                for group in [0, 500, 999] {
                    #expect(bench.winners("\(group)", count: 2) == [1, 1])
                }
            }
            var slices = 0
            while !bench.isSettled {
                var steps = 100
                bench.shared.moveMembers(steps: &steps)
                slices += 1
            }
            #expect((9...20).contains(slices))
        }
        // What leaves in the middle of a move is forgotten.
        bench.setOnline(1, false)
        bench.leaveAll(1)
        #expect(bench.isSettled && bench.count == 1_000)
    }

    @Test("a random program agrees with a plain model, and gives all its memory back")
    func model() {
        let bench = Bench(sessions: 12)
        // The match cache keeps the result of the first round for the second.
        var freeAfterFirst: [Int] = []
        for round in 0..<2 {
            var random = SplitMix64(seed: 7)
            var members: [String: [UInt32: Bool]] = [:]
            var online = [Bool](repeating: true, count: 12)
            for _ in 0..<4_000 {
                let session = UInt32(random.number(in: 0...11))
                let text = "$share/\(random.pick(["g", "h"]))/\(random.filter(levels: 3))"
                switch random.number(in: 0...4) {
                case 0...1:
                    let wasMember = members[text]?[session] != nil
                    #expect(bench.join(session, text) == (wasMember ? .replaced : .added))
                    members[text, default: [:]][session] = true
                case 2:
                    let wasMember = members[text]?.removeValue(forKey: session) != nil
                    #expect(bench.leave(session, text) == wasMember)
                case 3:
                    online[Int(session)].toggle()
                    bench.setOnline(session, online[Int(session)])
                    // Sessions with many memberships are still being moved while messages come.
                    var steps = random.number(in: 0...40)
                    bench.shared.moveMembers(steps: &steps)
                default:
                    let topic = random.topic(levels: 3)
                    let wanting = members.filter { text, sessions in
                        let filter = text.split(
                            separator: "/", maxSplits: 2, omittingEmptySubsequences: false)[2]
                        return !sessions.isEmpty && matches(String(filter), topic)
                    }
                    let winners = bench.winners(topic, count: 1)
                    #expect(winners.count == wanting.count)
                    let allowed = wanting.values.flatMap { sessions in
                        let connected = sessions.keys.filter { online[Int($0)] }
                        return connected.isEmpty ? Array(sessions.keys) : connected
                    }
                    #expect(Set(winners).isSubset(of: Set(allowed)))
                }
                #expect(bench.count == members.values.reduce(0) { $0 + $1.count })
            }
            for session in 0..<12 { bench.leaveAll(UInt32(session)) }
            #expect(bench.count == 0)
            if round == 0 {
                freeAfterFirst = bench.pool.freeCounts
            } else {
                #expect(bench.pool.freeCounts == freeAfterFirst)
            }
            for session in 0..<12 { bench.setOnline(UInt32(session), true) }
        }
    }
}

/// Sessions with their lists of memberships.
private final class Bench {
    let pool = TestPool()
    var shared: SharedSubscriptions
    var lists: [SharedSubscriptions.List]
    var online: [Bool]

    init(sessions: Int) {
        shared = SharedSubscriptions(hash: KeyedHash(seed: 1), pool: pool.pool)
        lists = Array(repeating: SharedSubscriptions.List(), count: sessions)
        online = Array(repeating: true, count: sessions)
    }

    var count: Int { shared.count }
    var isSettled: Bool { shared.isSettled }
    var indexed: Int { shared.sessionIndex.count }

    @discardableResult
    func join(_ session: UInt32, _ text: String) -> SubscriptionTrie.Subscribed {
        text.withTopicBytes {
            shared.subscribe(
                session, &lists[Int(session)], text: $0, grant: SubscriptionGrant(.exactlyOnce),
                isOnline: online[Int(session)])
        }
    }

    func leave(_ session: UInt32, _ text: String) -> Bool {
        text.withTopicBytes { shared.unsubscribe(&lists[Int(session)], text: $0) != nil }
    }

    func leaveAll(_ session: UInt32) {
        while lists[Int(session)].count > 0 {
            var steps = 3
            shared.removeSome(&lists[Int(session)], steps: &steps)
        }
    }

    func setOnline(_ session: UInt32, _ isOnline: Bool) {
        online[Int(session)] = isOnline
        shared.setOnline(lists[Int(session)], isOnline)
    }

    /// The sessions that get so many messages, connected members first.
    func winners(_ topic: String, count: Int) -> [UInt32] {
        var winners: [UInt32] = []
        topic.withTopicBytes { topic in
            for _ in 0..<count {
                guard let groups = shared.match(topic, most: .max) else { continue }
                for match in groups {
                    if !shared.isSettled {
                        shared.settle(match.session, most: 12) { online[Int($0)] }
                    }
                    let first =
                        shared.first(match.session, isOnline: true)
                        ?? shared.first(match.session, isOnline: false)
                    guard let first else { continue }
                    winners.append(shared[first].session)
                    shared.passTurn(first)
                }
            }
        }
        return winners
    }
}
