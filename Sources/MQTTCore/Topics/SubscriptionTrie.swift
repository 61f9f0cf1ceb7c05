import MQTTCodec
import Structures

/// Finds the sessions that subscribed to a topic.
///
/// Filters stand in a ``TopicTree``. Each subscription is a record in two linked lists, that of its
/// node and that of its session, so that adding and removing one costs the same among ten and among
/// a million. Subscriptions of a session with many also stand in a ``SessionIndex``. The matches of
/// hot topics are cached, bounded in number and size; a change of subscriptions outdates those
/// that it may affect.
public struct SubscriptionTrie: ~Copyable {
    struct Subscription: BitwiseCopyable {
        var session: UInt32
        var node: UInt32
        var inNode = ListLinks()
        var inSession = ListLinks()
        var grant: SubscriptionGrant

        var qos: QoS { grant.qos }
    }

    /// A session that subscribed to a topic, with the highest QoS of its matching subscriptions
    /// [MQTT-3.3.5-1].
    public struct Match: BitwiseCopyable {
        public var session: UInt32
        public var qos: QoS
    }

    /// A session's subscriptions. The list belongs to the session's record, and is passed in for
    /// changes.
    public struct List: BitwiseCopyable {
        fileprivate(set) var members = IntrusiveList<InSession>()
        public fileprivate(set) var count: UInt32 = 0

        public init() {}
    }

    private enum InNode: ListField {
        static subscript(subscription: UnsafeMutablePointer<Subscription>) -> ListLinks {
            get { subscription.pointee.inNode }
            set { subscription.pointee.inNode = newValue }
        }
    }

    enum InSession: ListField {
        static subscript(subscription: UnsafeMutablePointer<Subscription>) -> ListLinks {
            get { subscription.pointee.inSession }
            set { subscription.pointee.inSession = newValue }
        }
    }

    public enum Subscribed: Sendable {
        case added
        /// The session had the same filter, whose grant is replaced [MQTT-3.8.4-3].
        case replaced
    }

    private(set) var tree: TopicTree
    private(set) var subscriptions = Slab<Subscription>()
    private(set) var sessionIndex: SessionIndex
    var cache: MatchCache
    var versions: MatchVersions
    /// Steps of matching since ``takeWork()``.
    var work = 0
    var sliced = SlicedMatch()
    /// A filter whose change is noted.
    private var changed: GrowableBuffer<UInt8>
    let hash: KeyedHash

    var matches: GrowableBuffer<Match>
    private var pending: GrowableBuffer<(node: UInt32, level: UInt32)>
    private var levels: GrowableBuffer<TopicLevels.Bounds>
    /// Per session: its place in `matches`, valid while its stamp is the current one.
    private var places: GrowableBuffer<(stamp: UInt32, place: UInt32)>
    var stamp: UInt32 = 0

    public init(hash: KeyedHash, pool: BytePool) {
        tree = TopicTree(hash: hash, pool: pool)
        sessionIndex = SessionIndex(hash: hash)
        cache = MatchCache(pool: pool)
        versions = MatchVersions(hash: hash)
        changed = GrowableBuffer()
        self.hash = hash
        matches = GrowableBuffer()
        pending = GrowableBuffer()
        levels = GrowableBuffer()
        places = GrowableBuffer()
    }

    public var count: Int { subscriptions.count }

    // MARK: Changes

    /// Adds a subscription of a session, or changes the grant of one with the same filter.
    public mutating func subscribe(
        _ session: UInt32, _ list: inout List, filter: UnsafeRawBufferPointer,
        grant: SubscriptionGrant
    ) -> Subscribed {
        let qos = grant.qos
        noteChange(filter)
        let node = tree.insert(filter)
        if let existing = find(session, list, node) {
            if sliced.isActive {
                sliced.note(session, filter, subscriptions[existing].qos, -1)
                sliced.note(session, filter, qos, 1)
            }
            subscriptions[existing].grant = grant
            return .replaced
        }
        if sliced.isActive { sliced.note(session, filter, qos, 1) }
        let index = subscriptions.insert(Subscription(session: session, node: node, grant: grant))
        var inNode = IntrusiveList<InNode>(first: tree[node].value)
        inNode.prepend(index, in: subscriptions)
        tree.setValue(inNode.first, at: node)
        list.members.prepend(index, in: subscriptions)
        list.count += 1
        if list.count > SessionIndex.mostWalked + 1 {
            sessionIndex.insert(session, node, index)
        } else if list.count > SessionIndex.mostWalked {
            insertIntoIndex(list)
        }
        return .added
    }

