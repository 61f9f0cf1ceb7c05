import BrokerAPI
import Testing

@testable import AdminAPI

/// Runs a server with the token "bound", which may read, and publish to topics below `orders`.
func withBoundToken(
    _ broker: StubBroker = StubBroker(), _ body: (TestServer, String) async throws -> Void
) async throws {
    try await withTemporaryDirectory { folder in
        let checks = try TokenChecks(path: folder + "/tokens", logger: CapturedLog().logger)
        try await TestServer.run(broker, with: .init { $0.tokens = checks }) { server in
            let made = try server.post(
                "/v1/tokens",
                json: #"{"name":"bound","scopes":["publish","read"],"topics":["orders/#"]}"#)
            try await body(server, try made.json(TokenCreated.self).token)
        }
    }
}
