import BrokerAPI

extension AdminClient {
    /// Bans in force, at most so many.
    func bans(limit: Int) async throws(CommandFailure) -> BanList {
        let (bans, next) = try await gather(["v1", "bans"], limit: limit) { (page: BanList) in
            (page.bans, page.next)
        }
        return BanList(bans: bans, next: next)
    }

    /// Shuts somebody out, and closes their connections.
    func ban(_ order: BanOrder) async throws(CommandFailure) -> Answer<BanCreated> {
        try await send(.post, ["v1", "bans"], json: order)
    }

    func lift(ban id: String) async throws(CommandFailure) -> Answer<BanLifted> {
        try await delete(["v1", "bans", id])
    }
}

/// Body of `POST /v1/bans`.
struct BanOrder: Encodable, Sendable {
    var clientID: String?
    var userName: String?
    var address: String?
    /// `nil` until it is lifted.
    var seconds: Int64?
    var reason: String?

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case userName = "user_name"
        case address
        case seconds = "for_s"
        case reason
    }
}
