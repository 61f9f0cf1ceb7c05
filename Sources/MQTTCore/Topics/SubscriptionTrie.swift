import MQTTCodec
import Structures

/// Which sessions want which topics.
///
/// Filters stand in a ``TopicTree``; each subscription is a record linked into its node's list and its
/// session's list, so that adding and removing one costs the same among ten and among a million; those
/// of a session that has many stand in a ``SessionIndex`` besides.
/// Matches of hot topics are cached, bounded in number and size; any change of subscriptions
/// outdates the whole cache at once by its version.
public struct SubscriptionTrie: ~Copyable {
    struct Subscription: BitwiseCopyable {
        var session: UInt32
        var node: UInt32
        var nextInNode: UInt32
        var previousInNode: UInt32
        var nextInSession: UInt32
        var previousInSession: UInt32
        var qos: QoS
    }

    /// A session that wants a topic, at the highest QoS of its matching subscriptions [MQTT-3.3.5-1].
    public struct Match: BitwiseCopyable {
        public var session: UInt32
        public var qos: QoS
    }

    /// A session's own list; it belongs to the session's record and is passed in for changes.
    public struct List: BitwiseCopyable {
        var first: UInt32
        public fileprivate(set) var count: UInt32

        public init() {
            first = noIndex
            count = 0
        }
    }

    public enum Subscribed: Sendable {
        case added
        /// An identical filter was there: its QoS is replaced [MQTT-3.8.4-3].
        case replaced
    }

    private(set) var tree: TopicTree
    private var subscriptions = Slab<Subscription>()
    private(set) var sessionIndex: SessionIndex
    private var cache: MatchCache
    /// Counts changes; a cached match of another version is none.
    private var version: UInt64 = 1
    private let hash: KeyedHash

    private var matches: GrowableBuffer<Match>
    private var pending: GrowableBuffer<(node: UInt32, level: UInt32)>
    private var levels: GrowableBuffer<(start: UInt32, end: UInt32)>
    /// Per session: where it stands in `matches`, valid while its stamp is the current one.
    private var places: GrowableBuffer<(stamp: UInt32, place: UInt32)>
    var stamp: UInt32 = 0

    public init(hash: KeyedHash, pool: BytePool) {
        tree = TopicTree(hash: hash, pool: pool)
        sessionIndex = SessionIndex(hash: hash)
        cache = MatchCache(pool: pool)
        self.hash = hash
        matches = GrowableBuffer()
        pending = GrowableBuffer()
        levels = GrowableBuffer()
        places = GrowableBuffer()
    }

    public var count: Int { subscriptions.count }

    // MARK: Changes

    /// Adds a subscription of a session, or changes its QoS.
    public mutating func subscribe(
        _ session: UInt32, _ list: inout List, filter: UnsafeRawBufferPointer, qos: QoS
    ) -> Subscribed {
        version += 1
        let node = tree.insert(filter)
        if let existing = find(session, list, node) {
            subscriptions[existing].qos = qos
            return .replaced
        }
        let nextInNode = tree[node].value
        let index = subscriptions.insert(
            Subscription(
                session: session, node: node, nextInNode: nextInNode, previousInNode: noIndex,
                nextInSession: list.first, previousInSession: noIndex, qos: qos))
        if nextInNode != noIndex { subscriptions[nextInNode].previousInNode = index }
        if list.first != noIndex { subscriptions[list.first].previousInSession = index }
        tree.setValue(index, at: node)
        list.first = index
        list.count += 1
        if list.count > SessionIndex.mostWalked + 1 {
            sessionIndex.insert(session, node, index)
        } else if list.count > SessionIndex.mostWalked {
            insertIntoIndex(list)
        }
        return .added
    }

    /// Removes the subscription of exactly this filter [MQTT-3.10.4-1]; false when there is none.
    public mutating func unsubscribe(
        _ session: UInt32, _ list: inout List, filter: UnsafeRawBufferPointer
    ) -> Bool {
        guard let node = tree.find(filter), let index = find(session, list, node) else {
            return false
        }
        version += 1
        remove(index, &list)
        return true
    }

