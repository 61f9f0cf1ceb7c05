import Testing

@testable import Logins

/// Attacks on verifiers of tokens, each as it was found somewhere, and what is said about it.
@Suite("Attacks by tokens")
struct TokenAttackTests {
    static let claims = #"{"sub":"anna","exp":1800003600}"#

    struct Attack: Sendable, CustomTestStringConvertible {
        let name: String
        let issuer: Issuer
        let token: [UInt8]
        /// The kind of the refusal.
        let refusal: String

        init(
            _ name: String, _ refusal: String, _ issuer: Issuer = .es256,
            header: String = #"{"alg":"ES256"}"#, claims: String = TokenAttackTests.claims
        ) {
            self.init(name, refusal, issuer, issuer.token(header: header, claims: claims))
        }

        init(_ name: String, _ refusal: String, _ issuer: Issuer = .es256, _ token: [UInt8]) {
            (self.name, self.refusal, self.issuer, self.token) = (name, refusal, issuer, token)
        }

        init(_ name: String, _ refusal: String, text: String) {
            self.init(name, refusal, .es256, Array(text.utf8))
        }

        var testDescription: String { name }
    }

    /// A token without what a service's key signs.
    private static func unsigned(_ header: String, signature: String) -> String {
        "\(base64URL(Array(header.utf8))).\(base64URL(Array(claims.utf8))).\(signature)"
    }

