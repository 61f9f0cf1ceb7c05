import Addresses
import BrokerAPI
import Hummingbird
import PlainText

/// Users and addresses that are locked out after wrong passwords.
struct LockoutRoutes: Sendable {
    let broker: any BrokerControl

    /// `GET` and `DELETE /v1/lockouts`.
    var routes: [Route] { [list, clear] }

    private var list: Route {
        Route(method: .get, path: "/v1/lockouts", access: .reading(.refused)) { _ throws(Problem) in
            let lockouts: [Lockout] = try await broker.ask { .lockouts($0) }
            return try Response.json(LockoutList(lockouts: lockouts))
        }
    }

    private var clear: Route {
        Route(
            method: .delete, path: "/v1/lockouts", access: .admin, query: ["address"]
        ) { request throws(Problem) in
            let network = try Self.network(request.query)
            let cleared: Int = try await broker.ask { .clearLockouts(network, $0) }
            return try Response.json(LockoutsCleared(cleared: cleared))
        }
    }

    private static func network(_ query: QueryItems) throws(Problem) -> IPNetwork? {
        guard let text = query["address"] else { return nil }
        guard let network = IPNetwork(text) else {
            throw Problem(
                .invalidQuery,
                "The query parameter address is \"\(text.visible())\", which is neither an address "
                    + "nor a network.",
                field: "address",
                fix: "Give an address such as 192.0.2.7, a network such as 192.0.2.0/24, or none.")
        }
        return network.unmapped
    }
}
