import Testing

@testable import OperatorConfiguration

@Suite("WebSocket on a listener")
struct WebSocketSettingTests {
    private static func yaml(_ key: String, _ value: String) -> String {
        "listeners:\n  - protocol: websocket\n    websocket:\n      \(key): \(value)\n"
    }

    @Test("serves /mqtt for no web page, unless told otherwise")
    func initial() throws {
        let listener = try load("listeners:\n  - protocol: websocket\n").listeners[0]
        #expect(listener.transport == .webSocket)
        #expect(listener.webSocket.path == "/mqtt")
        #expect(listener.webSocket.origins.isEmpty)
        #expect(try load("").listeners[0].transport == .mqtt)
    }

    @Test(
        "takes origins as browsers send them, as a text or as a list",
        arguments: [
            ("https://app.example.org", ["https://app.example.org"]),
            ("HTTPS://App.Example.Org", ["https://app.example.org"]),
            (
                "\"http://localhost:3000, https://a.example\"",
                ["http://localhost:3000", "https://a.example"]
            ),
            (
                "[\"http://[::1]:8080\", capacitor://localhost]",
                ["http://[::1]:8080", "capacitor://localhost"]
            ),
        ]
    )
    func origins(value: String, expected: [String]) throws {
        #expect(try load(Self.yaml("origins", value)).listeners[0].webSocket.origins == expected)
    }

    @Test(
        "refuses what is no origin, with a cure",
        arguments: [
            (
                "app.example.org",
                "\"app.example.org\" is no origin, which begins with https:// or http://. Give an origin such as https://app.example.org or http://localhost:3000."
            ),
            (
                "https://app.example.org/",
                "\"https://app.example.org/\" has more than scheme, host and port. An origin has no path, not even /. Give an origin such as https://app.example.org or http://localhost:3000."
            ),
            (
                "\"https://*.example.org\"",
                "\"https://*.example.org\" names no host as browsers send it. Write every host in full, and one beyond ASCII as xn--…. Give an origin such as https://app.example.org or http://localhost:3000."
            ),
            (
                "\"https://\"",
                "\"https://\" names no host as browsers send it. Write every host in full, and one beyond ASCII as xn--…. Give an origin such as https://app.example.org or http://localhost:3000."
            ),
            (
                "\"https://app.example.org:443\"",
                "\"https://app.example.org:443\" names the port that browsers leave out. Leave :443 away."
            ),
        ]
    )
    func noOrigin(value: String, complaint: String) {
        #expect(
            problems(Self.yaml("origins", value))
                == ["hermes.yaml:4: listeners[0].websocket.origins: \(complaint)"])
    }

    @Test(
        "refuses what is no path, with a cure",
        arguments: [
            ("mqtt", "mqtt does not begin with /. Give a path such as /mqtt."),
            (
                "\"/a b\"",
                "\"/a b\" holds a character that no path has as it is: a blank, ?, # or one beyond ASCII. Give a path such as /mqtt, or write the character as % and two digits."
            ),
            (
                "\"/mqtt?a=b\"",
                "\"/mqtt?a=b\" holds a character that no path has as it is: a blank, ?, # or one beyond ASCII. Give a path such as /mqtt, or write the character as % and two digits."
            ),
            (
                "/" + String(repeating: "a", count: 255),
                "it is 256 bytes long. Give a path of at most 255 bytes, such as /mqtt."
            ),
        ]
    )
    func noPath(value: String, complaint: String) {
        #expect(
            problems(Self.yaml("path", value))
                == ["hermes.yaml:4: listeners[0].websocket.path: \(complaint)"])
    }

    @Test("reads a token in no request, unless told where, and by whom it is verified")
    func tokens() throws {
        let token = Self.yaml("token", "query")
        #expect(try load("").listeners[0].webSocket.token == .none)
        for auth in ["jwt:\n    key_file: /a", "http:\n    url: http://127.0.0.1:1/a"] {
            let listener = try load(token + "auth:\n  \(auth)\n").listeners[0]
            #expect(listener.webSocket.token == .query)
        }
        #expect(
            problems(token) == [
                "hermes.yaml:4: listeners[0].websocket.token: nobody verifies the tokens that requests may bring. Set up auth.jwt or auth.http, or delete the key."
            ])
        #expect(
            problems(Self.yaml("token", "cookie")) == [
                "hermes.yaml:4: listeners[0].websocket.token: cookie is not a place of tokens. Give none, query, header or any."
            ])
    }

    @Test(
        "is spoken of only where it is spoken",
        arguments: ["path: /a", "origins: https://a.example", "token: query"])
    func withoutProtocol(line: String) {
        let key = line.prefix { $0 != ":" }
        #expect(
            problems("listeners:\n  - websocket:\n      \(line)\n") == [
                "hermes.yaml:3: listeners[0].websocket.\(key): it has no effect on a listener that does not speak WebSocket. Set protocol: websocket, or delete the key."
            ])
        #expect(
            problems(Self.yaml("path", "/a").replacing("protocol: websocket", with: "protocol: ws"))
                == [
                    "hermes.yaml:2: listeners[0].protocol: ws is not a protocol. Give mqtt or websocket."
                ])
    }
}
