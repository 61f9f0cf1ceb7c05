import Testing

@testable import OperatorCLI

@Suite("AdminEndpoint")
struct EndpointTests {
    @Test(
        "builds URLs under every kind of base",
        arguments: [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/status"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1/status"),
            ("HTTPS://broker.example", "https://broker.example/v1/status"),
            ("https://broker.example:443/hermes//", "https://broker.example:443/hermes/v1/status"),
            ("http://[::1]:8080", "http://[::1]:8080/v1/status"),
        ])
    func bases(text: String, url: String) throws {
        let endpoint = try #require(AdminEndpoint(url: text))
        #expect(endpoint.url(["v1", "status"]) == url)
    }

    @Test(
        "rejects all but plain addresses",
        arguments: [
            "", "127.0.0.1:8080", "ftp://a", "http://", "http:///x", "http://a:0", "http://a:65536",
            "http://a:b", "http://a:", "http://user@a", "http://a?b", "http://a#b", "http://a b",
            "http://a\n", "http://grün", "http://[]:80", "http://[::1", "http://a]", "http:a",
            "mqtt://127.0.0.1:1883",
        ])
    func refuses(text: String) {
        #expect(AdminEndpoint(url: text) == nil)
    }

    @Test(
        "encodes every byte that is not unreserved, so that a client identifier stays one segment",
        arguments: [
            ("phone-1", "phone-1"), ("a/b", "a%2Fb"), ("a b", "a%20b"), ("ü", "%C3%BC"),
            ("../x", "..%2Fx"), ("a?b#c%d", "a%3Fb%23c%25d"), ("~._-", "~._-"), ("a+b", "a%2Bb"),
            ("\u{0}\n", "%00%0A"),
        ])
    func encodes(text: String, encoded: String) {
        #expect(AdminEndpoint.percentEncoded(text) == encoded)
        #expect(
            AdminEndpoint.standard.url(["v1", "clients", text])
                == "http://127.0.0.1:8080/v1/clients/\(encoded)")
    }

    @Test("joins and encodes query values")
    func query() {
        let url = AdminEndpoint.standard.url(
            ["v1", "publish"], query: [("topic", "a/b&c=d"), ("qos", "1")])
        #expect(url == "http://127.0.0.1:8080/v1/publish?topic=a%2Fb%26c%3Dd&qos=1")
    }

    @Test("puts a Unix socket's path where the host stands")
    func socket() {
        let endpoint = AdminEndpoint.unixSocket(path: "/run/hermes/admin sock")
        #expect(endpoint.url(["v1"]) == "http+unix://%2Frun%2Fhermes%2Fadmin%20sock/v1")
    }

    @Test(
        "knows when a token would go unencrypted to others",
        arguments: [
            ("http://127.0.0.1:1", false), ("http://127.9.9.9", false), ("http://localhost", false),
            ("http://[::1]:80", false), ("https://broker", false), ("http://broker", true),
            ("http://10.0.0.1", true), ("http://127.0.0.1.example", true),
            ("http://128.0.0.1", true),
        ])
    func plainText(text: String, expected: Bool) throws {
        guard case .web(_, let isPlain) = try #require(AdminEndpoint(url: text)) else {
            Issue.record("not a web endpoint")
            return
        }
        #expect(isPlain == expected)
    }

    @Test(
        "a segment of dots alone stays a name",
        arguments: [(".", "%2E"), ("..", "%2E%2E"), ("...", "..."), (".a", ".a")])
    func dots(segment: String, encoded: String) throws {
        let endpoint = try #require(AdminEndpoint(url: "http://h:9"))
        #expect(endpoint.url(["v1", segment, "x"]) == "http://h:9/v1/\(encoded)/x")
    }

    @Test(
        "reaches a listener on any address",
        arguments: [
            ("127.0.0.1", "http://127.0.0.1:9/x"), ("0.0.0.0", "http://127.0.0.1:9/x"),
            ("::", "http://[::1]:9/x"), ("fd00::1", "http://[fd00::1]:9/x"),
            ("localhost", "http://localhost:9/x"),
        ])
    func listener(address: String, url: String) {
        #expect(AdminEndpoint(listeningOn: address, port: 9).url(["x"]) == url)
    }
}
