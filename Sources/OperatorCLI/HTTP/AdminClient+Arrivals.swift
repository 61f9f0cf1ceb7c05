import BrokerAPI

extension AdminClient {
    /// The sums over all reports, with the report of one client if there is one.
    func arrivals(of clientID: String) async throws(CommandFailure) -> ArrivalPage {
        let answer: Answer<ArrivalPage> = try await get(
            ["v1", "arrivals"], query: [("client_id", clientID)])
        return answer.model
    }

    /// The sums over all reports, with at most so many of them.
    func arrivals(withLosses: Bool, limit: Int) async throws(CommandFailure) -> ArrivalPage {
        var total = ArrivalTotal()
        let (clients, next) = try await gather(
            ["v1", "arrivals"], query: withLosses ? [("losses", "true")] : [], limit: limit
        ) { (page: ArrivalPage) in
            total = page.total
            return (page.clients, page.next)
        }
        return ArrivalPage(total: total, clients: clients, next: next)
    }

    func lostConnections() async throws(CommandFailure) -> Answer<LostConnectionList> {
        try await get(["v1", "lost-connections"])
    }
}
