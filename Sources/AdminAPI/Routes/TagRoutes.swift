import BrokerAPI
import Hummingbird
import PlainText

/// Tags of clients, by which pushes choose them.
struct TagRoutes: Sendable {
    let broker: any BrokerControl

    /// `GET` and `PUT /v1/clients/{id}/tags`, `GET /v1/tags` and `GET /v1/tags/{tag}/clients`.
    var routes: [Route] { [show, change, list, clients] }

    /// Tags that one list of a request may hold.
    static let mostInList = TagChange.mostTags

    private static let changeFields = JSONFields.Known(
        ["add", "remove"].map { JSONFields.Name(canonical: $0) })

    private var show: Route {
        Route(method: .get, path: "/v1/clients/{id}/tags", access: .reading(.refused)) {
            request throws(Problem) in
            let clientID = try Self.clientID(of: request)
            let tags = try await broker.ask(ShowTags(clientID: clientID))
            return try Response.json(ClientTags(clientID: clientID, tags: tags))
        }
    }

    private var change: Route {
        Route(
            method: .put, path: "/v1/clients/{id}/tags",
            access: .scope(.publish, topics: .refused, rate: .requests), body: .json
        ) { request throws(Problem) in
            let clientID = try Self.clientID(of: request)
            let fields = try JSONFields(try request.json(), known: Self.changeFields)
            let added = try fields.tags("add")
            let removed = try fields.tags("remove")
            guard !added.isEmpty || !removed.isEmpty else {
                throw Problem(
                    .invalidField, "There is no tag in add or remove.", field: "add",
                    fix: "Give the tags to add as {\"add\": [\"store-17\"]}, and those to remove.")
            }
            if let both = added.first(where: { removed.contains($0) }) {
                throw fields.wrong(
                    "remove", "holds the tag \"\(both.text.visible())\", and so does add",
                    fix: "Give it in one of them.")
            }
            let outcome = try await broker.ask(
                ChangeTags(
                    clientID: clientID, add: added.map(\.text), remove: removed.map(\.text)))
            switch outcome {
            case .changed(let tags):
                return try Response.json(ClientTags(clientID: clientID, tags: tags))
            case .tooManyTags: throw Problem.tooManyTags(clientID)
            case .full: throw Problem.tagsFull
            }
        }
    }

    private var list: Route {
        Route(
            method: .get, path: "/v1/tags", access: .reading(.refused), query: ["limit", "cursor"]
        ) { request throws(Problem) in
            let (tags, next) = try await request.query.gather {
                place, limit throws(Problem) -> ([TagSummary], String?) in
                let page = try await broker.ask(ListTags(from: place, limit: limit))
                return (page.tags, page.next)
            }
            return try Response.json(TagPage(tags: tags, next: next))
        }
    }

    private var clients: Route {
        Route(
            method: .get, path: "/v1/tags/{tag}/clients", access: .reading(.refused),
            query: ["limit", "cursor"]
        ) { request throws(Problem) in
            let tag = try TagText(request.parameter("tag"), field: "tag").text
            let (clients, next) = try await request.query.gather {
                place, limit throws(Problem) -> ([String], String?) in
                let page = try await broker.ask(
                    ListTaggedClients(tag: tag, from: place, limit: limit))
                return (page.clients, page.next)
            }
            return try Response.json(TaggedClientPage(clients: clients, next: next))
        }
    }

    private static func clientID(of request: RouteRequest) throws(Problem) -> String {
        let text = request.parameter("id")
        _ = try ClientIDText(text, field: "id")
        return text
    }
}

extension JSONFields {
    /// Some tags, each once; none without the member.
    func tags(_ name: String) throws(Problem) -> [TagText] {
        let texts = try strings(name) ?? []
        guard texts.count <= TagRoutes.mostInList else {
            throw wrong(
                name, "holds \(texts.count) tags; it may hold \(TagRoutes.mostInList)",
                fix: "Give fewer; a client has at most \(TagChange.mostTags).")
        }
        return try TagText.list(texts, field: path + name)
    }
}

extension Problem {
    fileprivate static func tooManyTags(_ clientID: String) -> Problem {
        Problem(
            .tooManyTags,
            "The client \"\(clientID.visible())\" would have more than \(TagChange.mostTags) tags; "
                + "nothing was changed.",
            field: "add", fix: "Remove some in the same request.")
    }

    fileprivate static let tagsFull = Problem(
        .tagsFull,
        "The tags of all clients would take more than limits.tag_bytes; nothing was "
            + "changed.",
        field: "add", fix: "Remove tags that are not needed, or raise limits.tag_bytes.")
}
