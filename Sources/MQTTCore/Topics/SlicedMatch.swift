import MQTTCodec
import Structures

/// The match of one topic with very many filters, in slices between which subscriptions change.
///
/// The walk takes the matching paths of the tree in a fixed order: a node before its children, the
/// child with the topic's level before the child `+`. A place in this order is a choice for each
/// level. It needs no node, and tells of every filter whether the walk has passed it: a change of
/// one that was passed is applied to what was found, any other is still met. So no change makes the
/// walk begin again, and the result is that of a walk in one piece at the moment of the last slice.
struct SlicedMatch: ~Copyable {
    /// A session and the number of its filters that match, by QoS.
    struct Found: BitwiseCopyable {
        var session: UInt32
        var atMostOnce: Int32 = 0
        var atLeastOnce: Int32 = 0
        var exactlyOnce: Int32 = 0
        /// True when the session may not have the message.
        var isWithheld = false

        var isFound: Bool { atMostOnce > 0 || atLeastOnce > 0 || exactlyOnce > 0 }
    }

    /// True from ``begin(_:)`` to ``end()``; changes are noted meanwhile.
    private(set) var isActive = false
    /// True when the walk has passed the whole tree.
    private(set) var isComplete = false
    private var topic = GrowableBuffer<UInt8>()
    private var levels = GrowableBuffer<TopicLevels.Bounds>()
    /// The next node to be visited: for each level true for `+`, false for the topic's level.
    private var place = GrowableBuffer<Bool>()
    /// The nodes from the root to that at ``place``, during a slice.
    private var path = GrowableBuffer<UInt32>()
    private var found = GrowableBuffer<Found>()
    /// Per session: its place in `found`, valid while its stamp is the current one.
    private var places = GrowableBuffer<(stamp: UInt32, place: UInt32)>()
    private var stamp: UInt32 = 0
    /// The sessions of `found` before this place were asked about.
    private var asked = 0
    /// Places before `asked` of sessions that have come anew since, or whose rights have changed.
    private var again = GrowableBuffer<UInt32>()

    /// True when this is the match of that topic.
    func isFor(_ other: UnsafeRawBufferPointer) -> Bool {
        isActive && UnsafeRawBufferPointer(topic.contents).elementsAreEqual(to: other)
    }

    mutating func begin(_ name: UnsafeRawBufferPointer) {
        isActive = true
        isComplete = false
        topic.removeAll()
        for byte in name { topic.append(byte) }
        TopicLevels.split(name, into: &levels)
        place.removeAll()
        found.removeAll()
        asked = 0
        again.removeAll()
        stamp &+= 1
        if stamp == 0 {
            // After 2^32 matches the stamps repeat, so the old places must go.
            places.removeAll()
            stamp = 1
        }
    }

    mutating func end() { isActive = false }

    // MARK: The walk

    /// Visits nodes until so many nodes and subscriptions were visited; the last node may exceed
    /// them.
    mutating func run(
        _ tree: borrowing TopicTree, _ subscriptions: borrowing Slab<SubscriptionTrie.Subscription>,
        steps: inout Int
    ) {
        guard !isComplete else { return }
        steps -= place.count
        var hasNode = findPlace(tree)
        while hasNode {
            guard steps > 0 else { return }
            visit(tree, subscriptions, &steps)
            hasNode =
                place.count < levels.count
                ? enter(tree, wildcard: false) || goOn(tree, afterWildcard: false)
                : goOn(tree, afterWildcard: true)
        }
        isComplete = true
    }

    /// Finds the nodes on the way to the place, which goes on to the next one if its node is gone.
    /// False when none is left.
    private mutating func findPlace(_ tree: borrowing TopicTree) -> Bool {
        path.removeAll()
        path.append(TopicTree.root)
        for depth in 0..<place.count {
            let choice = place[depth]
            if let child = child(tree, of: path[depth], depth, wildcard: choice) {
                path.append(child)
                continue
            }
            while place.count > depth { _ = place.popLast() }
            return goOn(tree, afterWildcard: choice)
        }
        return true
    }

    /// Goes to the first node behind that child of the present node and all below it.
    private mutating func goOn(_ tree: borrowing TopicTree, afterWildcard: Bool) -> Bool {
        var afterWildcard = afterWildcard
        while true {
            if !afterWildcard, enter(tree, wildcard: true) { return true }
            guard let choice = place.popLast() else { return false }
            _ = path.popLast()
            afterWildcard = choice
        }
    }

    /// Goes to a child of the present node; false without it.
    private mutating func enter(_ tree: borrowing TopicTree, wildcard: Bool) -> Bool {
        let depth = place.count
        guard let child = child(tree, of: path[depth], depth, wildcard: wildcard) else {
            return false
        }
        place.append(wildcard)
        path.append(child)
        return true
    }

    private func child(
        _ tree: borrowing TopicTree, of node: UInt32, _ depth: Int, wildcard: Bool
    ) -> UInt32? {
        guard wildcard else { return tree.child(of: node, level(depth)) }
        let child = tree[node].singleLevelChild
        return child != noIndex && allowsWildcard(at: depth) ? child : nil
    }

    private func level(_ depth: Int) -> UnsafeRawBufferPointer {
        let bounds = levels[depth]
        return UnsafeRawBufferPointer(
            rebasing: UnsafeRawBufferPointer(topic.contents)[Int(bounds.start)..<Int(bounds.end)])
    }

