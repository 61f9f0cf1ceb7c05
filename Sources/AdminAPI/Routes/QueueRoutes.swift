import AdminModel
import Hummingbird

/// What waits for a client, and what is in flight to it.
struct QueueRoutes: Sendable {
    let broker: any BrokerControl

    /// `GET` and `DELETE /v1/clients/{id}/queue`.
    var routes: [Route] { [show, drop] }

    private var show: Route {
        Route(
            method: .get, path: "/v1/clients/{id}/queue", access: .scope(.read),
            query: ["limit", "cursor"]
        ) { request throws(Problem) in
            var query = QueueQuery(clientID: request.parameter("id"))
            if let limit = try request.query.integer("limit", in: 1...1000) {
                query.limit = Int(limit)
            }
            if let cursor = try request.query.integer("cursor", in: 0...Int64.max) {
                query.from = UInt64(cursor)
            }
            let page: QueuePage?
            do throws(BrokerUnavailable) {
                page = try await broker.queue(query)
            } catch {
                throw Problem(error)
            }
            guard let page else { throw Problem.unknownClient(query.clientID) }
            return try Response.json(page)
        }
    }

    private var drop: Route {
        Route(method: .delete, path: "/v1/clients/{id}/queue", access: .scope(.admin)) {
            request throws(Problem) in
            let clientID = request.parameter("id")
            let dropped: Int?
            do throws(BrokerUnavailable) {
                dropped = try await broker.dropQueue(of: clientID)
            } catch {
                throw Problem(error)
            }
            guard let dropped else { throw Problem.unknownClient(clientID) }
            return try Response.json(QueueDropResult(clientID: clientID, dropped: dropped))
        }
    }
}
