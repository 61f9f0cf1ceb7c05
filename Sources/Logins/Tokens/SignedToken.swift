import RequestText

/// A token in the compact form of a JWS (RFC 7515, section 7.1), `header.claims.signature`, taken
/// apart. Nothing of it is proven, and its claims are not read before the signature is verified.
struct SignedToken {
    let header: TokenHeader
    /// What is signed.
    let signedBytes: [UInt8]
    let claims: [UInt8]
    let signature: [UInt8]

    /// The longest token in bytes.
    static let longest = 8_192

    init(_ token: [UInt8]) throws(TokenRefusal) {
        guard token.count <= Self.longest else {
            throw .malformed("it has \(token.count) bytes, more than \(Self.longest)")
        }
        let parts = token.split(
            separator: UInt8(ascii: "."), maxSplits: 5, omittingEmptySubsequences: false)
        guard parts.count != 5 else {
            throw .malformed("it has five parts, as an encrypted token has, which is not taken")
        }
        guard parts.count == 3 else {
            throw .malformed("it is not of three parts with a dot between them")
        }
        guard !parts[2].isEmpty else { throw .malformed("it has no signature") }
        header = try TokenHeader(Self.decode(parts[0], "header"))
        claims = try Self.decode(parts[1], "claims")
        signature = try Self.decode(parts[2], "signature")
        signedBytes = Array(token[..<parts[1].endIndex])
    }

    /// True for what looks like a token: three parts, of which the first is the beginning of a JSON
    /// object. Passwords of people do not.
    static func resembles(_ password: [UInt8]) -> Bool {
        // `{` with a quote, a blank or a line's end behind it, in base 64.
        guard password.count > 2, password[0] == UInt8(ascii: "e"),
            password[1] == UInt8(ascii: "y") || password[1] == UInt8(ascii: "w")
        else { return false }
        return password.count { $0 == UInt8(ascii: ".") } >= 2
    }

    /// The members of a JSON object, each name once. `part` is the subject of a complaint, with its
    /// verb.
    static func object(
        _ json: [UInt8], _ part: String
    ) throws(TokenRefusal) -> [JSONMember] {
        do throws(JSONSyntaxError) {
            if case .object(let members) = try JSONParser.parse(json) { return members }
        } catch {
            throw .malformed("its \(part) no JSON: \(error)")
        }
        throw .malformed("its \(part) no JSON object")
    }

    private static func decode(
        _ text: ArraySlice<UInt8>, _ part: String
    ) throws(TokenRefusal) -> [UInt8] {
        guard let bytes = Base64URL.decode(text) else {
            throw .malformed("its \(part) is not canonical base 64 for URLs without padding")
        }
        return bytes
    }
}
