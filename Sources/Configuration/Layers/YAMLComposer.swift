/// Builds the tree of a YAML document from its events.
///
/// An alias becomes the node of its anchor, with the anchor's line.
struct YAMLComposer: ~Copyable {
    private let events: YAMLEvents
    private var anchors: [String: YAMLNode] = [:]
    private var aliasCount = 0

    init(events: consuming YAMLEvents) {
        self.events = events
    }

    /// Reads the whole text; `nil` for an empty one, an error for more than one document.
    mutating func root() throws(YAMLDocument.SyntaxError) -> YAMLNode? {
        _ = try events.next()
        guard try events.next().kind != .streamEnd else { return nil }
        let root = try node(events.next(), depth: 1)
        _ = try events.next()
        let end = try events.next()
        guard end.kind == .streamEnd else {
            throw Self.mistake("but found another document", at: end)
        }
        return root
    }

    private mutating func node(
        _ first: YAMLEvents.Event, depth: Int
    ) throws(YAMLDocument.SyntaxError) -> YAMLNode {
        guard depth <= YAMLDocument.maximumDepth else {
            throw YAMLDocument.SyntaxError(
                line: first.line,
                complaint: "nests more than \(YAMLDocument.maximumDepth) levels deep",
                cure: "Close what is open: no setting needs so many levels.")
        }
        let content: YAMLNode.Content
        switch first.kind {
        case .alias: return try repeatedNode(first)
        case .scalar(let text, let isPlain): content = .scalar(text, isPlain: isPlain)
        case .sequenceStart:
            var items: [YAMLNode] = []
            while let event = try nextInside() { items.append(try node(event, depth: depth + 1)) }
            content = .sequence(items)
        case .mappingStart:
            var entries: [YAMLNode.Entry] = []
            while let event = try nextInside() {
                let key = try node(event, depth: depth + 1)
                let value = try node(events.next(), depth: depth + 1)
                entries.append(YAMLNode.Entry(key: key, value: value))
            }
            try Self.markRepeatedKeys(of: &entries)
            content = .mapping(entries)
        case .end, .streamEnd, .other: throw Self.mistake("a value is missing", at: first)
        }
        let node = YAMLNode(content: content, line: first.line, isAnchored: first.anchor != nil)
        if let anchor = first.anchor { anchors[anchor] = node }
        return node
    }

    /// The next event of a sequence or mapping; `nil` at its end.
    private func nextInside() throws(YAMLDocument.SyntaxError) -> YAMLEvents.Event? {
        let event = try events.next()
        return event.kind == .end ? nil : event
    }

    private mutating func repeatedNode(
        _ alias: YAMLEvents.Event
    ) throws(YAMLDocument.SyntaxError) -> YAMLNode {
        aliasCount += 1
        guard aliasCount <= YAMLDocument.maximumAliases else {
            throw YAMLDocument.SyntaxError(
                line: alias.line,
                complaint: "holds more than \(YAMLDocument.maximumAliases) aliases",
                cure: "Write the values out.")
        }
        guard let node = alias.anchor.flatMap({ anchors[$0] }) else {
            throw Self.mistake("found undefined alias", at: alias)
        }
        return node
    }

    /// Marks entries whose key occurs again later. Keys that are not text are reported elsewhere.
    private static func markRepeatedKeys(
        of entries: inout [YAMLNode.Entry]
    ) throws(YAMLDocument.SyntaxError) {
        var last: [String: YAMLNode] = [:]
        for index in entries.indices.reversed() {
            let key = entries[index].key
            guard let name = key.text else { continue }
            guard let later = last[name] else {
                last[name] = key
                continue
            }
            // An alias carries its anchor's line, so the line of the repeated key is unknown.
            guard !later.isAnchored else {
                throw YAMLDocument.SyntaxError(
                    line: key.line, complaint: "the key \(quoted(name)) is given more than once",
                    cure: "Keep one of them.")
            }
            entries[index].lineOfLast = later.line
        }
    }

    private static func mistake(
        _ problem: String, at event: YAMLEvents.Event
    ) -> YAMLDocument.SyntaxError {
        YAMLDocument.SyntaxError(problem, line: event.line, column: event.column)
    }
}
