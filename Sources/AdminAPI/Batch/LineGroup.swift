/// What a line of a batch asks for.
protocol BatchItem: Sendable {
    /// Bytes that it takes on its way to the data plane.
    var byteCount: Int { get }
}

/// Lines of a batch that go to the data plane together.
struct LineGroup<Item: BatchItem>: Sendable {
    /// One line that is answered.
    struct Line: Sendable {
        /// Counts from 1.
        var number: Int
        var content: Content
    }

    enum Content: Sendable {
        /// The next of ``items``.
        case item
        case problem(Problem)
    }

    /// Most lines of a group.
    static var maximumLines: Int { 1_024 }
    /// Bytes of items from which on a group takes no more lines.
    static var fullBytes: Int { 1 << 18 }

    var lines: [Line] = []
    var items: [Item] = []
    private var bytes = 0

    var isEmpty: Bool { lines.isEmpty }
    var isFull: Bool { lines.count >= Self.maximumLines || bytes >= Self.fullBytes }

    mutating func append(_ item: Item, line number: Int) {
        lines.append(Line(number: number, content: .item))
        bytes += item.byteCount
        items.append(item)
    }

    mutating func append(_ problem: Problem, line number: Int) {
        lines.append(Line(number: number, content: .problem(problem)))
    }

    /// Adds the lines of a later group, if both together make no more than one.
    mutating func merge(_ later: LineGroup) -> Bool {
        guard lines.count + later.lines.count <= Self.maximumLines,
            bytes + later.bytes <= Self.fullBytes
        else { return false }
        lines += later.lines
        items += later.items
        bytes += later.bytes
        return true
    }
}
