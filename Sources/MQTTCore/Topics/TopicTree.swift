import Structures

/// A tree of topic levels as flat records; one hash table holds the edges of all nodes.
///
/// A node takes 48 bytes and its edge 11 to 21. The text of a level of up to 12 bytes is stored in
/// the node. Levels are compared byte by byte, without normalisation [MQTT-4.7.3-4]. ``prune(_:)``
/// removes nodes without value and children.
struct TopicTree: ~Copyable {
    struct Node: BitwiseCopyable {
        var level: CompactBytes
        var parent: UInt32
        var firstChild: UInt32 = noIndex
        var siblings = ListLinks()
        /// The children `+` and `#`, which matching tries beside the child with the level's text.
        var singleLevelChild: UInt32 = noIndex
        var multiLevelChild: UInt32 = noIndex
        var hash: UInt32
        /// An index that the tree's owner keeps at this node; ``noIndex`` for none.
        var value: UInt32 = noIndex
    }

    private enum Siblings: ListField {
        static subscript(node: UnsafeMutablePointer<Node>) -> ListLinks {
            get { node.pointee.siblings }
            set { node.pointee.siblings = newValue }
        }
    }

    static var root: UInt32 { 0 }
    static var separator: UInt8 { 0x2F }

    private(set) var nodes = Slab<Node>()
    private var edges = HashIndex()
    private let hash: KeyedHash
    private let pool: BytePool

    init(hash: KeyedHash, pool: BytePool) {
        self.hash = hash
        self.pool = pool
        _ = nodes.insert(Node(level: CompactBytes(), parent: noIndex, hash: 0))
    }

    /// Number of nodes, the root included.
    var count: Int { nodes.count }

    subscript(node: UInt32) -> Node {
        get { nodes[node] }
    }

    mutating func setValue(_ value: UInt32, at node: UInt32) { nodes[node].value = value }

    /// The child with exactly this text; `nil` when there is none.
    func child(of parent: UInt32, _ level: UnsafeRawBufferPointer) -> UInt32? {
        edges.find(hash(level, salt: UInt64(parent))) { candidate in
            nodes[candidate].parent == parent && nodes[candidate].level.equals(level)
        }
    }

    /// The node of a whole topic name or filter; `nil` when there is none.
    func find(_ path: UnsafeRawBufferPointer) -> UInt32? {
        var node = Self.root
        var levels = TopicLevels(path)
        while let level = levels.next() {
            guard let next = child(of: node, level) else { return nil }
            node = next
        }
        return node
    }

    /// The node of a whole topic name or filter; missing nodes are added.
    mutating func insert(_ path: UnsafeRawBufferPointer) -> UInt32 {
        var node = Self.root
        var levels = TopicLevels(path)
        while let level = levels.next() {
            node = child(of: node, level) ?? addChild(of: node, level)
        }
        return node
    }

    /// Removes a node without value and children, then its ancestors as long as the same holds for
    /// them. Does nothing for a node that was already removed and whose index is still free.
    mutating func prune(_ start: UInt32) {
        var node = start
        while isUnused(node) { node = removeUnused(node) }
    }

    /// True for a node without value and children; false for the root and for removed nodes.
    func isUnused(_ node: UInt32) -> Bool {
        nodes[node].parent != noIndex && nodes[node].value == noIndex
            && nodes[node].firstChild == noIndex
    }

    /// Removes a node for which ``isUnused(_:)`` is true, and returns its parent.
    mutating func removeUnused(_ node: UInt32) -> UInt32 {
        let removed = nodes[node]
        var children = IntrusiveList<Siblings>(first: nodes[removed.parent].firstChild)
        children.remove(node, in: nodes)
        nodes[removed.parent].firstChild = children.first
        if nodes[removed.parent].singleLevelChild == node {
            nodes[removed.parent].singleLevelChild = noIndex
        }
        if nodes[removed.parent].multiLevelChild == node {
            nodes[removed.parent].multiLevelChild = noIndex
        }
        edges.remove(UInt64(removed.hash), node)
        removed.level.destroy(in: pool)
        nodes[node].parent = noIndex
        nodes.remove(node)
        return removed.parent
    }

