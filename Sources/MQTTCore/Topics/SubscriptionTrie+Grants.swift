import MQTTCodec
import Structures

/// What the subscriptions of one session that match a topic say together.
public struct MatchedGrants: BitwiseCopyable {
    /// Some matching subscription has no No Local.
    public private(set) var takesLocal = false
    public private(set) var retainAsPublished = false

    init() {}

    /// Adds a matching subscription; its identifier goes to the end of `identifiers`.
    mutating func add(
        _ grant: SubscriptionGrant,
        identifiers: inout GrowableBuffer<SubscriptionIdentifier>
    ) {
        takesLocal = takesLocal || !grant.noLocal
        retainAsPublished = retainAsPublished || grant.retainAsPublished
        if let identifier = grant.identifier { identifiers.append(identifier) }
    }
}

extension SubscriptionTrie {
    /// Nodes that are visited for the grants of one session. A topic that matches more filters of all
    /// sessions together than this visits may lack identifiers.
    private static var mostVisited: Int { 4_096 }

    /// What the session's subscriptions that match a topic were granted, with their identifiers at the
    /// end of `identifiers`. Visits the nodes of matching filters of all sessions, not the session's
    /// filters, so that it costs the same for one with very many.
    public mutating func grants(
        of session: UInt32, _ list: List, _ topic: UnsafeRawBufferPointer,
        identifiers: inout GrowableBuffer<SubscriptionIdentifier>
    ) -> MatchedGrants {
        var found = MatchedGrants()
        guard list.count > 0 else { return found }
        let before = work
        walk(topic) { trie, node in
            if let place = trie.find(session, list, node) {
                found.add(trie.subscriptions[place].grant, identifiers: &identifiers)
            }
            return trie.work - before < Self.mostVisited
        }
        return found
    }

    /// Calls `body` for each node whose filter matches a topic, until it returns false.
    private mutating func walk(
        _ topic: UnsafeRawBufferPointer, _ body: (inout SubscriptionTrie, UInt32) -> Bool
    ) {
        split(topic)
        while let (index, depth) = nextPending() {
            let node = tree[index]
            work += 1
            // Wildcards at the first level do not match topics that begin with $ [MQTT-4.7.2-1].
            let allowsWildcard = depth > 0 || topic.isEmpty || topic[0] != 0x24
            if node.multiLevelChild != noIndex, allowsWildcard {
                guard body(&self, node.multiLevelChild) else { return }
            }
            guard let level = level(at: depth, of: topic) else {
                guard body(&self, index) else { return }
                continue
            }
            if node.singleLevelChild != noIndex, allowsWildcard {
                addPending(node.singleLevelChild, depth + 1)
            }
            if let child = tree.child(of: index, level) { addPending(child, depth + 1) }
        }
    }
}
