import Testing

@testable import Logins

@Suite("Claims of a token")
struct TokenClaimTests {
    private func refusal(
        _ claims: String, _ policy: TokenPolicy = TokenPolicy(), now: Int64 = 1_000
    ) throws -> TokenRefusal? {
        try TokenVerifier(.hs256, policy).refusal(Issuer.hs256.token(claims), now: now)
    }

    @Test("the end counts with the leeway, to the second")
    func expiry() throws {
        let claims = #"{"sub":"anna","exp":1000}"#
        let policy = TokenPolicy(leewaySeconds: 30)
        #expect(try refusal(claims, policy, now: 1_029) == nil)
        #expect(try refusal(claims, policy, now: 1_030) == .expired(at: 1_000))
        let strict = TokenPolicy(leewaySeconds: 0)
        #expect(try refusal(claims, strict, now: 999) == nil)
        #expect(try refusal(claims, strict, now: 1_000) == .expired(at: 1_000))
    }

    @Test("a fraction of a second is cut off")
    func fraction() throws {
        let policy = TokenPolicy(leewaySeconds: 0)
        #expect(try refusal(#"{"sub":"anna","exp":1000.9}"#, policy, now: 999) == nil)
        #expect(
            try refusal(#"{"sub":"anna","exp":1.0009e3}"#, policy, now: 1_000)
                == .expired(at: 1_000))
    }

    @Test("a token without an end is accepted only where that is configured")
    func withoutEnd() throws {
        let claims = #"{"sub":"anna"}"#
        #expect(try refusal(claims)?.name == "claim")
        #expect(try refusal(claims, TokenPolicy(requiresExpiry: false)) == nil)
    }

    @Test("start and time of issue may be as far ahead as the leeway", arguments: ["nbf", "iat"])
    func start(_ name: String) throws {
        #expect(try refusal(#"{"sub":"anna","exp":5000,"\#(name)":1030}"#) == nil)
        #expect(
            try refusal(#"{"sub":"anna","exp":5000,"\#(name)":1031}"#)
                == .notYetValid(from: 1_031))
    }

    @Test("the issuer is the configured one, byte for byte")
    func issuer() throws {
        let policy = TokenPolicy(issuer: "https://login.example/é")
        func claims(_ issuer: String) -> String { #"{"sub":"anna","exp":5000,"iss":"\#(issuer)"}"# }
        #expect(try refusal(claims("https://login.example/é"), policy) == nil)
        #expect(try refusal(claims("https://login.example"), policy)?.name == "wrong_issuer")
        // The same letter, written in two code points.
        #expect(
            try refusal(claims(#"https://login.example/e\u0301"#), policy)?.name == "wrong_issuer")
        #expect(try refusal(#"{"sub":"anna","exp":5000}"#, policy)?.name == "wrong_issuer")
        #expect(try refusal(#"{"sub":"anna","exp":5000,"iss":1}"#, policy)?.name == "wrong_issuer")
    }

    @Test(
        "the audience",
        arguments: [
            (#""hermes""#, ["hermes"], nil), (#"["web","hermes"]"#, ["hermes"], nil),
            (#""web""#, ["hermes", "web"], nil), (#""web""#, ["hermes"], "wrong_audience"),
            (#"[]"#, ["hermes"], "wrong_audience"), (#"["web",1]"#, ["web"], "claim"),
            (#"{"hermes":true}"#, ["hermes"], "claim"), ("null", ["hermes"], "wrong_audience"),
            (#""hermes ""#, ["hermes"], "wrong_audience"),
            // For somebody else, where nothing is configured.
            (#""web""#, [], "wrong_audience"), (#"[]"#, [], "wrong_audience"),
        ] as [(String, [String], String?)])
    func audience(_ value: String, _ wanted: [String], _ expected: String?) throws {
        let claims = #"{"sub":"anna","exp":5000,"aud":\#(value)}"#
        #expect(try refusal(claims, TokenPolicy(audiences: wanted))?.name == expected)
    }

    @Test("a token for nobody in particular is accepted only where no audience is configured")
    func noAudience() throws {
        let claims = #"{"sub":"anna","exp":5000}"#
        #expect(try refusal(claims) == nil)
        #expect(try refusal(claims, TokenPolicy(audiences: ["hermes"]))?.name == "wrong_audience")
    }

    @Test("user and topics are in the claims that are configured")
    func names() throws {
        let policy = TokenPolicy(
            userClaim: "phone", publishClaim: "may_send", subscribeClaim: "may_read")
        let token = Issuer.hs256.token(
            #"""
            {"sub":"x","phone":"anna","exp":5000,"may_send":["up/%u"],"may_read":["down/%c/#"],\#
            "publish":7}
            """#)
        let login = try TokenVerifier(.hs256, policy).verify(token, now: 1_000)
        #expect(login.userName == "anna")
        #expect(login.allowance != nil)
    }

    @Test("a reason holds no control characters, and is cut")
    func reasonIsPlain() throws {
        let long = String(repeating: "x", count: 5_000)
        let refusal = try #require(
            try refusal(
                #"{"sub":"anna","exp":5000,"iss":"\u001b[31m\u202e\#(long)"}"#,
                TokenPolicy(issuer: "login")))
        let text = "\(refusal)"
        #expect(text.count < 200)
        #expect(text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x202E })
    }

    @Test("a password of a person is no token")
    func resembles() {
        for password in ["secret", "e.y.J", "ey", "", "eyJ.x", "correct horse. battery. staple"] {
            #expect(!TokenVerifier.isToken(Array(password.utf8)), "\(password)")
        }
        for issuer in Issuer.all { #expect(TokenVerifier.isToken(issuer.token())) }
        let spaced = Issuer.hs256.token(header: "{ \"alg\": \"HS256\" }", claims: "{}")
        let lines = Issuer.hs256.token(header: "{\n\"alg\": \"HS256\" }", claims: "{}")
        #expect(TokenVerifier.isToken(spaced))
        #expect(TokenVerifier.isToken(lines))
    }
}
