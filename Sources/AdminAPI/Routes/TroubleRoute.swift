import BrokerAPI
import Hummingbird
import PlainText

/// Which clients are in trouble.
struct TroubleRoute: Sendable {
    let broker: any BrokerControl

    /// `GET /v1/troubles`.
    var route: Route {
        Route(
            method: .get, path: "/v1/troubles", access: .reading(.refused),
            query: ["kind", "limit"]
        ) { request throws(Problem) in
            let kind = try Self.kind(request.query["kind"])
            let limit = try request.query.pageSize()
            let found: [ClientTrouble] = try await broker.ask {
                .troubles(kind, limit: limit, $0)
            }
            return try Response.json(TroubleList(troubles: found))
        }
    }

    private static func kind(_ text: String?) throws(Problem) -> ClientEvent.Kind? {
        guard let text else { return nil }
        let kinds = ClientEvent.troubleKinds
        guard let kind = kinds.first(where: { text.hasBytes(of: $0.rawValue) }) else {
            throw Problem(
                .invalidQuery,
                "The query parameter kind is \"\(text.visible())\", which is no kind of trouble.",
                field: "kind",
                fix: "Give \(kinds.map(\.rawValue).joined(separator: ", ")), or none for all.")
        }
        return kind
    }
}
