import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("/v1/config")
struct ConfigurationRouteTests {
    private func change(_ server: TestServer, _ json: String) throws -> RawResponse {
        try server.request(
            "PATCH", "/v1/config", headers: ["Content-Type: application/json"],
            body: Array(json.utf8))
    }

    @Test("keys are listed, changed, and given back")
    func changes() async throws {
        try await TestServer.run { server in
            let list = try server.request("GET", "/v1/config").json(ConfiguredSettings.self)
            #expect(list.settings.map(\.key) == ["data_directory", "limits.queue_messages"])
            for (value, expected) in [("5", "5"), ("\"7\"", "7"), ("null", "1000")] {
                let changed = try change(server, "{\"limits.queue_messages\": \(value)}")
                #expect(changed.status == 200)
                let settings = try changed.json(ConfiguredSettings.self).settings
                #expect(settings.map(\.value) == [expected])
            }
        }
    }

    @Test(
        "what cannot be changed is refused, and nothing is changed",
        arguments: [
            #"{"limits.queue_messages": 5, "data_directory": "x"}"#, "{}", "[]", "7",
            #"{"limits.queue_messages": [1]}"#, #"{"limits.queue_messages": {}}"#,
        ])
    func refused(json: String) async throws {
        try await TestServer.run { server in
            let refusal = try change(server, json)
            #expect(refusal.status == 400)
            let list = try server.request("GET", "/v1/config").json(ConfiguredSettings.self)
            #expect(list.settings.last?.value == "1000")
        }
    }
}