    /// Removes a session's subscription with exactly this filter [MQTT-3.10.4-1]; false when there
    /// is none.
    public mutating func unsubscribe(
        _ session: UInt32, _ list: inout List, filter: UnsafeRawBufferPointer
    ) -> Bool {
        guard let node = tree.find(filter), let index = find(session, list, node) else {
            return false
        }
        noteRemoval(index, filter)
        remove(index, &list)
        return true
    }

    /// Removes all subscriptions of a session.
    public mutating func removeAll(_ list: inout List) {
        var steps = Int.max
        removeSome(&list, steps: &steps)
    }

    /// Removes subscriptions of a session, at most so many steps: one for a subscription, for each
    /// level that goes with it, and for 64 bytes. The last one may exceed them.
    public mutating func removeSome(_ list: inout List, steps: inout Int) {
        while steps > 0, !list.members.isEmpty {
            let index = list.members.first
            tree.writePath(of: subscriptions[index].node, to: &changed)
            noteRemoval(index, UnsafeRawBufferPointer(changed.contents))
            let nodes = tree.count
            remove(index, &list)
            steps -= 1 + nodes - tree.count + changed.count / 64
        }
    }

    /// Outdates the cached matches that a change of this filter affects.
    private mutating func noteChange(_ filter: UnsafeRawBufferPointer) {
        if !versions.change(filter) { cache.remove(filter, hash: hash(filter)) }
    }

    private mutating func noteRemoval(_ index: UInt32, _ filter: UnsafeRawBufferPointer) {
        noteChange(filter)
        guard sliced.isActive else { return }
        sliced.note(subscriptions[index].session, filter, subscriptions[index].qos, -1)
    }

    /// Calls `body` for the session's subscriptions behind the first `skipped`, until it returns
    /// false; returns whether it never did.
    public func forEachSubscription(
        of list: List, from skipped: UInt32, _ body: ([UInt8], SubscriptionGrant) -> Bool
    ) -> Bool {
        var place: UInt32 = 0
        var index = list.members.first
        while index != noIndex {
            let subscription = subscriptions[index]
            if place >= skipped, !body(tree.path(of: subscription.node), subscription.grant) {
                return false
            }
            place += 1
            index = subscription.inSession.next
        }
        return true
    }

    // MARK: Matching

    /// True when matching has taken steps since ``takeWork()``.
    @inline(__always)
    public var hasWork: Bool { work != 0 }

    /// The nodes and subscriptions that matching has visited since the last call; cached matches
    /// cost none.
    public mutating func takeWork() -> Int {
        defer { work = 0 }
        return work
    }

    /// All sessions that subscribed to the topic, each once; valid until the next call on the trie.
    /// `nil` when that takes more than `most` steps besides the visits of these sessions: then
    /// ``matchSlice(_:steps:)`` makes the match.
    public mutating func match(
        _ topic: UnsafeRawBufferPointer, most: Int
    ) -> UnsafeBufferPointer<Match>? {
        let topicHash = hash(topic)
        if let cached = cache.find(topic, hash: topicHash, versions) { return cached }
        return collectAndCache(topic, topicHash, most: most)
    }

    @inline(never)
    private mutating func collectAndCache(
        _ topic: UnsafeRawBufferPointer, _ topicHash: UInt64, most: Int
    ) -> UnsafeBufferPointer<Match>? {
        guard collect(topic, most: most) else { return nil }
        cache.store(topic, hash: topicHash, versions, matches.contents)
        return matches.contents
    }

