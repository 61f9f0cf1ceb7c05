import HermesTesting
import MQTTCodec
import Testing

@testable import MQTTCore
@testable import Structures

/// Retained messages and a dictionary from topic to payload.
private struct Retained: ~Copyable {
    let owner: TestPool
    var messages: RetainedMessages
    var model: [String: [UInt8]] = [:]

    init(_ owner: TestPool = TestPool()) {
        self.owner = owner
        messages = RetainedMessages(hash: KeyedHash(seed: 21), pool: owner.pool)
    }

    mutating func update(_ topic: String, _ payload: [UInt8]) {
        let message = owner.message(topic, payload: payload, retain: true)
        messages.update(message)
        message.release(in: owner.pool)
        model[topic] = payload.isEmpty ? nil : payload
    }

    mutating func remove(_ topic: String) {
        let found = topic.withTopicBytes { messages.remove($0) }
        #expect(found == (model.removeValue(forKey: topic) != nil), "\(topic)")
    }

    mutating func removeAll() { for topic in model.keys.sorted() { remove(topic) } }

    /// All messages that match a filter, by topic.
    mutating func find(_ filter: String) -> [String: [UInt8]] {
        var cursor = filter.withTopicBytes { messages.cursor($0) }
        var found: [String: [UInt8]] = [:]
        var steps = 1_000_000
        while case .message(let message) = messages.next(&cursor, steps: &steps) {
            let former = found.updateValue([UInt8](message.payload), forKey: message.topicText)
            #expect(former == nil, "\(message.topicText) twice for \(filter)")
        }
        messages.end(cursor)
        return found
    }

    func expected(_ filter: String) -> [String: [UInt8]] {
        model.filter { matches(filter, $0.key) }
    }
}

extension Message {
    fileprivate var topicText: String { String(decoding: topic, as: UTF8.self) }
}

