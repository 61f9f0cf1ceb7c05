import BrokerAPI

extension PushTarget {
    /// Clients that a push may name one by one.
    static let mostClients = 10_000
    /// Tags that a push may name.
    static let mostTags = 64

    private static let fields = names("clients", "tags")
    private static let tagFields = names("any", "all", "none")

    /// The field `to`: either client identifiers or tags.
    init(_ body: JSONFields) throws(Problem) {
        guard let fields = try body.object("to", known: Self.fields) else {
            throw body.wrong("to", "is missing", fix: Self.cure)
        }
        let tags = try fields.object("tags", known: Self.tagFields)
        switch (try fields.strings("clients"), tags) {
        case (.some(let texts), nil): self = .clients(try Self.distinct(texts, fields))
        case (nil, .some(let tags)): self = .tags(try TagExpression(tags))
        case (.some, .some):
            throw body.wrong("to", "has both clients and tags", fix: "Give one of them.")
        case (nil, nil):
            throw body.wrong("to", "has neither clients nor tags", fix: Self.cure)
        }
    }

    private static let cure =
        "Add \"to\" with {\"clients\": [\"phone-1\"]} or {\"tags\": {\"any\": [\"store-17\"]}}."

    private static func names(_ names: String...) -> JSONFields.Known {
        JSONFields.Known(names.map { JSONFields.Name(canonical: $0) })
    }

    /// The clients of a list, each once, in its order.
    private static func distinct(
        _ texts: [String], _ fields: JSONFields
    ) throws(Problem) -> [[UInt8]] {
        var clients: [[UInt8]] = []
        var seen = Set<ClientIDText>()
        for text in texts {
            let client = try ClientIDText(text, field: "\(fields.path)clients")
            if seen.insert(client).inserted { clients.append(client.bytes) }
        }
        guard (1...mostClients).contains(clients.count) else {
            throw fields.wrong(
                "clients", "holds \(clients.count) identifiers; it must hold 1 to \(mostClients)",
                fix: "Make several pushes, or give the clients a tag.")
        }
        return clients
    }

    private static func inOrder(_ names: [[UInt8]]) -> [[UInt8]] {
        names.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// Parts for the digest by which a repeat is recognised.
    var digestParts: [[UInt8]] {
        switch self {
        case .clients(let clients): return [Array("clients".utf8)] + Self.inOrder(clients)
        case .tags(let tags):
            // Sets: their order says nothing.
            let lists = [tags.any, tags.all, tags.none].map { Self.inOrder($0) }
            let counts = lists.map { "\($0.count)" }.joined(separator: " ")
            return [Array("tags".utf8), Array(counts.utf8)] + lists.joined()
        }
    }
}

extension TagExpression {
    /// The field `to.tags`.
    fileprivate init(_ fields: JSONFields) throws(Problem) {
        self.init(
            any: try fields.tags("any").map(\.bytes), all: try fields.tags("all").map(\.bytes),
            none: try fields.tags("none").map(\.bytes))
        guard !self.any.isEmpty || !all.isEmpty else {
            throw fields.wrong(
                "any", "and \(fields.path)all are both empty; a push needs one of them",
                fix: "Name the tags that its clients have; none only leaves clients out.")
        }
        let count = self.any.count + all.count + none.count
        guard count <= PushTarget.mostTags else {
            throw fields.wrong(
                "any",
                "and its neighbours hold \(count) tags; they may hold \(PushTarget.mostTags)",
                fix: "Name fewer tags.")
        }
    }
}
