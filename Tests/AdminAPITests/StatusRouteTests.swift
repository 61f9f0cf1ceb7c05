import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("Status and health")
struct StatusRouteTests {
    @Test("health needs no token and no data plane")
    func health() async throws {
        try await TestServer.run(StubBroker { $0.unavailable = .overloaded }) { server in
            let response = try server.request("GET", "/healthz", token: nil)
            #expect(response.status == 200)
            #expect(
                try response.json(HealthModel.self) == HealthModel(status: "ok", version: "1.2.3"))
        }
    }

    @Test("status is the data plane's own")
    func status() async throws {
        try await TestServer.run { server in
            let response = try server.request("GET", "/v1/status")
            #expect(response.status == 200)
            #expect(try response.json(BrokerStatus.self) == StubBroker.status)
        }
    }

    @Test("HEAD is GET without the body", arguments: ["/healthz", "/v1/status"])
    func head(path: String) async throws {
        try await TestServer.run { server in
            let get = try server.request("GET", path)
            let connection = try server.connect()
            try connection.send(TestServer.head("HEAD", path))
            let head = try connection.readResponse(toHead: true)
            #expect(head.status == 200)
            #expect(head["Content-Length"] == get["Content-Length"])
            // The next bytes are another response and no body.
            try connection.send(TestServer.head("GET", "/healthz"))
            #expect(try connection.readResponse().status == 200)
        }
    }
}
