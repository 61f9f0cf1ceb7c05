import BrokerAPI
import Hummingbird

/// The queue of a client: waiting messages and those in flight.
struct QueueRoutes: Sendable {
    let broker: any BrokerControl

    /// `GET` and `DELETE /v1/clients/{id}/queue`.
    var routes: [Route] { [show, drop] }

    private var show: Route {
        Route(
            method: .get, path: "/v1/clients/{id}/queue", access: .reading(.refused),
            query: ["limit", "cursor"]
        ) { request throws(Problem) in
            var query = QueueQuery(clientID: request.parameter("id"))
            query.limit = try request.query.pageSize()
            if let cursor = try request.query.integer("cursor", in: 0...Int64.max) {
                query.from = UInt64(cursor)
            }
            let page: QueuePage? = try await broker.ask { .queue(query, $0) }
            guard let page else { throw Problem.unknownClient(query.clientID) }
            return try Response.json(page)
        }
    }

    private var drop: Route {
        Route(method: .delete, path: "/v1/clients/{id}/queue", access: .admin) {
            request throws(Problem) in
            let clientID = request.parameter("id")
            guard let dropped = try await dropQueue(of: clientID) else {
                throw Problem.unknownClient(clientID)
            }
            return try Response.json(QueueDropResult(clientID: clientID, dropped: dropped))
        }
    }

    /// Drops messages in parts, up to the last one at the beginning; returns their number, `nil`
    /// for an unknown client.
    private func dropQueue(of clientID: String) async throws(Problem) -> Int? {
        var total = 0
        var bound: UInt64?
        while true {
            let below = bound
            let drop: QueueDrop? = try await broker.ask {
                .dropQueue(clientID: clientID, below: below, $0)
            }
            guard let drop else { return bound == nil ? nil : total }
            total += drop.dropped
            guard drop.hasMore else { return total }
            bound = drop.bound
        }
    }
}
