import MQTTCodec
import Structures

/// What the subscriptions of one session that match a topic say together.
public struct MatchedGrants: BitwiseCopyable {
    /// Some matching subscription has no No Local.
    public private(set) var takesLocal = false
    public private(set) var retainAsPublished = false

    init() {}

    /// Notes that some subscription may take the client's own messages.
    mutating func takesAll() { takesLocal = true }

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
    /// Subscriptions of a session that are compared with a topic one by one; of a session with more, the
    /// nodes of all filters that match are visited.
    private static var mostCompared: UInt32 { 16 }
    /// Nodes that are visited for the grants of one session. Where more filters of all sessions match,
    /// what is not found counts as absent: identifiers are left out.
    private static var mostVisited: Int { 512 }
    /// Identifiers that one message carries.
    private static var mostIdentifiers: Int { 64 }

    /// What the session's subscriptions that match a topic were granted, with their identifiers at the
    /// end of `identifiers`. However many filters match or stand in the session, the work is bounded.
    public mutating func grants(
        of session: UInt32, _ list: List, _ topic: UnsafeRawBufferPointer,
        identifiers: inout GrowableBuffer<SubscriptionIdentifier>
    ) -> MatchedGrants {
        var found = MatchedGrants()
        guard list.count > 0 else { return found }
        split(topic)
        guard list.count > Self.mostCompared else {
            var index = list.members.first
            while index != noIndex {
                let subscription = subscriptions[index]
                if matches(subscription.node, topic) {
                    found.add(subscription.grant, identifiers: &identifiers)
                }
                index = subscription.inSession.next
            }
            return found
        }
        let before = work
        while let (index, depth) = nextPending() {
            guard work - before < Self.mostVisited, identifiers.count < Self.mostIdentifiers else {
                // The filter of the client's own that was not reached may take its messages.
                found.takesAll()
                return found
            }
            let node = tree[index]
            work += 1
            // Wildcards at the first level do not match topics that begin with $ [MQTT-4.7.2-1].
            let allowsWildcard = depth > 0 || topic.isEmpty || topic[0] != 0x24
            if node.multiLevelChild != noIndex, allowsWildcard {
                add(node.multiLevelChild, of: session, list, to: &found, &identifiers)
            }
            guard let level = level(at: depth, of: topic) else {
                add(index, of: session, list, to: &found, &identifiers)
                continue
            }
            if node.singleLevelChild != noIndex, allowsWildcard {
                addPending(node.singleLevelChild, depth + 1)
            }
            if let child = tree.child(of: index, level) { addPending(child, depth + 1) }
        }
        return found
    }

    private func add(
        _ node: UInt32, of session: UInt32, _ list: List, to found: inout MatchedGrants,
        _ identifiers: inout GrowableBuffer<SubscriptionIdentifier>
    ) {
        guard let place = find(session, list, node) else { return }
        found.add(subscriptions[place].grant, identifiers: &identifiers)
    }

    /// True if the filter of a node matches the topic that was split last.
    private mutating func matches(_ node: UInt32, _ topic: UnsafeRawBufferPointer) -> Bool {
        var index = node
        var depth = tree.depth(of: node)
        work += depth
        if tree[tree[node].parent].multiLevelChild == node {
            // `a/#` also matches `a` itself (section 4.7.1.2).
            guard depth - 1 <= levelCount else { return false }
            guard depth > 1 || topic.isEmpty || topic[0] != 0x24 else { return false }
            depth -= 1
            index = tree[index].parent
        } else if depth != levelCount {
            return false
        }
        while depth > 0 {
            let parent = tree[index].parent
            guard let level = level(at: UInt32(depth - 1), of: topic) else { return false }
            if tree[parent].singleLevelChild == index {
                // [MQTT-4.7.2-1]
                guard depth > 1 || topic.isEmpty || topic[0] != 0x24 else { return false }
            } else if !tree[index].level.equals(level) {
                return false
            }
            index = parent
            depth -= 1
        }
        return true
    }
}
