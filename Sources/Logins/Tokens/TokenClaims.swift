import Authorization
import PlainText
import RequestText

/// The claims of a token whose signature is right (RFC 7519, section 4), checked against a policy.
struct TokenClaims {
    let userName: String
    /// UNIX seconds; `nil` for a token without an end.
    let expiresAt: Int64?
    let publish: [String]?
    let subscribe: [String]?

    private let members: [ForeignText: JSONValue]

    /// The longest user name in bytes of UTF-8; the broker's limit of user names counts as well.
    private static let longestUserName = 1_024
    /// Times from the year 1970 to 9999.
    private static let times = 0.0...253_402_300_799

    /// - Throws: ``TokenRefusal``, the first reason found: form, times, issuer, audience, user, topics.
    init(
        _ json: [UInt8], _ policy: TokenPolicy, now: Int64
    ) throws(TokenRefusal) {
        let found = try SignedToken.object(json, "claims are")
        // The parser refuses a name that occurs twice. A claim that is null is absent.
        members = Dictionary(found.filter { $0.value != .null }.map { ($0.name, $0.value) }) {
            first, _ in first
        }
        expiresAt = try Self.checkTimes(members, policy, now: now)
        if let issuer = policy.issuer {
            guard case .string(let name)? = members["iss"] else {
                throw .wrongIssuer("nobody, and not of \(TokenRefusal.quoted(issuer))")
            }
            guard name == ForeignText(issuer) else {
                throw .wrongIssuer(
                    "\(TokenRefusal.quoted(name)), and not of \(TokenRefusal.quoted(issuer))")
            }
        }
        try Self.checkAudience(members["aud"], policy.audiences)
        userName = try Self.userName(
            members[ForeignText(policy.userClaim)], policy.userClaim)
        publish = try Self.filters(
            members[ForeignText(policy.publishClaim)], policy.publishClaim)
        subscribe = try Self.filters(
            members[ForeignText(policy.subscribeClaim)], policy.subscribeClaim)
    }

    // MARK: Times

    private static func checkTimes(
        _ members: [ForeignText: JSONValue], _ policy: TokenPolicy, now: Int64
    ) throws(TokenRefusal) -> Int64? {
        let expiresAt = try time(members, "exp")
        if let expiresAt {
            guard now < expiresAt + policy.leewaySeconds else { throw .expired(at: expiresAt) }
        } else if policy.requiresExpiry {
            throw .claim(
                "end (`exp`) is missing; a token that never ends could never be taken back")
        }
        if let from = try time(members, "nbf"), from > now + policy.leewaySeconds {
            throw .notYetValid(from: from)
        }
        // A token from the future is one of a wrong clock, or is forged to outlive its key.
        if let issued = try time(members, "iat"), issued > now + policy.leewaySeconds {
            throw .notYetValid(from: issued)
        }
        return expiresAt
    }

    /// A NumericDate: seconds since 1970, which may have a fraction; it is cut off.
    private static func time(
        _ members: [ForeignText: JSONValue], _ name: ForeignText
    ) throws(TokenRefusal) -> Int64? {
        guard let value = members[name] else { return nil }
        guard case .number(let text) = value, let seconds = Double(text), times ~= seconds else {
            throw .claim("`\(name)` is no time in seconds since 1970")
        }
        return Int64(seconds)
    }

    // MARK: Names

    private static func checkAudience(
        _ value: JSONValue?, _ wanted: [String]
    ) throws(TokenRefusal) {
        var audiences: [ForeignText] = []
        switch value {
        case nil: break
        case .string(let name)?: audiences = [name]
        case .array(let names)?:
            for name in names {
                guard case .string(let name) = name else {
                    throw .claim("`aud` holds what is no string")
                }
                audiences.append(name)
            }
        default: throw .claim("`aud` is neither a string nor a list of strings")
        }
        if wanted.isEmpty, value == nil { return }
        guard
            audiences.contains(where: { name in
                wanted.contains { name == ForeignText($0) }
            })
        else {
            let named = audiences.isEmpty ? "nobody" : TokenRefusal.quoted(audiences[0])
            guard let first = wanted.first else {
                throw .wrongAudience("\(named), and auth.jwt.audience names none")
            }
            throw .wrongAudience("\(named), and not for \(TokenRefusal.quoted(first))")
        }
    }

    private static func userName(
        _ value: JSONValue?, _ claim: String
    ) throws(TokenRefusal) -> String {
        guard let value else {
            throw .claim("claim \(TokenRefusal.quoted(claim)), which names the user, is missing")
        }
        guard case .string(let name) = value else {
            throw .claim("claim \(TokenRefusal.quoted(claim)) is \(value.kindName), and no name")
        }
        guard !name.isEmpty, name.utf8.count <= longestUserName,
            !name.string.unicodeScalars.contains(where: {
                $0.value < 0x20 || 0x7F...0x9F ~= $0.value
            })
        else {
            throw .claim(
                """
                claim \(TokenRefusal.quoted(claim)) is no user name: it is empty, longer than \
                \(longestUserName) bytes, or has control characters
                """)
        }
        return name.string
    }

    private static func filters(
        _ value: JSONValue?, _ claim: String
    ) throws(TokenRefusal) -> [String]? {
        guard let value else { return nil }
        guard case .array(let elements) = value else {
            throw .claim(
                "claim \(TokenRefusal.quoted(claim)) is \(value.kindName), and no list of filters")
        }
        var filters: [String] = []
        for element in elements {
            guard case .string(let filter) = element else {
                throw .claim("claim \(TokenRefusal.quoted(claim)) holds \(element.kindName)")
            }
            filters.append(filter.string)
        }
        return filters
    }
}
