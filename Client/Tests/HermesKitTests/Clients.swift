import HermesKit

extension HermesClient {
    /// A client of a broker without TLS.
    static func of(
        _ broker: TestBroker, id: String = "phone", storage: Storage = .none,
        credentials: Credentials = .none
    ) throws -> HermesClient {
        var configuration = Configuration(
            .plain("127.0.0.1", port: broker.port), clientID: id, credentials: credentials,
            storage: storage)
        configuration.sendsReports = false
        return try HermesClient(configuration)
    }

    /// Returns when the client is connected; true if the session goes on.
    @discardableResult
    func connected() async throws -> Bool {
        for await state in states {
            if case .connected(let sessionPresent) = state { return sessionPresent }
        }
        throw TestBroker.Failure(reason: "the states ended before a connection")
    }

    /// The next deliveries, acknowledged.
    func take(_ count: Int) async -> [Delivery] {
        var taken: [Delivery] = []
        for await delivery in deliveries {
            delivery.acknowledge()
            taken.append(delivery)
            if taken.count == count { break }
        }
        return taken
    }
}

extension HermesClient.ReceivedMessage {
    var text: String { String(decoding: payload, as: UTF8.self) }
}