    /// Collects the matches by walking all paths of the tree that match. It does not recurse,
    /// because a topic may have many levels. False after more than `most` steps without a further
    /// session.
    mutating func collect(_ topic: UnsafeRawBufferPointer, most: Int) -> Bool {
        if sliced.isFor(topic) {
            if sliced.isComplete { sliced.write(to: &matches) }
            // Without a bound, it is made here in one piece.
            if sliced.isComplete || most != .max { return sliced.isComplete }
        }
        let before = work
        matches.removeAll()
        TopicLevels.split(topic, into: &levels)
        stamp &+= 1
        if stamp == 0 {
            // After 2^32 matches the stamps repeat, so the old places must go.
            places.removeAll()
            stamp = 1
        }
        var matchedNodes = 0
        pending.removeAll()
        pending.append((TopicTree.root, 0))
        while let (index, depth) = pending.popLast() {
            guard work - before - matches.count <= most else { return false }
            let node = tree[index]
            work += 1
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
        return true
    }

    // MARK: Walking

    /// Begins a walk over the nodes that match a topic.
    mutating func split(_ topic: UnsafeRawBufferPointer) {
        TopicLevels.split(topic, into: &levels)
        pending.removeAll()
        pending.append((TopicTree.root, 0))
    }

    mutating func nextPending() -> (node: UInt32, level: UInt32)? { pending.popLast() }

    mutating func addPending(_ node: UInt32, _ level: UInt32) { pending.append((node, level)) }

    /// Levels of the topic that was split last.
    var levelCount: Int { levels.count }

    /// The bytes of a level; `nil` behind the last.
    func level(at depth: UInt32, of topic: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard Int(depth) < levels.count else { return nil }
        let level = levels[Int(depth)]
        return UnsafeRawBufferPointer(rebasing: topic[Int(level.start)..<Int(level.end)])
    }

    private mutating func addSubscribers(of node: UInt32, _ matchedNodes: inout Int) {
        var index = tree[node].value
        guard index != noIndex else { return }
        // A node's list names each session once. From the second matching node on, duplicates are
        // possible.
        matchedNodes += 1
        if matchedNodes == 2 {
            for place in 0..<matches.count { _ = claimPlace(matches[place].session, place) }
        }
        while index != noIndex {
            let subscription = subscriptions[index]
            index = subscription.inNode.next
            work += 1
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

    /// The place of a session that is already in `matches`; `nil` after claiming `place` for a new
    /// one.
    private mutating func claimPlace(_ session: UInt32, _ place: Int) -> Int? {
        while places.count <= Int(session) { places.append((0, 0)) }
        if places[Int(session)].stamp == stamp { return Int(places[Int(session)].place) }
        places[Int(session)] = (stamp, UInt32(place))
        return nil
    }

    private mutating func remove(_ index: UInt32, _ list: inout List) {
        let removed = subscriptions[index]
        var inNode = IntrusiveList<InNode>(first: tree[removed.node].value)
        inNode.remove(index, in: subscriptions)
        tree.setValue(inNode.first, at: removed.node)
        list.members.remove(index, in: subscriptions)
        if list.count > SessionIndex.mostWalked {
            sessionIndex.remove(removed.session, removed.node, index)
            if list.count == SessionIndex.mostWalked + 1 { removeFromIndex(list) }
        }
        list.count -= 1
        subscriptions.remove(index)
        tree.prune(removed.node)
    }

    private mutating func insertIntoIndex(_ list: List) {
        var index = list.members.first
        while index != noIndex {
            sessionIndex.insert(subscriptions[index].session, subscriptions[index].node, index)
            index = subscriptions[index].inSession.next
        }
    }

    private mutating func removeFromIndex(_ list: List) {
        var index = list.members.first
        while index != noIndex {
            sessionIndex.remove(subscriptions[index].session, subscriptions[index].node, index)
            index = subscriptions[index].inSession.next
        }
    }
}
