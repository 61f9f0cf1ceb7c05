import Foundation
import HermesKit

/// What this installation of the app connects with.
struct Settings {
    var server: HermesClient.Server
    var clientID: String
    var salesID: String
    var storage: URL

    /// Replace host and pins by those of your broker, and the sales number by that of whoever has
    /// logged in.
    static func ofThisDevice() throws -> Settings {
        var folder = try FileManager.default.url(
            for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil,
            create: true)
        // A session restored on another device would be two clients with one identifier.
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        try folder.setResourceValues(values)
        return Settings(
            server: .tls(
                "push.example",
                pins: [
                    try .init("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
                    try .init("sha256/AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="),
                ]),
            clientID: identifier(), salesID: "7",
            storage: folder.appendingPathComponent("hermes.log"))
    }

    /// Names this installation for good.
    private static func identifier() -> String {
        let key = "hermes-client-id"
        if let known = UserDefaults.standard.string(forKey: key) { return known }
        let made = "phone-" + UUID().uuidString
        UserDefaults.standard.set(made, forKey: key)
        return made
    }
}

/// The app's connection: saves what comes, and acknowledges what is saved.
@MainActor
final class Channel {
    let client: HermesClient
    let salesID: String
    let orders = OrderStore()

    init(_ settings: Settings) throws {
        salesID = settings.salesID
        var configuration = HermesClient.Configuration(
            settings.server, clientID: settings.clientID,
            credentials: .refreshed { try await Login.credentials() },
            storage: .file(settings.storage.path))
        configuration.heartbeat = .smart
        configuration.log = { print("hermes:", $0) }
        client = try HermesClient(configuration)
        let (client, orders, filter) = (client, orders, "orders/\(salesID)/#")
        Task {
            for await delivery in client.deliveries {
                // Saved first: a kill between the two brings the message again, and a save of the same
                // status changes nothing.
                if let status = delivery.orderStatus { await orders.save(status) }
                delivery.acknowledge()
            }
        }
        // Kept and renewed by the client; here it is only said what is wanted.
        Task { try await client.subscribe(filter, qos: .atLeastOnce) }
    }

    /// Tells the office that somebody has looked at an order; reaches it also from a tunnel.
    func tellSeen(_ order: String) async throws {
        _ = try await client.publish(.init(topic: "phones/\(salesID)/seen", text: order))
    }
}

/// Where the statuses are kept; an app has a database here.
actor OrderStore {
    private var statuses: [String: HermesClient.OrderStatusUpdate] = [:]

    func save(_ status: HermesClient.OrderStatusUpdate) {
        // An older one may come after a newer one of another channel.
        if let known = statuses[status.orderID],
            known.updatedAtMilliseconds > status.updatedAtMilliseconds
        {
            return
        }
        statuses[status.orderID] = status
    }

    /// The statuses, the newest first.
    var newest: [HermesClient.OrderStatusUpdate] {
        statuses.values.sorted { $0.updatedAtMilliseconds > $1.updatedAtMilliseconds }
    }
}

/// The app's login; the broker takes its token as a password.
enum Login {
    static func credentials() async throws -> HermesClient.Credentials.Pair? {
        // Ask your own service here; nil if nobody is logged in any more.
        .init(userName: "7", password: "token")
    }
}