    /// Wildcards at the first level do not match topics that begin with $ [MQTT-4.7.2-1].
    private func allowsWildcard(at depth: Int) -> Bool {
        depth > 0 || topic.isEmpty || topic[0] != 0x24
    }

    private mutating func visit(
        _ tree: borrowing TopicTree, _ subscriptions: borrowing Slab<SubscriptionTrie.Subscription>,
        _ steps: inout Int
    ) {
        let depth = place.count
        let node = tree[path[depth]]
        steps -= 1
        if node.multiLevelChild != noIndex, allowsWildcard(at: depth) {
            // `a/#` also matches `a` itself (section 4.7.1.2).
            add(tree[node.multiLevelChild].value, subscriptions, &steps)
        }
        if depth == levels.count { add(node.value, subscriptions, &steps) }
    }

    /// Adds the subscriptions of a node's list.
    private mutating func add(
        _ first: UInt32, _ subscriptions: borrowing Slab<SubscriptionTrie.Subscription>,
        _ steps: inout Int
    ) {
        var index = first
        while index != noIndex {
            let subscription = subscriptions[index]
            index = subscription.inNode.next
            steps -= 1
            count(subscription.session, subscription.qos, 1)
        }
    }

    private mutating func count(_ session: UInt32, _ qos: QoS, _ change: Int32) {
        while places.count <= Int(session) { places.append((0, 0)) }
        if places[Int(session)].stamp != stamp {
            places[Int(session)] = (stamp, UInt32(found.count))
            found.append(Found(session: session))
        }
        let index = Int(places[Int(session)].place)
        var entry = found[index]
        if index < asked, !entry.isFound { again.append(UInt32(index)) }
        switch qos {
        case .atMostOnce: entry.atMostOnce += change
        case .atLeastOnce: entry.atLeastOnce += change
        case .exactlyOnce: entry.exactlyOnce += change
        }
        found[index] = entry
    }

    // MARK: Rights

    /// True when the walk has passed the whole tree and each session was asked about.
    var areAllAsked: Bool { isComplete && asked == found.count && again.isEmpty }

    /// Asks which of the sessions that were found may have the message, until about so many steps are
    /// used; the last question may exceed them. True when all were asked.
    mutating func ask(
        steps: inout Int, _ isPermitted: (_ session: UInt32, _ steps: inout Int) -> Bool
    ) -> Bool {
        while !areAllAsked {
            guard steps > 0 else { return false }
            steps -= 1
            var place = asked
            if let former = again.popLast() { place = Int(former) } else { asked += 1 }
            guard found[place].isFound else { continue }
            found[place].isWithheld = !isPermitted(found[place].session, &steps)
        }
        return true
    }

    /// Has all sessions asked about again, because rights have changed.
    mutating func forgetRights() {
        asked = 0
        again.removeAll()
    }

    /// Has one session asked about again.
    mutating func forgetRights(of session: UInt32) {
        guard session < places.count, places[Int(session)].stamp == stamp else { return }
        let place = places[Int(session)].place
        if place < asked { again.append(place) }
    }

    // MARK: Changes between slices

    /// A session's subscription was added (`change` 1) or removed (-1).
    mutating func note(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer, _ qos: QoS, _ change: Int32
    ) {
        if hasPassed(filter) { count(session, qos, change) }
    }

    /// True when the filter matches the topic and stands before the place of the walk.
    private func hasPassed(_ filter: UnsafeRawBufferPointer) -> Bool {
        var isBefore: Bool? = isComplete ? true : nil
        var depth = 0
        var rest = TopicLevels(filter)
        while let text = rest.next() {
            if text.count == 1, text[0] == 0x23 {
                return allowsWildcard(at: depth) && (isBefore ?? (depth < place.count))
            }
            guard depth < levels.count else { return false }
            let isWildcard = text.count == 1 && text[0] == 0x2B
            guard
                isWildcard ? allowsWildcard(at: depth) : text.elementsAreEqual(to: level(depth))
            else { return false }
            if isBefore == nil {
                if depth >= place.count {
                    isBefore = false
                } else if isWildcard != place[depth] {
                    isBefore = !isWildcard
                }
            }
            depth += 1
        }
        return depth == levels.count && (isBefore ?? (depth < place.count))
    }

    // MARK: Result

    /// The number of sessions that were ever found.
    var count: Int { found.count }

    /// The session that was found at a place; `nil` for one that matches no more.
    func session(at place: Int) -> UInt32? {
        found[place].isFound ? found[place].session : nil
    }

    /// Writes the matches of a complete walk, in place of the buffer's content, without sessions that
    /// may not have the message; returns the number of those.
    @discardableResult
    func write(to matches: inout GrowableBuffer<SubscriptionTrie.Match>) -> UInt32 {
        matches.removeAll()
        var withheld: UInt32 = 0
        for (place, entry) in found.contents.enumerated() {
            if place < asked, entry.isWithheld {
                withheld += entry.isFound ? 1 : 0
                continue
            }
            // The highest QoS wins [MQTT-3.3.5-1].
            let qos: QoS
            if entry.exactlyOnce > 0 {
                qos = .exactlyOnce
            } else if entry.atLeastOnce > 0 {
                qos = .atLeastOnce
            } else if entry.atMostOnce > 0 {
                qos = .atMostOnce
            } else {
                continue
            }
            matches.append(SubscriptionTrie.Match(session: entry.session, qos: qos))
        }
        return withheld
    }
}
