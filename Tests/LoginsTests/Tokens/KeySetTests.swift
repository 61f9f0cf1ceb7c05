import Testing

@testable import Logins

@Suite("Sets of keys")
struct KeySetTests {
    /// A key in JSON, with further members.
    static func json(_ issuer: Issuer, _ more: String = "") -> String {
        let key = issuer.encoded
        switch issuer.algorithm {
        case .hs256: return #"{"kty":"oct","k":"\#(base64URL(issuer.pem))"\#(more)}"#
        case .rs256:
            // Behind the modulus stand the exponent's five bytes; before it 33 of structure.
            let modulus = Array(key.dropLast(5).suffix(256))
            return #"{"kty":"RSA","n":"\#(base64URL(modulus))","e":"AQAB"\#(more)}"#
        case .es256:
            let (x, y) = (Array(key.suffix(64).prefix(32)), Array(key.suffix(32)))
            return
                #"{"kty":"EC","crv":"P-256","x":"\#(base64URL(x))","y":"\#(base64URL(y))"\#(more)}"#
        case .edDSA:
            let x = base64URL(Array(key.suffix(32)))
            return #"{"kty":"OKP","crv":"Ed25519","x":"\#(x)"\#(more)}"#
        }
    }

    static func document(_ keys: String...) -> [UInt8] {
        Array(#"{"keys":[\#(keys.joined(separator: ","))]}"#.utf8)
    }

    private func keys(_ document: [UInt8], allowsSecrets: Bool = true) throws -> KeySet {
        try KeySet(document: document, allowsSecrets: allowsSecrets)
    }

    @Test("a key of each algorithm is read", arguments: Issuer.all)
    func reads(_ issuer: Issuer) throws {
        let set = try keys(Self.document(Self.json(issuer, #","use":"sig","kid":"a""#)))
        let verifier = TokenVerifier(keys: set, policy: TokenPolicy())
        #expect(verifier.refusal(issuer.token()) == nil)
        #expect(set.keys[0].algorithm == issuer.algorithm)
        #expect(set.keys[0].identifier == "a")
        #expect(set.skipped.isEmpty)
    }

    @Test("the token's `kid` finds its key; another key's algorithm does not help")
    func finds() throws {
        let set = try keys(
            Self.document(
                Self.json(.rs256, #","kid":"r""#), Self.json(.es256, #","kid":"e""#),
                Self.json(.edDSA, #","kid":"d""#)))
        let verifier = TokenVerifier(keys: set, policy: TokenPolicy())
        func token(_ algorithm: String, _ name: String) -> [UInt8] {
            Issuer.es256.token(
                header: #"{"alg":"\#(algorithm)","kid":"\#(name)"}"#,
                claims: TokenAttackTests.claims)
        }
        #expect(verifier.refusal(token("ES256", "e")) == nil)
        #expect(
            verifier.refusal(token("ES256", "r")) == .wrongAlgorithm(asked: "ES256", key: .rs256))
        #expect(
            verifier.refusal(token("RS256", "e")) == .wrongAlgorithm(asked: "RS256", key: .es256))
        #expect(verifier.refusal(token("ES256", "x")) == .unknownKey("x"))
        #expect(verifier.refusal(token("ES256", "../e")) == .unknownKey("../e"))
        #expect(verifier.refusal(token("ES256", "")) == .unknownKey(""))
    }

    @Test("a token without `kid` is of the only key that could be meant")
    func unnamed() throws {
        let one = try keys(
            Self.document(Self.json(.rs256, #","kid":"r""#), Self.json(.es256, #","kid":"e""#)))
        let verifier = TokenVerifier(keys: one, policy: TokenPolicy())
        #expect(verifier.refusal(Issuer.es256.token()) == nil)
        #expect(
            verifier.refusal(Issuer.edDSA.token()) == .wrongAlgorithm(asked: "EdDSA", key: nil))
        let two = KeySet([
            try Issuer.es256.verificationKey("a"),
            try Issuer.unfit("EC", group: "P-256").verificationKey("b"),
        ])
        #expect(
            TokenVerifier(keys: two, policy: TokenPolicy()).refusal(Issuer.es256.token())
                == .ambiguousKey)
    }

    @Test("a key without a name is that of every name, if there is only one")
    func nameless() throws {
        let verifier = try TokenVerifier(.es256)
        let token = Issuer.es256.token(
            header: #"{"alg":"ES256","kid":"2026-11"}"#, claims: TokenAttackTests.claims)
        #expect(verifier.refusal(token) == nil)
    }

    @Test("a member that is null is absent, as where other programs write all members")
    func null() throws {
        let set = try keys(
            Self.document(Self.json(.es256, #","kid":null,"use":null,"key_ops":null,"alg":null"#)))
        #expect(set.keys.count == 1)
        #expect(set.skipped.isEmpty)
    }

    @Test(
        "a key that is of no use is skipped and told",
        arguments: [
            (#"{"kty":"EC","crv":"P-384","x":"AAAA","y":"AAAA"}"#, "P-256"),
            (#"{"kty":"OKP","crv":"X25519","x":"AAAA"}"#, "Ed25519"),
            (#"{"kty":"AKP"}"#, "kty"), (#"{}"#, "kty"), (#"{"kty":1}"#, "kty"),
            (#"{"kty":"oct","k":"AAAA"}"#, "at least 32"),
            (#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#, "bits"),
            (#"{"kty":"RSA","e":"AQAB"}"#, "`n`"),
            (
                #"{"kty":"RSA","n":"\#(String(repeating: "A", count: 4_000))","e":"AQAB"}"#,
                "too long"
            ),
            (json(.es256, #","use":"enc""#), "use"),
            (json(.es256, #","key_ops":["sign"]"#), "key_ops"),
            (json(.es256, #","alg":"ES512""#), "ES256"),
            (json(.es256, #","alg":7"#), "ES256"),
            (json(.rs256, #","alg":"HS256""#), "RS256"),
            (json(.es256, #","d":"AAAA""#), "private"),
            (json(.es256, #","kid":7"#), "kid"),
            (json(.edDSA, #","kid":"good""#), "same name"),
        ])
    func skips(_ key: String, _ reason: String) throws {
        let set = try keys(Self.document(Self.json(.es256, #","kid":"good""#), key))
        #expect(set.keys.count == 1)
        #expect(set.skipped.count == 1)
        #expect(set.skipped[0].contains(reason), "\(set.skipped)")
    }

    @Test("a point that is not on the curve is no key")
    func offTheCurve() throws {
        let x = base64URL([UInt8](repeating: 1, count: 32))
        let key = #"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(x)"}"#
        #expect(throws: KeySet.Malformed.self) { try keys(Self.document(key)) }
    }

    /// The key of an issuer with another public exponent.
    private static func json(exponent: [UInt8]) -> String {
        let modulus = Array(Issuer.rs256.encoded.dropLast(5).suffix(256))
        return
            #"{"kty":"RSA","n":"\#(base64URL(modulus))","e":"\#(base64URL(exponent))"}"#
    }

    @Test(
        "RSA with an exponent of 1, by which anybody signs, or an even one is no key",
        arguments: [
            [0], [1], [0, 1], [2], [4], [1, 0, 0], [255, 255, 255, 255, 255, 255, 255, 254],
        ])
    func unsoundExponents(_ exponent: [UInt8]) throws {
        let set = try keys(
            Self.document(Self.json(.es256, #","kid":"good""#), Self.json(exponent: exponent)))
        #expect(set.keys.count == 1 && set.skipped.count == 1, "\(set.skipped)")
    }

    @Test("RSA with a usual exponent is a key", arguments: [[3], [17], [1, 0, 1], [0, 1, 0, 1]])
    func soundExponents(_ exponent: [UInt8]) throws {
        let set = try keys(Self.document(Self.json(exponent: exponent)))
        #expect(set.keys.count == 1 && set.skipped.isEmpty, "\(set.skipped)")
    }

    @Test("a short RSA key is no key")
    func shortKey() throws {
        let short = Issuer.unfit("RSA", bits: 1_024)
        #expect(
            throws: VerificationKey.Unusable(
                reason: "its RSA key has 1024 bits; RS256 needs 2048 to 8192")
        ) { try short.verificationKey() }
    }

    @Test("secrets that others could read are skipped")
    func fetchedSecrets() throws {
        let document = Self.document(Self.json(.hs256), Self.json(.es256))
        let set = try keys(document, allowsSecrets: false)
        #expect(set.keys.map(\.algorithm) == [.es256])
        #expect(set.skipped.count == 1)
    }

    @Test(
        "a document that is no set of keys is refused",
        arguments: [
            ("", "no JSON"), ("{}", "no list"), ("[]", "no list"), (#"{"keys":{}}"#, "no list"),
            (#"{"keys":[]}"#, "no key"), (#"{"keys":[1]}"#, "no object"),
            (#"{"keys":[{"kty":"AKP"}]}"#, "none"), (#"{"keys":[],"keys":[]}"#, "twice"),
            (#"{"keys":[\#(String(repeating: "{},", count: 64)){}]}"#, "more than 64"),
            ("<html>", "no JSON"), (String(repeating: " ", count: 262_145), "more than 262144"),
        ])
    func refuses(_ document: String, _ reason: String) throws {
        do {
            _ = try keys(Array(document.utf8))
            Issue.record("accepted")
        } catch let error as KeySet.Malformed {
            #expect(error.reason.contains(reason), "\(error.reason)")
        }
    }

    @Test("the same document gives an equal set, another one does not")
    func equality() throws {
        let document = Self.document(Self.json(.es256, #","kid":"a""#))
        let other = Self.document(Self.json(.es256, #","kid":"b""#))
        #expect(try keys(document) == keys(document))
        #expect(try keys(document) != keys(other))
        #expect(
            KeySet([try Issuer.es256.verificationKey()])
                != KeySet([try Issuer.unfit("EC", group: "P-256").verificationKey()]))
    }
}
