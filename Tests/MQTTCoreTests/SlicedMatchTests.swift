import HermesTesting
import MQTTCodec
import Testing

@testable import MQTTCore
@testable import Structures

@Suite("Match in slices")
struct SlicedMatchTests {
    @Test(
        "finds what a match in one piece finds at its end, whatever changes between slices",
        arguments: UInt64(1)...64)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 8, pool: owner.pool)
        var slices = 0
        for round in 0..<150 {
            let topic = random.topic()
            var isComplete = false
            // Also behind the last slice: a publisher may wait with a match that is complete.
            var late = random.number(in: 0...3)
            while !isComplete || late > 0 {
                if isComplete { late -= 1 }
                for _ in 0..<random.number(in: 0...3) { change(&subscribers, &random) }
                var steps = random.number(in: 1...6)
                isComplete = topic.withTopicBytes {
                    subscribers.trie.matchSlice($0, steps: &steps)
                }
                slices += 1
            }
            let comment: Comment = "\(topic), seed \(seed), round \(round)"
            #expect(
                subscribers.match(topic, most: 0, comment) == subscribers.expected(topic), comment)
            subscribers.trie.endSlices()
            #expect(subscribers.match(topic, comment) == subscribers.expected(topic), comment)
        }
        #expect(slices > 300)
    }

    @Test(
        "asks about each session that is found at its end, whatever changes between slices",
        arguments: UInt64(1)...32)
    func rights(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 8, pool: owner.pool)
        var permitted: Set<Int> = [0, 1, 2, 3]
        for round in 0..<150 {
            let topic = random.topic()
            var late = random.number(in: 0...3)
            var isComplete = false
            while !isComplete || late > 0 {
                if isComplete { late -= 1 }
                for _ in 0..<random.number(in: 0...2) { change(&subscribers, &random) }
                if random.once(in: 3) {
                    let session = random.number(in: 0...7)
                    permitted.formSymmetricDifference([session])
                    subscribers.trie.invalidate(UInt32(session))
                } else if random.once(in: 20) {
                    permitted = [random.number(in: 0...7)]
                    subscribers.trie.invalidate()
                }
                var steps = random.number(in: 1...12)
                isComplete = topic.withTopicBytes {
                    subscribers.trie.matchSlice($0, steps: &steps)
                        && subscribers.trie.askSlice(steps: &steps) { session, steps in
                            steps -= 2
                            return permitted.contains(Int(session))
                        }
                }
            }
            let comment: Comment = "\(topic), seed \(seed), round \(round)"
            let expected = subscribers.expected(topic)
            topic.withTopicBytes { bytes in
                guard case .cached(let found)? = subscribers.trie.search(bytes, most: 0) else {
                    Issue.record("not found: \(comment)")
                    return
                }
                #expect(
                    Set(found.matches.map { Int($0.session) })
                        == permitted.intersection(expected.keys), comment)
                #expect(
                    Int(found.withheld) == Set(expected.keys).subtracting(permitted).count, comment)
            }
            subscribers.trie.endSlices()
        }
    }

    private func change(_ subscribers: inout Subscribers, _ random: inout SplitMix64) {
        let session = random.number(in: 0...7)
        let own = subscribers.model[session].keys.sorted()
        switch random.number(in: 0...9) {
        case 0...4: subscribers.subscribe(session, random.filter(), random.pick(QoS.allCases))
        case 5 where !own.isEmpty:
            subscribers.subscribe(session, random.pick(own), random.pick(QoS.allCases))
        case 6...8 where !own.isEmpty: subscribers.unsubscribe(session, random.pick(own))
        case 9 where random.once(in: 8): subscribers.removeAll(session)
        default: break
        }
    }

    @Test("a match of more steps than allowed is not made at once, and a slice does no more either")
    func bounds() {
        let owner = TestPool()
        var subscribers = Subscribers(sessions: 1, pool: owner.pool)
        var filters = ["#"]
        for _ in 0..<10 { filters = filters.flatMap { ["a/\($0)", "+/\($0)"] } }
        for filter in filters { subscribers.subscribe(0, filter, .atMostOnce) }
        let topic = [String](repeating: "a", count: 10).joined(separator: "/")
        topic.withTopicBytes { bytes in
            let atOnce = subscribers.trie.match(bytes, most: 1_000)
            #expect(atOnce == nil)
            _ = subscribers.trie.takeWork()
            var slices = 0
            var steps = 100
            while !subscribers.trie.matchSlice(bytes, steps: &steps) {
                #expect(subscribers.trie.takeWork() <= 110)
                slices += 1
                steps = 100
            }
            // 2,047 nodes and 1,024 subscriptions.
            #expect((28...40).contains(slices))
            let found = subscribers.trie.match(bytes, most: 0)
            #expect(found?.count == 1)
        }
    }
}
