import AdminModel
import FoundationEssentials
import Testing

@testable import AdminAPI

@Suite("Status, health and the OpenAPI document")
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
            #expect(try response.json(StatusModel.self) == StubBroker.status)
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
            // What follows at once is the next response, not a body.
            try connection.send(TestServer.head("GET", "/healthz"))
            #expect(try connection.readResponse().status == 200)
        }
    }

    @Test("the OpenAPI document describes exactly the routes that exist")
    func openAPIRoutes() async throws {
        let document = try OpenAPI(OpenAPIDocument.text(version: "1"))
        let server = try adminServer()
        var described: Set<String> = []
        for (path, methods) in document.paths {
            for (method, operation) in methods {
                described.insert("\(method.uppercased()) \(path)")
                let route = try #require(
                    server.routes.routes.first {
                        $0.path == path && $0.method.rawValue == method.uppercased()
                    }, "\(method) \(path) is described and does not exist")
                let query = (operation.parameters ?? []).filter { $0.in == "query" }.map(\.name)
                #expect(Set(query) == Set(route.query), "\(path)")
                let inPath = (operation.parameters ?? []).filter { $0.in == "path" }.map(\.name)
                let places = path.split(separator: "/").filter { $0.hasPrefix("{") }
                #expect(Set(inPath) == Set(places.map { String($0.dropFirst().dropLast()) }))
                #expect((operation.requestBody != nil) == (route.body != .none), "\(path)")
                let security: [[String: [String]]] =
                    switch route.access {
                    case .open: []
                    case .scope(let scope): [["token": [scope.rawValue]]]
                    }
                #expect(operation.security == security, "\(path)")
                let refusals = ["401", "403", "429"].filter { operation.responses[$0] != nil }
                #expect(refusals.count == (route.access == .open ? 0 : 3), "\(path)")
            }
        }
        let existing = server.routes.routes.map { "\($0.method.rawValue) \($0.path)" }
        #expect(described == Set(existing))
    }

    @Test("the OpenAPI document names this version and is served without a token")
    func openAPIServed() async throws {
        try await TestServer.run { server in
            let response = try server.request("GET", "/v1/openapi.json", token: nil)
            #expect(response.status == 200)
            #expect(response["Content-Type"] == "application/json")
            let document = try OpenAPI(response.text)
            #expect(document.openapi == "3.1.0")
            #expect(document.info.version == "1.2.3")
        }
    }

    private func adminServer() throws -> AdminServer {
        let token = try AdminToken(TestServer.token, source: "test")
        return try AdminServer(
            configuration: AdminServerConfiguration(token: token, durability: "none", version: "1"),
            broker: StubBroker(), logger: .init(label: "test"))
    }
}

/// As much of an OpenAPI document as the tests look at.
private struct OpenAPI: Decodable {
    struct Info: Decodable { var version: String }
    struct Parameter: Decodable {
        var name: String
        var `in`: String
    }
    struct RequestBody: Decodable {}
    struct Response: Decodable {}
    struct Operation: Decodable {
        var parameters: [Parameter]?
        var requestBody: RequestBody?
        var security: [[String: [String]]]?
        var responses: [String: Response]
    }

    var openapi: String
    var info: Info
    var paths: [String: [String: Operation]]

    init(_ text: String) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(text.utf8))
    }
}