    public mutating func removeAll(_ list: inout List) {
        guard list.first != noIndex else { return }
        version += 1
        while list.first != noIndex { remove(list.first, &list) }
    }

    /// A session's filters with their QoS.
    public func subscriptions(of list: List) -> [(filter: [UInt8], qos: QoS)] {
        var result: [(filter: [UInt8], qos: QoS)] = []
        var index = list.first
        while index != noIndex {
            let subscription = subscriptions[index]
            result.append((tree.path(of: subscription.node), subscription.qos))
            index = subscription.nextInSession
        }
        return result
    }

    // MARK: Matching

    /// Every session that wants the topic, each once; valid until the next call on the trie.
    public mutating func match(_ topic: UnsafeRawBufferPointer) -> UnsafeBufferPointer<Match> {
        let topicHash = hash(topic)
        if let cached = cache.find(topic, hash: topicHash, version: version) { return cached }
        collect(topic)
        cache.store(topic, hash: topicHash, version: version, matches.contents)
        return matches.contents
    }

    /// A topic's matches of which the caller left out those that may not have it.
    public struct Permitted {
        /// Valid until the next call on the trie.
        public let matches: UnsafeBufferPointer<Match>
        /// How many were left out.
        public let withheld: UInt32
    }

    public enum Search {
        /// What ``keep(_:permitted:)`` was told for this topic, and no subscription has changed since.
        case cached(Permitted)
        /// Every session that wants the topic, to be sorted out: those that may have it move to the
        /// front, and ``keep(_:permitted:)`` is called with their number.
        case collected(UnsafeMutableBufferPointer<Match>)
    }

    /// The same as ``match(_:)`` for a caller that leaves out some sessions. All calls on one trie have
    /// to be of one kind, with ``invalidate()`` between the kinds.
    public mutating func search(_ topic: UnsafeRawBufferPointer) -> Search {
        let topicHash = hash(topic)
        if let cached = cache.find(topic, hash: topicHash, version: version) {
            return .cached(
                Permitted(
                    matches: cached,
                    withheld: cache.withheld(hash: topicHash)))
        }
        collect(topic)
        return .collected(matches.mutableContents)
    }

    /// Caches the first matches of the search that was just made.
    public mutating func keep(_ topic: UnsafeRawBufferPointer, permitted count: Int) -> Permitted {
        let kept = UnsafeBufferPointer(rebasing: matches.contents[..<count])
        let withheld = UInt32(clamping: matches.count - count)
        cache.store(topic, hash: hash(topic), version: version, kept, withheld: withheld)
        return Permitted(matches: kept, withheld: withheld)
    }

    /// Forgets all cached matches.
    public mutating func invalidate() { version += 1 }

    /// Walks all paths that match, without recursion: a topic may have many levels.
    private mutating func collect(_ topic: UnsafeRawBufferPointer) {
        matches.removeAll()
        levels.removeAll()
        var start = 0
        for offset in 0...topic.count {
            guard offset == topic.count || topic[offset] == TopicTree.separator else { continue }
            levels.append((UInt32(start), UInt32(offset)))
            start = offset + 1
        }
        stamp &+= 1
        if stamp == 0 {
            // After 2^32 matches: no place of the last round may be taken for one of this round.
            places.removeAll()
            stamp = 1
        }
        var matchedNodes = 0
        pending.removeAll()
        pending.append((TopicTree.root, 0))
        while let (index, depth) = pending.popLast() {
            let node = tree[index]
            // Wildcards at the first level do not match topics that begin with $ [MQTT-4.7.2-1].
            let allowsWildcard = depth > 0 || topic.isEmpty || topic[0] != 0x24
            if node.multiLevelChild != noIndex, allowsWildcard {
                // `a/#` also matches `a` itself (section 4.7.1.2).
                addSubscribers(of: node.multiLevelChild, &matchedNodes)
            }
            if Int(depth) == levels.count {
                addSubscribers(of: index, &matchedNodes)
                continue
            }
            if node.singleLevelChild != noIndex, allowsWildcard {
                pending.append((node.singleLevelChild, depth + 1))
            }
            let level = levels[Int(depth)]
            let bytes = UnsafeRawBufferPointer(rebasing: topic[Int(level.start)..<Int(level.end)])
            if let child = tree.child(of: index, bytes) { pending.append((child, depth + 1)) }
        }
    }

