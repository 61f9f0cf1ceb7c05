import Addresses
import BrokerAPI
import Hummingbird
import PlainText

/// Connected clients, and sessions of offline ones.
struct ClientRoutes: Sendable {
    /// UNIX times in milliseconds that any JSON parser reads exactly.
    private static let times: ClosedRange<Int64> = 0...(1 << 53 - 1)

    let broker: any BrokerControl

    /// `GET /v1/clients`, `GET` and `DELETE /v1/clients/{id}`, `GET /v1/clients/{id}/history`,
    /// `DELETE /v1/clients/{id}/session`.
    var routes: [Route] { [list, show, history, disconnect, endSession] }

    private var list: Route {
        Route(
            method: .get, path: "/v1/clients", access: .reading(.refused),
            query: [
                "connected", "prefix", "user_name", "address", "protocol", "before_ms", "from_ms",
                "sort", "limit", "cursor",
            ]
        ) { request throws(Problem) in
            let query = try Self.query(request.query)
            let page: ClientPage = try await broker.ask { .clients(query, $0) }
            return try Response.json(page)
        }
    }

    private static func query(_ items: QueryItems) throws(Problem) -> ClientQuery {
        var query = ClientQuery()
        query.connected = try items.bool("connected")
        query.prefix = items["prefix"]
        query.userName = items["user_name"]
        query.address = try address(items)
        query.protocolVersion = try items.choice("protocol", of: ["3.1", "3.1.1"])
        query.beforeMs = try items.integer("before_ms", in: Self.times)
        query.fromMs = try items.integer("from_ms", in: Self.times)
        let order = try items.choice("sort", of: ClientQuery.Order.allCases.map(\.rawValue))
        query.order = order.flatMap { ClientQuery.Order(rawValue: $0) } ?? .clientID
        query.limit = try items.pageSize()
        query.cursor = try items.listCursor()
        return query
    }

    private static func address(_ items: QueryItems) throws(Problem) -> String? {
        guard let text = items["address"] else { return nil }
        guard IPNetwork(text) != nil else {
            throw Problem(
                .invalidQuery, "The address is \"\(text.visible())\", which is none.",
                field: "address", fix: "Give an address or a network, as 10.1.2.3 or 10.1.0.0/16.")
        }
        return text
    }

    private var show: Route {
        Route(method: .get, path: "/v1/clients/{id}", access: .reading(.refused)) {
            request throws(Problem) in
            try Response.json(try await detail(of: request.parameter("id")))
        }
    }

    private var history: Route {
        Route(method: .get, path: "/v1/clients/{id}/history", access: .reading(.refused)) {
            request throws(Problem) in
            let clientID = request.parameter("id")
            _ = try ClientIDText(clientID, field: "id")
            let history: ClientHistory = try await broker.ask {
                .history(clientID: clientID, $0)
            }
            return try Response.json(history)
        }
    }

    private var disconnect: Route {
        Route(method: .delete, path: "/v1/clients/{id}", access: .admin) {
            request throws(Problem) in
            let clientID = request.parameter("id")
            let disconnected: Bool = try await broker.ask { .disconnect(clientID, $0) }
            // An offline client is fine; an unknown one is an error.
            if !disconnected { _ = try await detail(of: clientID) }
            return try Response.json(
                DisconnectResult(clientID: clientID, disconnected: disconnected))
        }
    }

    private var endSession: Route {
        Route(method: .delete, path: "/v1/clients/{id}/session", access: .admin) {
            request throws(Problem) in
            let clientID = request.parameter("id")
            let ended: Bool = try await broker.ask { .endSession(clientID: clientID, $0) }
            guard ended else { throw Problem.unknownClient(clientID) }
            return Response(status: .noContent)
        }
    }

    private func detail(of clientID: String) async throws(Problem) -> ClientDetail {
        let detail: ClientDetail? = try await broker.ask { .client(clientID, $0) }
        guard let detail else { throw Problem.unknownClient(clientID) }
        return detail
    }
}

extension Problem {
    static func unknownClient(_ clientID: String) -> Problem {
        Problem(
            .clientNotFound,
            "There is neither a connection nor a session of \"\(clientID.visible())\".",
            field: "id", fix: "GET /v1/clients lists those there are.")
    }
}
