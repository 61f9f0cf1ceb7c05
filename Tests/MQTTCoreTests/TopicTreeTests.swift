import HermesTesting
import Testing

@testable import MQTTCore
@testable import Structures

@Suite("Topic tree")
struct TopicTreeTests {
    @Test("splits at every separator; empty levels count (section 4.7.1.1)")
    func levels() {
        func levels(_ topic: String) -> [String] {
            topic.withTopicBytes { bytes in
                var levels = TopicLevels(bytes)
                var result: [String] = []
                while let level = levels.next() {
                    result.append(String(decoding: level, as: UTF8.self))
                }
                #expect(result.count == TopicLevels.count(bytes))
                return result
            }
        }
        #expect(levels("a") == ["a"])
        #expect(levels("a/b") == ["a", "b"])
        #expect(levels("/") == ["", ""])
        #expect(levels("/a//b/") == ["", "a", "", "b", ""])
        #expect(levels("") == [""])
    }

    @Test("finds exactly the inserted topics", arguments: UInt64(1)...16)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let owner = TestPool()
        var tree = TopicTree(hash: KeyedHash(seed: seed), pool: owner.pool)
        var values: [String: UInt32] = [:]
        for step in UInt32(0)..<800 {
            let topic = random.topic()
            if random.once(in: 2) {
                let node = topic.withTopicBytes { tree.insert($0) }
                #expect(String(decoding: tree.path(of: node), as: UTF8.self) == topic)
                tree.setValue(step, at: node)
                values[topic] = step
            } else if values.removeValue(forKey: topic) != nil {
                let node = topic.withTopicBytes { tree.find($0) }
                guard let node else {
                    Issue.record("\(topic) is gone, seed \(seed)")
                    continue
                }
                tree.setValue(noIndex, at: node)
                tree.prune(node)
            }
            let found = topic.withTopicBytes { tree.find($0) }.map { tree[$0].value }
            #expect(found == values[topic] || (values[topic] == nil && found == noIndex))
        }
        #expect(tree.count == expectedNodes(values.keys), "replay with seed \(seed)")
        for topic in values.keys.sorted() {
            guard let node = topic.withTopicBytes({ tree.find($0) }) else {
                Issue.record("\(topic) is gone, seed \(seed)")
                continue
            }
            #expect(tree[node].value == values[topic])
            tree.setValue(noIndex, at: node)
            tree.prune(node)
        }
        #expect(tree.count == 1, "the root alone stays, seed \(seed)")
    }

    /// The root, and one node for every prefix of a topic.
    private func expectedNodes(_ topics: some Sequence<String>) -> Int {
        var prefixes: Set<[Substring]> = [[]]
        for topic in topics {
            let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
            for count in 1...levels.count { prefixes.insert(Array(levels[..<count])) }
        }
        return prefixes.count
    }

    @Test("a node that holds something, or has children, is not pruned")
    func prune() throws {
        let owner = TestPool()
        var tree = TopicTree(hash: KeyedHash(seed: 1), pool: owner.pool)
        let outer = "a".withTopicBytes { tree.insert($0) }
        let inner = "a/b/c".withTopicBytes { tree.insert($0) }
        tree.setValue(1, at: outer)
        tree.setValue(2, at: inner)
        tree.prune(outer)
        tree.prune(inner)
        #expect(tree.count == 4)
        tree.setValue(noIndex, at: outer)
        tree.prune(outer)
        #expect(tree.count == 4, "its children stay")
        tree.setValue(noIndex, at: inner)
        tree.prune(inner)
        #expect(tree.count == 1)
    }

    @Test("pruning a node twice is as pruning it once")
    func pruneTwice() {
        let owner = TestPool()
        var tree = TopicTree(hash: KeyedHash(seed: 1), pool: owner.pool)
        let inner = "a/b".withTopicBytes { tree.insert($0) }
        let outer = "a".withTopicBytes { tree.insert($0) }
        tree.prune(inner)
        #expect(tree.count == 1)
        tree.prune(inner)
        tree.prune(outer)
        #expect(tree.count == 1)
    }
}
