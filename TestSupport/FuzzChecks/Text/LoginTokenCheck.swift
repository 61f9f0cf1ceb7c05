import Credentials
import Logins
import PlainText

/// Any bytes are a token that is refused with a reason, unless a key has signed them.
///
/// The first byte chooses what the rest is: a token, its header, its claims behind a right signature,
/// or a set of keys. Checked are: nothing is accepted that no key has signed, claims that are accepted
/// name a user and an end in the future, and a reason prints nothing of the input that acts on a
/// terminal; a set of keys is read as the same set again, and is within its bounds.
enum LoginTokenCheck {
    /// The time of all checks, in UNIX seconds.
    private static let now: Int64 = 1_800_000_000
    private static let secret = Array("0123456789abcdef0123456789abcdef".utf8)

    /// Keys of the specifications (RFC 7515 appendix A.3, RFC 8037 appendix A.2), and a secret.
    private static let keys = #"""
        {"keys":[{"kty":"oct","kid":"s","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"},\#
        {"kty":"EC","kid":"e","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",\#
        "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},{"kty":"OKP","kid":"d",\#
        "crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}
        """#

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        guard let choice = input.first else { return }
        let rest = Array(input.dropFirst())
        switch choice % 4 {
        case 0: try checkUnsigned(rest, trace)
        case 1: try checkUnsigned(Array("\(base64URL(rest)).e30.AAAA".utf8), trace)
        case 2: try checkClaims(rest, trace)
        default: try checkKeys(rest, trace)
        }
    }

    private static func verifier() throws(CheckFailure) -> TokenVerifier {
        do throws(KeySet.Malformed) {
            let keys = try KeySet(document: Array(keys.utf8), allowsSecrets: true)
            return TokenVerifier(keys: keys, policy: TokenPolicy())
        } catch {
            throw CheckFailure("the keys of the specifications are refused: \(error.reason)")
        }
    }

    private static func checkUnsigned(
        _ token: [UInt8], _ trace: ((String) -> Void)?
    ) throws(CheckFailure) {
        let verifier = try verifier()
        do throws(TokenRefusal) {
            _ = try verifier.verify(token, now: now)
        } catch {
            trace?("\(error)")
            try PrintedText.check("\(error)")
            return
        }
        throw CheckFailure("a token is accepted that no key has signed")
    }

    /// Claims that the secret has signed.
    private static func checkClaims(
        _ claims: [UInt8], _ trace: ((String) -> Void)?
    ) throws(CheckFailure) {
        let verifier = try verifier()
        let signed = "eyJhbGciOiJIUzI1NiIsImtpZCI6InMifQ.\(base64URL(claims))"
        let code = bytes(hexadecimal: SigningSecret(secret).signature(of: Array(signed.utf8)))
        let token = Array("\(signed).\(base64URL(code))".utf8)
        let login: TokenLogin
        do throws(TokenRefusal) {
            login = try verifier.verify(token, now: now)
        } catch {
            trace?("\(error)")
            try PrintedText.check("\(error)")
            try CheckFailure.unless(error != .badSignature, "a right signature is refused")
            return
        }
        trace?("user \(login.userName), end \(login.endsAt ?? 0)")
        try PrintedText.check(login.userName.visible())
        try CheckFailure.unless(
            !login.userName.isEmpty && !login.userName.utf8.contains(0), "a login has no user")
        try CheckFailure.unless(
            login.endsAt.map { $0 > now } ?? false, "a login has no end that is to come")
        try CheckFailure.unless(
            token.count <= TokenVerifier.longestToken, "\(token.count) bytes are accepted")
        try CheckFailure.unless(
            (login.allowance?.byteCount ?? 0) <= 64 + 5 * token.count,
            "\(login.allowance?.byteCount ?? 0) bytes of topics out of \(token.count)")
    }

    private static func checkKeys(
        _ document: [UInt8], _ trace: ((String) -> Void)?
    ) throws(CheckFailure) {
        guard let read = try? KeySet(document: document, allowsSecrets: true) else { return }
        trace?("\(read.keys.count) keys, skipped \(read.skipped)")
        try CheckFailure.unless(
            (1...KeySet.mostKeys).contains(read.keys.count), "\(read.keys.count) keys")
        for reason in read.skipped { try PrintedText.check(reason) }
        let again = try? KeySet(document: document, allowsSecrets: true)
        try CheckFailure.unless(again == read, "the same document gives other keys")
        if let published = try? KeySet(document: document, allowsSecrets: false) {
            try CheckFailure.unless(
                published.keys.allSatisfy { $0.algorithm != .hs256 },
                "a secret is taken that others could read")
        }
    }

    // MARK: Texts

    private static func base64URL(_ bytes: [UInt8]) -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0...group.count { text.append(letters[bits >> (18 - 6 * place) & 63]) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func bytes(hexadecimal text: String) -> [UInt8] {
        let digits = Array(text.utf8).map { $0 < 0x3A ? $0 - 0x30 : $0 - 0x57 }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
