import AdminModel
import Testing

@testable import AdminAPI

@Suite("POST /v1/publish")
struct PublishRouteTests {
    @Test("the body reaches the data plane byte for byte, with the defaults")
    func rawBody() async throws {
        try await TestServer.run { server in
            let body: [UInt8] = [0, 1, 0xFF, 0x0A, 0x0D, 0x80]
            let response = try server.request(
                "POST", "/v1/publish?topic=a/b%20c", body: body)
            #expect(response.status == 200)
            #expect(response["Content-Type"] == "application/json")
            #expect(
                server.broker.publications == [
                    Publication(topic: Array("a/b c".utf8), payload: body, qos: 1, retain: false)
                ])
            let result = try response.json(PublishResult.self)
            #expect(result.messageID.utf8.count == 36)
            #expect(
                result
                    == PublishResult(
                        messageID: result.messageID, durability: "none", matched: 3, online: 2,
                        queued: 1, dropped: 0, duplicate: false))
        }
    }
}
