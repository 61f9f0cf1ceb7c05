import Testing

@testable import Transport

@Suite("WebSocket: the token in the request")
struct BearerTokenTests {
    private static let token = "eyJhbGciOiJFUzI1NiJ9.e30.c2ln_-"
    private static let bearer = "Authorization: Bearer \(token)"

    private static func rules(_ places: String) -> WebSocketRules {
        WebSocketRules(
            path: "/mqtt", readsTokenInQuery: ["query", "any"].contains(places),
            readsTokenInHeader: ["header", "any"].contains(places))
    }

    private static func request(_ query: String?, _ headers: [String]) -> [UInt8] {
        UpgradeRequestTests.request(
            ["GET": "GET /mqtt\(query.map { "?\($0)" } ?? "") HTTP/1.1"], adding: headers)
    }

    @Test(
        "is found where it may stand, and nowhere else",
        arguments: [
            ("none", "access_token=\(token)", [bearer], nil),
            ("none", "access_token=%", ["Authorization: Basic eA=="], nil),
            ("query", nil, [], nil), ("query", "", [], nil), ("query", "a=b&&c=%zz", [], nil),
            ("query", "access_token=\(token)", [], token),
            ("query", "a=b&access_token=\(token)&c=%20", [], token),
            ("query", "access_token=\(token)", [bearer], token),
            ("query", "%61ccess%5Ftoken=%65yJ", [], "eyJ"),
            ("query", "access_token=a+b/c~%2B%3d=", [], "a+b/c~+=="),
            ("query", "Access_Token=a&access_token.=b&access_tokens=c", [], nil),
            ("header", "access_token=\(token)", [], nil),
            ("header", "access_token=%", [bearer], token),
            ("header", nil, ["authorization:bEARER   \(token)\t"], token),
            ("any", "access_token=\(token)", [], token), ("any", "a=b", [bearer], token),
            ("any", nil, [], nil),
        ] as [(String, String?, [String], String?)])
    func found(places: String, query: String?, headers: [String], token: String?) throws {
        let request = try UpgradeRequestTests.decode(
            Self.request(query, headers), rules: Self.rules(places))
        #expect(try #require(request).token == token.map { Array($0.utf8) })
    }

    @Test("is found in a whole URL, too")
    func absolute() throws {
        let line = "GET http://broker.example:8083/mqtt?access_token=t HTTP/1.1"
        let request = try UpgradeRequestTests.decode(
            UpgradeRequestTests.request(["GET": line]), rules: Self.rules("query"))
        #expect(try #require(request).token == [UInt8(ascii: "t")])
    }

    @Test(
        "is refused when it is none, or not the only one",
        arguments: [
            ("query", "access_token", [], .token), ("query", "access_token=", [], .token),
            ("query", "access_token=a%", [], .token), ("query", "access_token=a%2", [], .token),
            ("query", "access_token=a%2g", [], .token), ("query", "access_token=%00", [], .token),
            ("query", "access_token=a%20b", [], .token), ("query", "access_token=a%0d", [], .token),
            ("query", "access_token=%C3%BC", [], .token), ("query", "access_token=a=b", [], .token),
            ("query", "access_token==", [], .token), ("query", "access_token=a?b", [], .token),
            ("query", "access_token=a#b", [], .token), ("query", "%zz=x", [], .token),
            ("query", "%&access_token=a", [], .token),
            ("query", "access_token=a&access_token=a", [], .severalTokens),
            ("query", "access_token=a&access%5ftoken=b", [], .severalTokens),
            ("any", "access_token=a", [bearer], .severalTokens),
            ("header", nil, [bearer, bearer], .severalTokens),
            ("header", nil, ["Authorization:"], .token),
            ("header", nil, ["Authorization: Bearer"], .token),
            ("header", nil, ["Authorization: Bearer a b"], .token),
            ("header", nil, ["Authorization: Bearer a,Bearer b"], .token),
            ("header", nil, ["Authorization: Bearer\ta"], .token),
            ("header", nil, ["Authorization: Bearer \u{FC}"], .token),
            ("header", nil, ["Authorization: Bearer a%20"], .token),
            ("header", nil, ["Authorization: Basic eA=="], .token),
            ("any", nil, ["Authorization: \(token)"], .token),
            (
                "any", "access_token=" + String(repeating: "a", count: 8_192), [], .headersTooLong
            ),
        ] as [(String, String?, [String], WebSocketFlaw)])
    func refused(places: String, query: String?, headers: [String], flaw: WebSocketFlaw) {
        #expect(throws: flaw) {
            try UpgradeRequestTests.decode(
                Self.request(query, headers), rules: Self.rules(places))
        }
    }
}
