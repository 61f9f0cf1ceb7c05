import MQTTCodec
import Structures

/// The retained message of each topic, found by topic filter in slices.
///
/// Retained messages belong to no session and outlive all sessions [MQTT-3.1.2-7]. A topic leaves
/// the tree together with its message, also while walks are open: those that stand on its nodes
/// move on to the next.
public struct RetainedMessages: ~Copyable {
    struct Record: BitwiseCopyable {
        var message: Message?
    }

    private(set) var tree: TopicTree
    private var records = Slab<Record>()
    private let pool: BytePool
    private(set) var places: WalkPlaces
    /// Bytes of all messages, each with its packet header.
    public private(set) var byteCount = 0
    /// The number of topics, where a topic of more than eight levels counts once for every eight
    /// levels or part of eight. Each level is a node of the tree and takes memory.
    public private(set) var weight = 0

    public init(hash: KeyedHash, pool: BytePool) {
        tree = TopicTree(hash: hash, pool: pool)
        places = WalkPlaces(hash: hash)
        self.pool = pool
    }

    public var count: Int { records.count }

    /// Keeps a message for its topic, in place of the former one [MQTT-3.3.1-5], and adds a
    /// reference to it. A message without payload is not kept and removes the former one
    /// [MQTT-3.3.1-10] [MQTT-3.3.1-11]. Returns the record of the message; `nil` when it is not
    /// kept.
    @discardableResult
    public mutating func update(_ message: Message) -> UInt32? {
        guard message.payload.count > 0 else {
            remove(message.topic)
            return nil
        }
        message.retainReference()
        byteCount += message.count
        let node = tree.insert(message.topic)
        let record = tree[node].value
        if record != noIndex {
            drop(record)
            records[record].message = message
            return record
        }
        weight += TopicLevels.weight(of: message.topic)
        let new = records.insert(Record(message: message))
        tree.setValue(new, at: node)
        return new
    }

    /// The message of a record, borrowed until the next change; `nil` when it has none. A record is
    /// used again for other topics.
    public func message(ofRecord record: UInt32) -> Message? {
        record < records.endIndex ? records[record].message : nil
    }

    /// A topic's retained message, borrowed until the next change; `nil` when it has none.
    public func message(of topic: UnsafeRawBufferPointer) -> Message? {
        guard let node = tree.find(topic), tree[node].value != noIndex else { return nil }
        return records[tree[node].value].message
    }

    /// Removes a topic's retained message; false when it has none.
    @discardableResult
    public mutating func remove(_ topic: UnsafeRawBufferPointer) -> Bool {
        guard let node = tree.find(topic), tree[node].value != noIndex else { return false }
        let record = tree[node].value
        weight -= TopicLevels.weight(of: topic)
        drop(record)
        records.remove(record)
        tree.setValue(noIndex, at: node)
        prune(node)
        return true
    }

    /// Removes a node that nothing uses, and its ancestors likewise, at once.
    private mutating func prune(_ start: UInt32) {
        var node = start
        while tree.isUnused(node) {
            if places.holds(node) { places.move(from: node, to: tree.successor(of: node)) }
            node = tree.removeUnused(node)
        }
    }

    // MARK: Walks

    /// Begins a walk over the messages that a filter matches. The caller ends it once with
    /// ``end(_:)``.
    public mutating func cursor(_ filter: UnsafeRawBufferPointer) -> RetainedCursor {
        let filter = [UInt8](filter)
        let levels = RetainedCursor.levels(of: filter)
        let first = firstChild(of: TopicTree.root, filter, levels.first) ?? TopicTree.root
        return RetainedCursor(
            filter: filter, levels: levels, walker: places.begin(at: first), at: first)
    }

    public mutating func end(_ cursor: consuming RetainedCursor) { places.end(cursor.walker) }

    /// Returns the next matching message, or `.paused` when `steps` has reached 0. Each step looks
    /// at one node and lowers `steps` by one. The message is borrowed and valid until the next
    /// change.
    public mutating func next(
        _ cursor: inout RetainedCursor, steps: inout Int
    ) -> RetainedCursor.Step {
        if let node = places.resume(cursor.walker) {
            cursor.node = node
            cursor.depth = tree.depth(of: node) - 1
        }
        defer { places.reach(cursor.node) }
        while cursor.node != TopicTree.root {
            guard steps > 0 else { return .paused }
            steps -= 1
            if let record = advance(&cursor), let message = records[record].message {
                return .message(message)
            }
        }
        return .finished
    }

    /// Looks at the cursor's node and moves it to the next one. Returns a matching record.
    private func advance(_ cursor: inout RetainedCursor) -> UInt32? {
        let node = cursor.node
        guard let level = cursor.level(cursor.depth),
            isMatch(node, cursor.filter, level, isFirst: cursor.depth == 0)
        else {
            moveBehind(&cursor)
            return nil
        }
        let found = cursor.isAnswer(at: cursor.depth) ? value(at: node) : nil
        if let child = firstChild(of: node, cursor.filter, cursor.level(cursor.depth + 1)) {
            cursor.node = child
            cursor.depth += 1
        } else {
            moveBehind(&cursor)
        }
        return found
    }

    /// Moves the cursor behind its node and all nodes below: to the next sibling, or to one of the
    /// nearest ancestor that has one, where the filter has a wildcard.
    private func moveBehind(_ cursor: inout RetainedCursor) {
        while cursor.node != TopicTree.root {
            let next = tree[cursor.node].siblings.next
            if next != noIndex, cursor.level(cursor.depth)?.isWildcard == true {
                cursor.node = next
                return
            }
            cursor.node = tree[cursor.node].parent
            cursor.depth -= 1
        }
    }

    /// Compares a node with one level of the filter. It may be another than the filter's exact
    /// level, after the node that the cursor stood on was removed.
    private func isMatch(
        _ node: UInt32, _ filter: [UInt8], _ level: RetainedCursor.Level, isFirst: Bool
    ) -> Bool {
        switch level {
        // Wildcards at the first level do not match topics that begin with $ [MQTT-4.7.2-1].
        case .singleLevel, .multiLevel: !isFirst || !beginsWithDollar(tree[node])
        case .exact(let range): withBytes(of: filter, range) { tree[node].level.equals($0) }
        }
    }

    /// The first child to compare with a level of the filter.
    private func firstChild(
        of node: UInt32, _ filter: [UInt8], _ level: RetainedCursor.Level?
    ) -> UInt32? {
        switch level {
        case nil: return nil
        case .exact(let range):
            return withBytes(of: filter, range) { tree.child(of: node, $0) }
        case .singleLevel, .multiLevel:
            let first = tree[node].firstChild
            return first == noIndex ? nil : first
        }
    }

    private func withBytes<Result>(
        of filter: [UInt8], _ range: Range<Int>, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        filter.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    private func value(at node: UInt32) -> UInt32? {
        let value = tree[node].value
        return value == noIndex ? nil : value
    }

    private func beginsWithDollar(_ node: TopicTree.Node) -> Bool {
        node.level.withBytes { $0.first == 0x24 }
    }

    private mutating func drop(_ record: UInt32) {
        guard let message = records[record].message else { return }
        byteCount -= message.count
        message.release(in: pool)
        records[record].message = nil
    }
}
