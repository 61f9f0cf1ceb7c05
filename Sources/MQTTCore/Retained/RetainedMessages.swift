import MQTTCodec
import Structures

/// The retained message of each topic, found by topic filter in slices.
///
/// Retained messages belong to no session and outlive all sessions [MQTT-3.1.2-7]. While any cursor
/// is open, topics that lose their message stay in the tree, so that no cursor stands on a removed
/// node.
public struct RetainedMessages: ~Copyable {
    struct Record: BitwiseCopyable {
        var message: Message?
    }

    private(set) var tree: TopicTree
    private var records = Slab<Record>()
    private let pool: BytePool
    private var openCursors = 0
    /// Nodes of topics without a message, to be removed once the last cursor has ended.
    private var prunable: Set<UInt32> = []
    /// Bytes of all messages, each with its packet header.
    public private(set) var byteCount = 0
    /// The number of topics, where a topic of more than eight levels counts once for every eight
    /// levels or part of eight. Each level is a node of the tree and takes memory.
    public private(set) var weight = 0

    public init(hash: KeyedHash, pool: BytePool) {
        tree = TopicTree(hash: hash, pool: pool)
        self.pool = pool
    }

    public var count: Int { records.count }

    /// Keeps a message for its topic, in place of the former one [MQTT-3.3.1-5], and adds a
    /// reference to it. A message without payload is not kept and removes the former one
    /// [MQTT-3.3.1-10] [MQTT-3.3.1-11].
    public mutating func update(_ message: Message) {
        guard message.payload.count > 0 else {
            remove(message.topic)
            return
        }
        message.retainReference()
        byteCount += message.count
        let node = tree.insert(message.topic)
        let record = tree[node].value
        if record != noIndex {
            drop(record)
            records[record].message = message
        } else {
            weight += TopicLevels.weight(of: message.topic)
            tree.setValue(records.insert(Record(message: message)), at: node)
        }
    }

    /// Bytes of a topic's retained message; `nil` when it has none.
    public func byteCount(of topic: UnsafeRawBufferPointer) -> Int? {
        guard let node = tree.find(topic), tree[node].value != noIndex else { return nil }
        return records[tree[node].value].message?.count
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
        if openCursors == 0 { tree.prune(node) } else { prunable.insert(node) }
        return true
    }

    /// Begins a walk over the messages that a filter matches. The caller ends it once with
    /// ``end(_:)``.
    public mutating func cursor(_ filter: UnsafeRawBufferPointer) -> RetainedCursor {
        openCursors += 1
        return RetainedCursor(filter: [UInt8](filter), root: TopicTree.root)
    }

    /// Ends a walk; the last one to end also removes the nodes that waited for it.
    public mutating func end(_ cursor: consuming RetainedCursor) {
        _ = consume cursor
        openCursors -= 1
        guard openCursors == 0 else { return }
        // Removing one node may already have removed another.
        for node in prunable { tree.prune(node) }
        prunable.removeAll()
    }

    /// Returns the next matching message, or `.paused` when `steps` has reached 0. Each step looks
    /// at one node and lowers `steps` by one. The message is borrowed and valid until the next
    /// change.
    public func next(_ cursor: inout RetainedCursor, steps: inout Int) -> RetainedCursor.Step {
        while let frame = cursor.popFrame() {
            guard steps > 0 else {
                cursor.push(frame)
                return .paused
            }
            steps -= 1
            if let record = visit(frame, &cursor), let message = records[record].message {
                return .message(message)
            }
        }
        return .finished
    }

    /// Compares one node with one level of the filter. Pushes the nodes to visit next and returns a
    /// matching record.
    private func visit(_ frame: RetainedCursor.Frame, _ cursor: inout RetainedCursor) -> UInt32? {
        switch frame {
        case .node(let index, let depth):
            guard depth < cursor.levelCount else { return value(at: index) }
            // Wildcards at the first level do not match topics that begin with $ [MQTT-4.7.2-1].
            switch cursor.level(depth) {
            case .multiLevel:
                cursor.push(.descendants(of: tree[index].firstChild, skipsDollar: depth == 0))
                return depth > 0 ? value(at: index) : nil
            case .singleLevel:
                cursor.push(
                    .siblings(tree[index].firstChild, depth: depth + 1, skipsDollar: depth == 0))
            case .exact(let range):
                let child = cursor.filter.withUnsafeBytes { bytes in
                    tree.child(of: index, UnsafeRawBufferPointer(rebasing: bytes[range]))
                }
                if let child { cursor.push(.node(child, depth: depth + 1)) }
            }
            return nil
        case .siblings(let index, let depth, let skipsDollar):
            guard index != noIndex else { return nil }
            let node = tree[index]
            cursor.push(.siblings(node.siblings.next, depth: depth, skipsDollar: skipsDollar))
            if !(skipsDollar && beginsWithDollar(node)) { cursor.push(.node(index, depth: depth)) }
            return nil
        case .descendants(let index, let skipsDollar):
            guard index != noIndex else { return nil }
            let node = tree[index]
            cursor.push(.descendants(of: node.siblings.next, skipsDollar: skipsDollar))
            guard !(skipsDollar && beginsWithDollar(node)) else { return nil }
            cursor.push(.descendants(of: node.firstChild, skipsDollar: false))
            return value(at: index)
        }
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

/// The state of one walk over retained messages; it stays valid while messages are added and
/// removed.
public struct RetainedCursor: Sendable {
    public enum Step {
        case message(Message)
        /// The steps of this turn are used up; the walk goes on in a later turn.
        case paused
        case finished
    }

    enum Frame: Sendable {
        case node(UInt32, depth: Int)
        /// A node and its later siblings, all compared with the filter's level at this depth.
        case siblings(UInt32, depth: Int, skipsDollar: Bool)
        /// A node, its later siblings, and all nodes below them.
        case descendants(of: UInt32, skipsDollar: Bool)
    }

    enum Level: Sendable {
        case exact(Range<Int>)
        case singleLevel
        case multiLevel
    }

    public let filter: [UInt8]
    private let levels: [Level]
    private var frames: [Frame]

    init(filter: [UInt8], root: UInt32) {
        self.filter = filter
        var levels: [Level] = []
        var start = 0
        for end in 0...filter.count
        where end == filter.count || filter[end] == TopicTree.separator {
            switch filter[start..<end] {
            case [0x2B]: levels.append(.singleLevel)
            case [0x23]: levels.append(.multiLevel)
            default: levels.append(.exact(start..<end))
            }
            start = end + 1
        }
        self.levels = levels
        frames = [.node(root, depth: 0)]
    }

    var levelCount: Int { levels.count }
    func level(_ depth: Int) -> Level { levels[depth] }
    mutating func push(_ frame: Frame) { frames.append(frame) }
    mutating func popFrame() -> Frame? { frames.popLast() }
}
