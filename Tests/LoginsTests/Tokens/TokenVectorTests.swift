import Testing

@testable import Logins

/// The examples of RFC 7515 (appendix A.1 and A.3; A.2 with another key) and RFC 8037 (appendix A.4).
@Suite("Tokens of the specifications")
struct TokenVectorTests {
    static let claims =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290"
        + "Ijp0cnVlfQ"
    static let policy = TokenPolicy(userClaim: "iss")
    /// A second before the end of these tokens.
    static let now: Int64 = 1_300_819_379

    static let hs256 = (
        key: #"""
        {"keys":[{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}]}
        """#,
        token: "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(claims)."
            + "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    )
    /// Made by OpenSSL's command line, as the specification's example was.
    static let rs256 = (
        key: #"{"keys":[{"kty":"RSA","n":""#
            + "1HJJuA4KBcA4V4qEQArv4k37aK4rT-1N1eZeaVX8DTjr0KLTZ687oVHRYvN3OowOhke0_G5BFQvlNNDV"
            + "wpndvKqUx5HSgiEufFI3vyETi957ARVTdh9IwA_sz9fsUZreFhvEc97KwjBY7lUDX1O2PImYeXY4k777"
            + "hJhJZ9_2YARpXiTOsh5urwXQ9jFbCttEWc_9IEdaiJUNfn9eNj771U6-Ilk5cs63o7EYrdmlfhq6sKlZ"
            + "PuYdoMTFSHTG-H-vO7YmQZfv_Ao8QvGX9QEdxpLPgjqgAT6eewRbiNb0DO0ruzo9MM63vVN6egV4btV8"
            + "-AI5SEt9GGNsJ8JQJ7mgMQ"
            + #"","e":"AQAB"}]}"#,
        token: "eyJhbGciOiJSUzI1NiJ9.\(claims)."
            + "epPNk_JefpcG5qV-KdjrZ8N4HyL4O6EtbN0cvVLFNbq8siwuYa1GwzI2EZta5qqyiNSuQj7r4m_Z4019"
            + "3SrqkJfyhVrd7z5qdA8ljztR3eNAdA0_Mm_qQizhfH8iHIqjTr1EE7aWmmecq1pKikOi2ex_pqzlz3vC"
            + "txlTFAEXgxhoy006MaxhcP9_tbFzaDjgLIJYvbUD3Sw-Un42AY1b3LAUa98Vi-pkre-2OeCSg-U_RafN"
            + "iJB_lZH19tqc0N-rWZ3ewrOBtKFN_siyrQxr4UX_DJkz8hrYLU8_0KufSckN8Ix9F8Jc9Kf6hBOYv4b1"
            + "-0Z2hMp5IWc896mbq6-RNQ"
    )
    static let es256 = (
        key: #"{"keys":[{"kty":"EC","crv":"P-256","x":""#
            + #"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":""#
            + #"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#,
        token: "eyJhbGciOiJFUzI1NiJ9.\(claims)."
            + "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-K"
            + "g6NU1Q"
    )

    @Test(
        "the token of the specification is accepted, and not with a bit changed",
        arguments: [hs256, rs256, es256])
    func accepts(_ vector: (key: String, token: String)) throws {
        let keys = try KeySet(document: Array(vector.key.utf8), allowsSecrets: true)
        let verifier = TokenVerifier(keys: keys, policy: Self.policy)
        let login = try verifier.verify(Array(vector.token.utf8), now: Self.now)
        #expect(login.userName == "joe")
        #expect(login.expiresAt == 1_300_819_380)
        #expect(login.endsAt == 1_300_819_410)
        let other = vector.token.replacing("eyJpc3MiOiJqb2UiLA", with: "eyJpc3MiOiJqb2YiLA")
        #expect(verifier.refusal(Array(other.utf8), now: Self.now) == .badSignature)
    }

    @Test("the signature by Ed25519 is right, and what it signs is no claims")
    func acceptsEd25519() throws {
        let keys = try KeySet(
            document: Array(
                #"""
                {"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}
                """#.utf8), allowsSecrets: false)
        let token =
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc."
            + "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_M"
            + "uM0KAg"
        let parts = try SignedToken(Array(token.utf8))
        #expect(keys.keys[0].verifies(parts.signature, of: parts.signedBytes))
        let refusal = TokenVerifier(keys: keys, policy: Self.policy).refusal(Array(token.utf8))
        #expect(refusal?.name == "malformed")
    }

    @Test("a token of each algorithm is accepted", arguments: Issuer.all)
    func acceptsOwn(_ issuer: Issuer) throws {
        let verifier = try TokenVerifier(issuer)
        let login = try verifier.verify(issuer.token(), now: Issuer.now)
        #expect(login.userName == "anna")
        #expect(login.algorithm == issuer.algorithm)
        #expect(login.allowance == nil)
    }

    @Test("no bit of a signature may differ", arguments: Issuer.all)
    func refusesEveryOtherSignature(_ issuer: Issuer) throws {
        let key = try issuer.verificationKey()
        let message = Array("signed".utf8)
        let signature = issuer.signature(of: message)
        #expect(key.verifies(signature, of: message))
        for index in signature.indices {
            var other = signature
            other[index] ^= 1 << UInt8(index % 8)
            #expect(!key.verifies(other, of: message), "byte \(index)")
        }
        #expect(!key.verifies(signature + [0], of: message))
        #expect(!key.verifies(signature.dropLast(), of: message))
        #expect(!key.verifies([], of: message))
    }
}