@Suite("Retained messages")
struct RetainedMessagesTests {
    @Test("agree with a matcher of ten lines", arguments: UInt64(1)...16)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var retained = Retained()
        for step in 0..<400 {
            switch random.number(in: 0...5) {
            case 0...2: retained.update(random.topic(), [UInt8](repeating: 1, count: step % 5))
            case 3: retained.remove(random.topic())
            default:
                let filter = random.filter()
                let expected = retained.expected(filter)
                #expect(retained.find(filter) == expected, "\(filter), seed \(seed), step \(step)")
            }
            #expect(retained.messages.count == retained.model.count)
        }
        retained.removeAll()
        #expect(retained.messages.count == 0 && retained.messages.byteCount == 0)
        #expect(retained.messages.nodeCount == 1, "the root alone stays, seed \(seed)")
    }

    @Test(
        "a walk in slices misses nothing that stays and repeats nothing", arguments: UInt64(1)...48)
    func slices(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let owner = TestPool()
        var before: [Int] = []
        for round in 0..<4 {
            // The same steps in each round, so that the pool must end in the same state.
            random = SplitMix64(seed: seed)
            var retained = Retained(owner)
            for _ in 0..<40 { retained.update(random.topic(), random.bytes(3)) }
            walkAndChange(&retained, &random, seed)
            retained.removeAll()
            #expect(retained.messages.count == 0 && retained.messages.byteCount == 0)
            #expect(retained.messages.nodeCount == 1, "the root alone stays, seed \(seed)")
            if round > 1 { #expect(owner.freeCounts == before, "a leak, seed \(seed)") }
            before = owner.freeCounts
        }
    }

    private struct Walk {
        var cursor: RetainedCursor
        var filter: String
        /// Topics that match and have had a message since the walk began.
        var steady: Set<String>
        var seen: Set<String> = []
    }

    private func walkAndChange(
        _ retained: inout Retained, _ random: inout SplitMix64, _ seed: UInt64
    ) {
        var walks: [Walk] = []
        for step in 0..<400 {
            switch random.number(in: 0...9) {
            case 0 where walks.count < 4:
                let filter = random.filter()
                let cursor = filter.withTopicBytes { retained.messages.cursor($0) }
                walks.append(
                    Walk(
                        cursor: cursor, filter: filter,
                        steady: Set(retained.expected(filter).keys)))
            case 1: retained.update(random.topic(), random.bytes(random.number(in: 1...30)))
            case 2, 3:
                let topic =
                    random.once(in: 2)
                    ? random.topic() : retained.model.keys.sorted().randomElement(using: &random)
                guard let topic else { continue }
                random.once(in: 2) ? retained.remove(topic) : retained.update(topic, [])
                for index in walks.indices { walks[index].steady.remove(topic) }
            default:
                guard !walks.isEmpty else { continue }
                let index = random.number(in: 0...walks.count - 1)
                let comment: Comment = "\(walks[index].filter), seed \(seed), step \(step)"
                if advance(&walks[index], &retained, random.number(in: 1...3), comment) {
                    retained.messages.end(walks.remove(at: index).cursor)
                }
            }
        }
        // Walks that stand still keep no topic in the tree.
        var nodes: Set<String> = [""]
        for topic in retained.model.keys {
            let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
            for depth in 1...levels.count {
                nodes.insert("/" + levels[..<depth].joined(separator: "/"))
            }
        }
        #expect(retained.messages.nodeCount == nodes.count, "seed \(seed)")
        // A client may disconnect during its walk.
        for walk in walks { retained.messages.end(walk.cursor) }
    }

    /// One slice; true when the walk has ended.
    private func advance(
        _ walk: inout Walk, _ retained: inout Retained, _ slice: Int, _ comment: Comment
    ) -> Bool {
        var steps = slice
        while true {
            let former = steps
            switch retained.messages.next(&walk.cursor, steps: &steps) {
            case .message(let message):
                #expect(steps >= 0 && steps < former, comment)
                let topic = message.topicText
                #expect(matches(walk.filter, topic), comment)
                #expect(retained.model[topic] == [UInt8](message.payload), comment)
                #expect(walk.seen.insert(topic).inserted, "\(topic) twice. \(comment)")
            case .paused:
                #expect(steps == 0, comment)
                return false
            case .finished:
                #expect(walk.steady.isSubset(of: walk.seen), comment)
                return true
            }
        }
    }

    @Test("a topic cleared, set and cleared again during a walk has no message after it")
    func clearedTwice() {
        var retained = Retained()
        retained.update("a/b", [1])
        let cursor = "#".withTopicBytes { retained.messages.cursor($0) }
        retained.remove("a/b")
        retained.update("a/b", [2])
        retained.remove("a/b")
        retained.messages.end(cursor)
        #expect(retained.messages.nodeCount == 1)
        retained.update("a/b", [3])
        #expect(retained.find("#") == ["a/b": [3]])
    }

    @Test("a topic and the one above it can both be cleared during a walk")
    func clearedWithParent() {
        for topics in [["a/b", "a"], ["a", "a/b"], ["a/b", "a/c", "a", "a/b/d"]] {
            var retained = Retained()
            for topic in topics { retained.update(topic, [1]) }
            var cursor = "#".withTopicBytes { retained.messages.cursor($0) }
            for topic in topics { retained.remove(topic) }
            #expect(retained.messages.nodeCount == 1)
            var steps = 1_000
            guard case .finished = retained.messages.next(&cursor, steps: &steps) else {
                Issue.record("a message after all were removed")
                return
            }
            retained.messages.end(cursor)
        }
    }

    @Test("a walk whose node is removed goes on behind it", arguments: ["#", "+/b/#", "+/+/+"])
    func overtaken(filter: String) {
        for removed in 1...3 {
            var retained = Retained()
            // The latest topic comes first.
            for first in ["d", "c", "b", "a"] {
                for last in ["2", "1"] { retained.update("\(first)/b/\(last)", [1]) }
            }
            var cursor = filter.withTopicBytes { retained.messages.cursor($0) }
            var seen: [String] = []
            var steps = 1_000
            while seen.last != "b/b/1" {
                guard case .message(let message) = retained.messages.next(&cursor, steps: &steps)
                else { break }
                seen.append(message.topicText)
            }
            // The walk stands on `b/b/2`, then on what follows.
            let doomed = ["b/b/2", "b/b/1", "c/b/1"].prefix(removed)
            for topic in doomed { retained.remove(topic) }
            while case .message(let message) = retained.messages.next(&cursor, steps: &steps) {
                seen.append(message.topicText)
            }
            retained.messages.end(cursor)
            let all = ["a/b/1", "a/b/2", "b/b/1", "b/b/2", "c/b/1", "c/b/2", "d/b/1", "d/b/2"]
            #expect(seen == all.filter { $0 == "b/b/1" || !doomed.contains($0) })
        }
    }

    @Test("a topic set again during a walk outlives it")
    func setAgain() {
        var retained = Retained()
        retained.update("a/b", [1])
        let cursor = "#".withTopicBytes { retained.messages.cursor($0) }
        retained.remove("a/b")
        retained.update("a/b", [2])
        retained.messages.end(cursor)
        #expect(retained.find("a/b") == ["a/b": [2]])
    }

    @Test("an empty payload removes, and is never kept [MQTT-3.3.1-10] [MQTT-3.3.1-11]")
    func emptyPayload() {
        var retained = Retained()
        retained.update("a", [])
        #expect(retained.messages.count == 0)
        retained.update("a", [1])
        retained.update("a", [])
        #expect(retained.messages.count == 0 && retained.messages.byteCount == 0)
        #expect(retained.find("#") == [:])
    }

    @Test("a new message takes the former one's place [MQTT-3.3.1-5]")
    func replaced() {
        var retained = Retained()
        retained.update("a", [UInt8](repeating: 1, count: 100))
        let large = retained.messages.byteCount
        retained.update("a", [2])
        #expect(retained.messages.count == 1)
        #expect(retained.messages.byteCount == large - 99)
        #expect(retained.find("a") == ["a": [2]])
    }

    @Test("the same message kept twice is counted once")
    func sameMessage() {
        let owner = TestPool()
        var retained = Retained(owner)
        let message = owner.message("a", payload: [1, 2])
        retained.messages.update(message)
        retained.messages.update(message)
        #expect(retained.messages.count == 1 && retained.messages.byteCount == message.count)
        message.release(in: owner.pool)
        #expect(retained.find("a") == ["a": [1, 2]])
    }

    @Test("# is walked in steps that the number of topics, not their depth, decides")
    func steps() {
        var retained = Retained()
        for number in 0..<1_000 { retained.update("a/\(number)/b", [1]) }
        var cursor = "a/+/b".withTopicBytes { retained.messages.cursor($0) }
        var slices = 0
        var found = 0
        walk: while true {
            var steps = 64
            while true {
                switch retained.messages.next(&cursor, steps: &steps) {
                case .message: found += 1
                case .paused:
                    slices += 1
                    continue walk
                case .finished: break walk
                }
            }
        }
        retained.messages.end(cursor)
        #expect(found == 1_000)
        #expect((1_000 / 64...4_000 / 64).contains(slices), "\(slices) slices")
    }
}

extension RetainedMessages {
    fileprivate var nodeCount: Int { tree.count }
}
