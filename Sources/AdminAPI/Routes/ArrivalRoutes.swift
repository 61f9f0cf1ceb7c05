import BrokerAPI
import Hummingbird

/// What reached the clients, as they report it, and the connections that they lost.
struct ArrivalRoutes: Sendable {
    let broker: any BrokerControl

    /// `GET /v1/arrivals` and `GET /v1/lost-connections`.
    var routes: [Route] { [arrivals, lostConnections] }

    private var arrivals: Route {
        Route(
            method: .get, path: "/v1/arrivals", access: .reading(.refused),
            query: ["client_id", "losses", "limit", "cursor"]
        ) { request throws(Problem) in
            let withLosses = try request.query.bool("losses") ?? false
            if let clientID = request.query["client_id"] {
                _ = try ClientIDText(clientID, field: "client_id")
                // One client needs no page, and what asks for one is checked all the same.
                _ = try request.query.pageSize()
                _ = try request.query.placeCursor(UInt32.self)
                var page = try await broker.ask(ShowArrivals(clientID: clientID))
                if withLosses { page.clients.removeAll { $0.counts.losses == 0 } }
                return try Response.json(page)
            }
            var total = ArrivalTotal()
            let (clients, next) = try await request.query.gather {
                place, limit throws(Problem) -> ([ClientReport], String?) in
                let page = try await broker.ask(
                    ListArrivals(from: place, limit: limit, withLosses: withLosses))
                total = page.total
                return (page.clients, page.next)
            }
            return try Response.json(ArrivalPage(total: total, clients: clients, next: next))
        }
    }

    private var lostConnections: Route {
        Route(method: .get, path: "/v1/lost-connections", access: .reading(.untouched)) {
            _ throws(Problem) in
            let figures: BrokerFigures = try await broker.ask { .figures($0) }
            return try Response.json(LostConnectionList(figures.lostConnections))
        }
    }
}
