import Testing

@testable import AdminAPI

@Suite("The operator's page")
struct PageRouteTests {
    private static let files = [
        ("/ui", "text/html; charset=utf-8"), ("/ui/", "text/html; charset=utf-8"),
        ("/ui/page.css", "text/css; charset=utf-8"),
        ("/ui/page.js", "text/javascript; charset=utf-8"),
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
            let script = try server.request("GET", "/ui/page.js", token: nil).text
            for text in [document, style, script] {
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
                #expect(!script.contains(forbidden), "\(forbidden)")
            }
        }
    }

    @Test("every element that the script names is in the page")
    func elements() async throws {
        try await TestServer.run { server in
            let document = try server.request("GET", "/ui/", token: nil).text
            let script = try server.request("GET", "/ui/page.js", token: nil).text
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
