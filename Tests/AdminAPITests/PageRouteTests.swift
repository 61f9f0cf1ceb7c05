import BrokerAPI
import Testing

@testable import AdminAPI

@Suite("The operator's page")
struct PageRouteTests {
    private static let files = [
        ("/ui", "text/html; charset=utf-8"), ("/ui/", "text/html; charset=utf-8"),
        ("/ui/page.css", "text/css; charset=utf-8"),
        ("/ui/page.js", "text/javascript; charset=utf-8"),
        ("/ui/tail.js", "text/javascript; charset=utf-8"),
        ("/ui/mqtt.js", "text/javascript; charset=utf-8"),
        ("/ui/text.js", "text/javascript; charset=utf-8"),
    ]

    @Test("its files need no token, and may load and call nothing but what is ours")
    func served() async throws {
        try await TestServer.run { server in
            for (path, type) in Self.files {
                let response = try server.request("GET", path, token: nil)
                #expect(response.status == 200, "\(path)")
                #expect(response["Content-Type"] == type)
                #expect(
                    response["Content-Security-Policy"]
                        == "default-src 'none'; script-src 'self'; style-src 'self'; "
                        + "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                        + "form-action 'none'")
                #expect(response["X-Content-Type-Options"] == "nosniff")
                #expect(response["Cache-Control"] == "no-store")
                #expect(response["Referrer-Policy"] == "no-referrer")
                #expect(response["Cross-Origin-Resource-Policy"] == "same-origin")
                #expect(response["Set-Cookie"] == nil)
                #expect(response.body.count > 1_000)
                let head = try server.request("HEAD", path, token: nil)
                #expect(head.status == 200)
                #expect(head["Content-Length"] == "\(response.body.count)")
            }
            #expect(try server.request("POST", "/ui/", body: []).status == 405)
            #expect(try server.request("GET", "/ui/page.html", token: nil).status == 404)
            #expect(try server.request("GET", "/ui/../admin.token", token: nil).status == 404)
        }
    }

    @Test("nothing in the files is from elsewhere, runs in line, or takes text for markup")
    func contents() async throws {
        try await TestServer.run { server in
            let document = try server.request("GET", "/ui/", token: nil).text
            let style = try server.request("GET", "/ui/page.css", token: nil).text
            let scripts = try Self.scripts(of: server)
            for text in [document, style] + scripts {
                for forbidden in ["http:", "https:", "@import", "url("] {
                    #expect(!text.contains(forbidden), "\(forbidden)")
                }
            }
            for forbidden in ["style=", "onclick", "onload", "<script>", "<style"] {
                #expect(!document.contains(forbidden), "\(forbidden)")
            }
            for forbidden in [
                "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                "localStorage", "sessionStorage", "cookie", "Function(", ".style",
            ] {
                for script in scripts { #expect(!script.contains(forbidden), "\(forbidden)") }
            }
        }
    }

    private static func scripts(of server: TestServer) throws -> [String] {
        try files.map(\.0).filter { $0.hasSuffix(".js") }.map {
            try server.request("GET", $0, token: nil).text
        }
    }

    private static let listeners = [
        ListenerModel(address: "0.0.0.0:1883", tls: false),
        ListenerModel(
            address: "0.0.0.0:8083", tls: false,
            webSocket: .init(path: "/mqtt", origins: ["https://a.example"])),
        ListenerModel(
            address: "[::]:8084", tls: true, webSocket: .init(path: "/mqtt", origins: [])),
    ]

    @Test(
        "it may connect to the listeners of WebSocket at its own host, if a policy can name that",
        arguments: [
            ("localhost:8080", "localhost"), ("192.0.2.7", "192.0.2.7"),
            ("Broker-1.example.org:80", "Broker-1.example.org"),
            ("[::1]:8080", nil), ("a;script-src", nil), ("*", nil), ("*.example.org", nil),
            ("a'b", nil), ("a,b", nil), ("a_b", nil), ("a%2Fb", nil),
            (String(repeating: "a", count: 254), nil),
        ] as [(String, String?)])
    func policy(host: String, name: String?) throws {
        let hostName = try HostPolicy.any.check(host: host, repeated: false, origin: nil)
        let policy = PageRoutes(isServed: true, listeners: Self.listeners).policy(at: hostName)
        let sources = name.map { " ws://\($0):8083 wss://\($0):8084" } ?? ""
        #expect(policy.contains("; connect-src 'self'\(sources); frame-ancestors"))
        #expect(policy.split(separator: ";").count == 7)
    }

    @Test("the listeners are listed as they were opened")
    func listenerList() async throws {
        try await TestServer.run(with: .init { $0.listeners = Self.listeners }) { server in
            let response = try server.request("GET", "/v1/listeners")
            #expect(
                response.text == """
                    {"listeners":[{"address":"0.0.0.0:1883","tls":false},\
                    {"address":"0.0.0.0:8083","tls":false,"websocket":\
                    {"origins":["https://a.example"],"path":"/mqtt"}},\
                    {"address":"[::]:8084","tls":true,"websocket":{"origins":[],"path":"/mqtt"}}]}

                    """)
        }
    }

    @Test("every element that a script names is in the page")
    func elements() async throws {
        try await TestServer.run { server in
            let document = try server.request("GET", "/ui/", token: nil).text
            let script = try Self.scripts(of: server).joined()
            let named = script.matches(of: /(?:byID|put)\("([a-z-]+)"/).map { String($0.1) }
            #expect(named.count > 50)
            for id in Set(named) { #expect(document.contains("id=\"\(id)\""), "\(id)") }
        }
    }

    @Test("switched off it is not there, and the answer says how to switch it on")
    func off() async throws {
        try await TestServer.run(with: .init { $0.servesPage = false }) { server in
            for (path, _) in Self.files {
                let problem = try server.request("GET", path, token: nil).problem()
                #expect(problem.status == 404)
                #expect(problem.fix.contains("admin.page: on"))
            }
            #expect(try server.request("GET", "/v1/status").status == 200)
        }
    }
}