    /// The HMAC of a token by what everybody knows: the service's public key.
    private static func confused(_ issuer: Issuer, _ secret: [UInt8]) -> [UInt8] {
        let signed = unsigned(#"{"alg":"HS256"}"#, signature: "").dropLast()
        let code = issuer.code(of: Array(signed.utf8), secret)
        return Array("\(signed).\(base64URL(code))".utf8)
    }

    static let algorithms: [Attack] = [
        Attack(
            "no signature, `none`", "malformed", text: unsigned(#"{"alg":"none"}"#, signature: "")),
        Attack(
            "`none` with some signature", "wrong_algorithm",
            text: unsigned(#"{"alg":"none"}"#, signature: "AAAA")),
        Attack(
            "`None`", "wrong_algorithm",
            text: unsigned(#"{"alg":"None"}"#, signature: "AAAA")),
        Attack(
            "`NONE`", "wrong_algorithm",
            text: unsigned(#"{"alg":"NONE"}"#, signature: "AAAA")),
        Attack("an empty algorithm", "wrong_algorithm", header: #"{"alg":""}"#),
        Attack("no algorithm", "header", header: #"{"typ":"JWT"}"#),
        Attack("an algorithm in lower case", "wrong_algorithm", header: #"{"alg":"es256"}"#),
        Attack("an algorithm that is a list", "header", header: #"{"alg":["ES256"]}"#),
        Attack("an algorithm that is null", "header", header: #"{"alg":null}"#),
        Attack(
            "HMAC with the RSA public key in PEM as its secret (CVE-2015-9235)",
            "wrong_algorithm", .rs256, confused(.rs256, Issuer.rs256.pem)),
        Attack(
            "HMAC with the RSA public key in DER as its secret", "wrong_algorithm", .rs256,
            confused(.rs256, Issuer.rs256.encoded)),
        Attack(
            "HMAC with the P-256 public key as its secret", "wrong_algorithm", .es256,
            confused(.es256, Issuer.es256.pem)),
        Attack(
            "HMAC with the Ed25519 public key as its secret (CVE-2022-29217)",
            "wrong_algorithm", .edDSA, confused(.edDSA, Issuer.edDSA.encoded)),
        Attack(
            "the right key, another digest", "wrong_algorithm", .rs256,
            header: #"{"alg":"RS384"}"#),
        Attack(
            "the right key, another padding", "wrong_algorithm", .rs256,
            header: #"{"alg":"PS256"}"#),
        Attack("ES256K", "wrong_algorithm", header: #"{"alg":"ES256K"}"#),
        Attack(
            "an empty signature", "malformed",
            text: unsigned(#"{"alg":"ES256"}"#, signature: "")),
        Attack(
            "an ECDSA signature of zeros (CVE-2022-21449)", "bad_signature",
            text: unsigned(
                #"{"alg":"ES256"}"#,
                signature: base64URL([UInt8](repeating: 0, count: 64)))),
        Attack(
            "an ECDSA signature of the group's order twice", "bad_signature",
            text: unsigned(#"{"alg":"ES256"}"#, signature: base64URL(order + order))),
        Attack(
            "an ECDSA signature in DER", "bad_signature",
            text: unsigned(
                #"{"alg":"ES256"}"#,
                signature: base64URL([0x30, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x01]))),
        Attack(
            "the signature of another service", "bad_signature", .es256,
            Issuer.unfit("EC", group: "P-256").token(
                header: #"{"alg":"ES256"}"#, claims: claims)),
    ]

    /// The order of the group of P-256.
    static let order: [UInt8] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63,
        0x25, 0x51,
    ]

    static let headers: [Attack] = [
        Attack(
            "an unknown extension that must be understood", "header",
            header: #"{"alg":"ES256","crit":["exp"],"exp":1}"#),
        Attack("an empty list of extensions", "header", header: #"{"alg":"ES256","crit":[]}"#),
        Attack(
            "claims that are not encoded (b64)", "header",
            header: #"{"alg":"ES256","b64":false}"#),
        Attack("two algorithms", "malformed", header: #"{"alg":"ES256","alg":"none"}"#),
        Attack(
            "two algorithms, one escaped", "malformed",
            header: #"{"alg":"ES256","\u0061lg":"none"}"#),
        Attack("two names of keys", "malformed", header: #"{"alg":"ES256","kid":"a","kid":"b"}"#),
        Attack("a name of a key that is a number", "header", header: #"{"alg":"ES256","kid":1}"#),
        Attack(
            "a name of a key that is very long", "header",
            header: #"{"alg":"ES256","kid":"\#(String(repeating: "a", count: 300))"}"#),
        Attack(
            "a proof of possession (DPoP) as a login", "header",
            header: #"{"alg":"ES256","typ":"dpop+jwt"}"#),
        Attack(
            "a logout token as a login", "header",
            header: #"{"alg":"ES256","typ":"logout+jwt"}"#),
        Attack("a type that is a number", "header", header: #"{"alg":"ES256","typ":1}"#),
        Attack("compressed claims", "header", header: #"{"alg":"ES256","zip":"DEF"}"#),
        Attack("a header that is a list", "malformed", header: #"["ES256"]"#),
        Attack("a header that is no JSON", "malformed", header: #"{"alg":"ES256""#),
        Attack("a header with something behind it", "malformed", header: #"{"alg":"ES256"}{}"#),
        Attack(
            "a header of a thousand levels", "malformed",
            header: String(repeating: "[", count: 1_000)),
    ]

    static let forms: [Attack] = [
        Attack("nothing", "malformed", text: ""),
        Attack("dots", "malformed", text: ".."),
        Attack("two parts", "malformed", text: "eyJhbGciOiJFUzI1NiJ9.e30"),
        Attack("four parts", "malformed", text: "eyJhbGciOiJFUzI1NiJ9.e30.AAAA.AAAA"),
        Attack("an encrypted token", "malformed", text: "eyJhbGciOiJFUzI1NiJ9.AAAA.AAAA.AAAA.AAAA"),
        Attack("many parts", "malformed", text: "e30" + String(repeating: ".e30", count: 1_000)),
        Attack(
            "larger than 8 KiB", "malformed", .es256,
            claims:
                #"{"sub":"anna","exp":1800003600,"x":"\#(String(repeating: "x", count: 8_000))"}"#
        ),
        Attack("padding", "malformed", text: unsigned(#"{"alg":"ES256"}"#, signature: "AA==")),
        Attack(
            "letters of plain base 64", "malformed",
            text: unsigned(#"{"alg":"ES256"}"#, signature: "++//")),
        Attack("bits left over", "malformed", text: unsigned(#"{"alg":"ES256"}"#, signature: "AB")),
        Attack(
            "a length that none has", "malformed",
            text: unsigned(#"{"alg":"ES256"}"#, signature: "AAAAA")),
        Attack(
            "a line's end behind it", "malformed", .es256,
            Issuer.es256.token() + Array("\n".utf8)),
        Attack("a blank before it", "malformed", .es256, Array(" ".utf8) + Issuer.es256.token()),
        Attack("bytes that are no text", "malformed", .es256, [0xFF, 0x2E, 0xFE, 0x2E, 0xFD]),
    ]

    static let contents: [Attack] = [
        Attack(
            "two users", "malformed",
            claims: #"{"sub":"anna","sub":"root","exp":1800003600}"#),
        Attack(
            "two users, one escaped", "malformed",
            claims: #"{"sub":"anna","\u0073ub":"root","exp":1800003600}"#),
        Attack(
            "two ends", "malformed",
            claims: #"{"sub":"anna","exp":1,"exp":1800003600}"#),
        Attack("claims that are a string", "malformed", claims: #""anna""#),
        Attack("claims that are no JSON", "malformed", claims: "anna"),
        Attack("an end that is a string", "claim", claims: #"{"sub":"anna","exp":"1800003600"}"#),
        Attack("an end that is null", "claim", claims: #"{"sub":"anna","exp":null}"#),
        Attack("an end beyond all numbers", "claim", claims: #"{"sub":"anna","exp":1e400}"#),
        Attack("an end beyond all calendars", "claim", claims: #"{"sub":"anna","exp":9e15}"#),
        Attack("a negative end", "claim", claims: #"{"sub":"anna","exp":-1}"#),
        Attack("no end", "claim", claims: #"{"sub":"anna"}"#),
        Attack(
            "a start that is a string", "claim",
            claims: #"{"sub":"anna","exp":1800003600,"nbf":"0"}"#),
        Attack("no user", "claim", claims: #"{"exp":1800003600}"#),
        Attack("an empty user", "claim", claims: #"{"sub":"","exp":1800003600}"#),
        Attack("a user that is a number", "claim", claims: #"{"sub":7,"exp":1800003600}"#),
        Attack("a user that is a list", "claim", claims: #"{"sub":["anna"],"exp":1800003600}"#),
        Attack(
            "a user with a null byte", "claim",
            claims: #"{"sub":"anna\u0000","exp":1800003600}"#),
        Attack(
            "a user with an escape sequence", "claim",
            claims: #"{"sub":"\u001b[31manna","exp":1800003600}"#),
        Attack(
            "topics that are a string", "claim",
            claims: #"{"sub":"anna","exp":1800003600,"publish":"a"}"#),
        Attack(
            "topics that are an object", "claim",
            claims: #"{"sub":"anna","exp":1800003600,"subscribe":{"all":true}}"#),
        Attack(
            "a topic that is a number", "claim",
            claims: #"{"sub":"anna","exp":1800003600,"subscribe":[1]}"#),
        Attack(
            "a topic filter that is malformed", "claim",
            claims: #"{"sub":"anna","exp":1800003600,"subscribe":["a/#/b"]}"#),
        Attack(
            "a placeholder in the midst of a level", "claim",
            claims: #"{"sub":"anna","exp":1800003600,"subscribe":["a/x%u"]}"#),
        Attack(
            "a filter with the broker's own mark of a placeholder", "claim",
            claims: #"{"sub":"anna","exp":1800003600,"subscribe":["a/\u0001"]}"#),
        Attack(
            "more filters than are taken", "claim",
            claims: #"{"sub":"anna","exp":1800003600,"subscribe":["#
                + (0...100).map { "\"\($0)\"" }.joined(separator: ",") + "]}"),
    ]

    @Test("is refused", arguments: [algorithms, headers, forms, contents].flatMap { $0 })
    func refused(_ attack: Attack) throws {
        let refusal = try #require(TokenVerifier(attack.issuer).refusal(attack.token))
        #expect(refusal.name == attack.refusal, "\(refusal)")
    }

    @Test(
        "places of keys that a token gives are never read",
        arguments: [
            #""jku":"http://127.0.0.1:1/keys""#, #""x5u":"http://127.0.0.1:1/chain""#,
            #""x5c":["AAAA"]"#, #""jwk":{"kty":"oct","k":"AAAA"}"#, #""x5t":"AAAA""#,
        ])
    func neverRead(_ member: String) throws {
        let (own, other) = (Issuer.es256, Issuer.unfit("EC", group: "P-256"))
        let header = #"{"alg":"ES256",\#(member)}"#
        let verifier = try TokenVerifier(own)
        #expect(verifier.refusal(own.token(header: header, claims: Self.claims)) == nil)
        #expect(
            verifier.refusal(other.token(header: header, claims: Self.claims)) == .badSignature)
    }

    @Test("an attacker's key in the header is not used")
    func ownKeyInHeader() throws {
        let attacker = Issuer.unfit("EC", group: "P-256")
        let point = attacker.encoded.suffix(64)
        let (x, y) = (base64URL(Array(point.prefix(32))), base64URL(Array(point.suffix(32))))
        let header = #"{"alg":"ES256","jwk":{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}}"#
        let token = attacker.token(header: header, claims: Self.claims)
        #expect(try TokenVerifier(.es256).refusal(token) == .badSignature)
    }

    /// Each takes tens of milliseconds where names are `String`s.
    @Test("names of combining marks in forged tokens cost their length")
    func marks() throws {
        let marks =
            String(repeating: "\u{301}", count: 700) + String(repeating: "\u{316}", count: 700)
        let token = Issuer.es256.token(
            header: #"{"alg":"ES256","a\#(marks)":1,"b\#(marks)":1}"#, claims: "{}")
        #expect(token.count <= TokenVerifier.longestToken)
        let verifier = TokenVerifier(
            keys: KeySet([try Issuer.edDSA.verificationKey()]), policy: TokenPolicy())
        let time = ContinuousClock().measure {
            for _ in 0..<1_000 {
                #expect(throws: TokenRefusal.self) { try verifier.verify(token, now: 0) }
            }
        }
        #expect(time < .seconds(5), "\(time)")
    }

    @Test("claims are not read before the signature is right")
    func signatureFirst() throws {
        let other = Issuer.unfit("EC", group: "P-256")
        let token = other.token(header: #"{"alg":"ES256"}"#, claims: "no JSON at all")
        #expect(try TokenVerifier(.es256).refusal(token) == .badSignature)
    }
}