    private mutating func addSubscribers(of node: UInt32, _ matchedNodes: inout Int) {
        var index = tree[node].value
        guard index != noIndex else { return }
        // One list names each session once; from the second on, duplicates are looked for.
        matchedNodes += 1
        if matchedNodes == 2 {
            for place in 0..<matches.count { _ = claimPlace(matches[place].session, place) }
        }
        while index != noIndex {
            let subscription = subscriptions[index]
            index = subscription.nextInNode
            if matchedNodes > 1,
                let place = claimPlace(subscription.session, matches.count)
            {
                // The highest QoS wins, whatever the order of subscribing [MQTT-3.3.5-1].
                matches[place].qos = max(matches[place].qos, subscription.qos)
                continue
            }
            matches.append(Match(session: subscription.session, qos: subscription.qos))
        }
    }

    /// The place of a session that already stands in `matches`, or `nil` after it has claimed `place`.
    private mutating func claimPlace(_ session: UInt32, _ place: Int) -> Int? {
        while places.count <= Int(session) { places.append((0, 0)) }
        if places[Int(session)].stamp == stamp { return Int(places[Int(session)].place) }
        places[Int(session)] = (stamp, UInt32(place))
        return nil
    }

    /// Walks the node's list and the session's list in step and stops with the shorter one, unless the
    /// session has many.
    private func find(_ session: UInt32, _ list: List, _ node: UInt32) -> UInt32? {
        guard list.count <= SessionIndex.mostWalked else {
            return sessionIndex.find(session, node) {
                subscriptions[$0].session == session && subscriptions[$0].node == node
            }
        }
        var inNode = tree[node].value
        var inSession = list.first
        while inNode != noIndex, inSession != noIndex {
            if subscriptions[inNode].session == session { return inNode }
            if subscriptions[inSession].node == node { return inSession }
            inNode = subscriptions[inNode].nextInNode
            inSession = subscriptions[inSession].nextInSession
        }
        return nil
    }

    private mutating func remove(_ index: UInt32, _ list: inout List) {
        let removed = subscriptions[index]
        if removed.previousInNode != noIndex {
            subscriptions[removed.previousInNode].nextInNode = removed.nextInNode
        } else {
            tree.setValue(removed.nextInNode, at: removed.node)
        }
        if removed.nextInNode != noIndex {
            subscriptions[removed.nextInNode].previousInNode = removed.previousInNode
        }
        if removed.previousInSession != noIndex {
            subscriptions[removed.previousInSession].nextInSession = removed.nextInSession
        } else {
            list.first = removed.nextInSession
        }
        if removed.nextInSession != noIndex {
            subscriptions[removed.nextInSession].previousInSession = removed.previousInSession
        }
        if list.count > SessionIndex.mostWalked {
            sessionIndex.remove(removed.session, removed.node, index)
            if list.count == SessionIndex.mostWalked + 1 { removeFromIndex(list) }
        }
        list.count -= 1
        subscriptions.remove(index)
        tree.prune(removed.node)
    }

    private mutating func insertIntoIndex(_ list: List) {
        var index = list.first
        while index != noIndex {
            sessionIndex.insert(subscriptions[index].session, subscriptions[index].node, index)
            index = subscriptions[index].nextInSession
        }
    }

    private mutating func removeFromIndex(_ list: List) {
        var index = list.first
        while index != noIndex {
            sessionIndex.remove(subscriptions[index].session, subscriptions[index].node, index)
            index = subscriptions[index].nextInSession
        }
    }
}