    /// The node behind this one and all nodes below it, in the order of siblings; the root behind
    /// the last.
    func successor(of start: UInt32) -> UInt32 {
        var node = start
        while node != Self.root {
            let next = nodes[node].siblings.next
            if next != noIndex { return next }
            node = nodes[node].parent
        }
        return Self.root
    }

    /// The number of levels from the root, which has 0.
    func depth(of start: UInt32) -> Int {
        var depth = 0
        var node = start
        while node != Self.root {
            node = nodes[node].parent
            depth += 1
        }
        return depth
    }

    /// The topic name or filter that a node stands for.
    func path(of node: UInt32) -> [UInt8] {
        var levels: [[UInt8]] = []
        var current = node
        while current != Self.root {
            levels.append(nodes[current].level.array)
            current = nodes[current].parent
        }
        return Array(levels.reversed().joined(separator: [Self.separator]))
    }

    /// Writes the topic name or filter that a node stands for, in place of the buffer's content.
    func writePath(of node: UInt32, to path: inout GrowableBuffer<UInt8>) {
        path.removeAll()
        var current = node
        // From the last level to the first, each backwards; then all is turned round.
        while current != Self.root {
            if current != node { path.append(Self.separator) }
            nodes[current].level.withBytes { for byte in $0.reversed() { path.append(byte) } }
            current = nodes[current].parent
        }
        var bytes = path.mutableContents
        bytes.reverse()
    }

    private mutating func addChild(
        of parent: UInt32, _ level: UnsafeRawBufferPointer
    ) -> UInt32 {
        let hash = hash(level, salt: UInt64(parent))
        let index = nodes.insert(
            Node(
                level: CompactBytes(level, pool: pool), parent: parent,
                hash: UInt32(truncatingIfNeeded: hash)))
        var children = IntrusiveList<Siblings>(first: nodes[parent].firstChild)
        children.prepend(index, in: nodes)
        nodes[parent].firstChild = children.first
        if level.count == 1 {
            if level[0] == 0x2B { nodes[parent].singleLevelChild = index }
            if level[0] == 0x23 { nodes[parent].multiLevelChild = index }
        }
        edges.insert(hash, index)
        return index
    }
}

/// The levels of a topic name or filter, in order. Empty levels count (section 4.7.1.1).
public struct TopicLevels {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    public init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    public mutating func next() -> UnsafeRawBufferPointer? {
        guard offset <= bytes.count else { return nil }
        var end = offset
        while end < bytes.count, bytes[end] != TopicTree.separator { end += 1 }
        defer { offset = end + 1 }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<end])
    }

    /// Where a level begins and ends.
    typealias Bounds = (start: UInt32, end: UInt32)

    /// Writes the bounds of all levels, in place of the buffer's content.
    static func split(_ bytes: UnsafeRawBufferPointer, into levels: inout GrowableBuffer<Bounds>) {
        levels.removeAll()
        var start = 0
        for offset in 0...bytes.count {
            guard offset == bytes.count || bytes[offset] == TopicTree.separator else { continue }
            levels.append((UInt32(start), UInt32(offset)))
            start = offset + 1
        }
    }

    /// The number of levels: separators plus one.
    public static func count(_ bytes: UnsafeRawBufferPointer) -> Int {
        var count = 1
        for byte in bytes where byte == TopicTree.separator { count += 1 }
        return count
    }

    /// The amount that a topic name or filter counts against a limit on their number: one for every
    /// eight levels or part of eight, because each level takes memory and time.
    public static func weight(of bytes: UnsafeRawBufferPointer) -> Int { (count(bytes) + 7) / 8 }

    /// ``weight(of:)`` of a text with so many levels.
    public static func weight(ofLevels count: Int) -> UInt32 { UInt32((count + 7) / 8) }
}
