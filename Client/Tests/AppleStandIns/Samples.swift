import HermesKit

/// What the samples of docs/client.md take for granted of their app.
struct Session: Sendable {
    func pushCredentials() async throws -> HermesClient.Credentials.Pair {
        .init(userName: "u", password: "p")
    }
}

func show(_ state: HermesClient.State) {}

func log(_ event: HermesClient.Event) {}

func save(_ status: HermesClient.OrderStatusUpdate?, _ sequence: UInt64?) {}
