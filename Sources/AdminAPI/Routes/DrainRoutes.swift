import BrokerAPI
import Hummingbird

/// Moves the clients of the broker elsewhere before maintenance.
struct DrainRoutes: Sendable {
    let broker: any BrokerControl

    /// `GET`, `POST` and `DELETE /v1/drain`.
    var routes: [Route] { [status, start, end] }

    static let fields = JSONFields.Known([
        JSONFields.Name(canonical: "per_second"), JSONFields.Name(canonical: "server_reference"),
    ])

    private var status: Route {
        Route(method: .get, path: "/v1/drain", access: .reading(.untouched)) { _ throws(Problem) in
            let status: DrainStatus = try await broker.ask { .drainStatus($0) }
            return try Response.json(status)
        }
    }

    private var start: Route {
        Route(method: .post, path: "/v1/drain", access: .admin, body: .json) {
            request throws(Problem) in
            let fields = try JSONFields(try request.json(), known: Self.fields)
            let range = Int64(DrainStatus.rates.lowerBound)...Int64(DrainStatus.rates.upperBound)
            let rate = try fields.integer("per_second", in: range)
            let reference = try fields.string("server_reference")
            if let reference, !DrainStatus.isReference(reference) {
                throw Problem(
                    .invalidField,
                    "server_reference has \(reference.utf8.count) bytes or control characters; it takes "
                        + "1 to \(DrainStatus.mostReferenceBytes) bytes without any.",
                    fix: "Name another broker as your clients know it, such as "
                        + "\"mqtt2.example.com:8883\".")
            }
            let status: DrainStatus = try await broker.ask {
                .startDrain(
                    perSecond: rate.map { Int($0) } ?? DrainStatus.defaultPerSecond,
                    serverReference: reference, $0)
            }
            return try Response.json(status)
        }
    }

    private var end: Route {
        Route(method: .delete, path: "/v1/drain", access: .admin) { _ throws(Problem) in
            let end: DrainEnd = try await broker.ask { .endDrain($0) }
            switch end {
            case .ended(let status): return try Response.json(status)
            case .cannotListen(let reason):
                throw Problem(
                    .cannotListen, "The broker is still drained: \(reason).",
                    fix: "End what listens there, and ask again; or restart the broker.")
            }
        }
    }
}
