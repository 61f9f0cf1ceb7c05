import BrokerAPI

extension AdminClient {
    /// Tags and how many clients have them, at most so many.
    func tags(limit: Int) async throws(CommandFailure) -> TagPage {
        let (tags, next) = try await gather(["v1", "tags"], limit: limit) { (page: TagPage) in
            (page.tags, page.next)
        }
        return TagPage(tags: tags, next: next)
    }

    /// Clients with a tag, at most so many.
    func clients(tagged tag: String, limit: Int) async throws(CommandFailure) -> TaggedClientPage {
        let (clients, next) = try await gather(["v1", "tags", tag, "clients"], limit: limit) {
            (page: TaggedClientPage) in (page.clients, page.next)
        }
        return TaggedClientPage(clients: clients, next: next)
    }

    func tags(of clientID: String) async throws(CommandFailure) -> Answer<ClientTags> {
        try await get(["v1", "clients", clientID, "tags"])
    }

    /// Returns the client's tags after the change.
    func changeTags(
        of clientID: String, _ change: TagsChange
    ) async throws(CommandFailure) -> Answer<ClientTags> {
        try await send(.put, ["v1", "clients", clientID, "tags"], json: change)
    }
}

/// Body of `PUT /v1/clients/{id}/tags`.
struct TagsChange: Encodable, Sendable {
    let add: [String]
    let remove: [String]
}
