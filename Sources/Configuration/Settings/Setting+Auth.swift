extension Setting {
    static let authSettings: [Setting] = [
        .single(
            "auth.sources", \.auth.sources, .sources,
            "Who is asked about a login, in this order, until one knows it: jwt knows what looks like a token, file the users of password_file, http (auth.http) whatever its service does not pass on, certificate the clients whose certificates name them. Left out, certificate is the first, and nobody else is asked about these clients."
        ),
        .single(
            "auth.jwt.key_file", \.auth.jwt.keyFile, ValueFormat.path("a PEM file").orUnset(),
            "Public key of the login service, for RS256 (RSA), ES256 (P-256) or EdDSA (Ed25519). With one of these four keys a token may be the password of a CONNECT."
        ),
        .single(
            "auth.jwt.secret_file", \.auth.jwt.secretFile,
            ValueFormat.path("a file with a secret").orUnset(),
            "Its one line, at least 32 letters, digits and signs, is the secret of HS256; others may not read the file."
        ),
        .single(
            "auth.jwt.jwks_file", \.auth.jwt.jwksFile,
            ValueFormat.path("a JSON Web Key Set").orUnset(),
            "Keys of the login service with their names (RFC 7517)."),
        .single(
            "auth.jwt.jwks_url", \.auth.jwt.jwksURL, ValueFormat.webURL.orUnset(),
            "Where the login service publishes its keys. They are fetched at the start, then regularly, and when a token names an unknown key; the last ones stay in use while the service is down."
        ),
        .single(
            "auth.jwt.ca_file", \.auth.jwt.caFile, ValueFormat.path("a PEM file").orUnset(),
            "Authorities that may have issued the certificate of jwks_url, read at the start. Left out, those that the system trusts."
        ),
        .single(
            "auth.jwt.refresh", \.auth.jwt.refresh, .duration(.seconds(10)...(.seconds(86_400))),
            "Interval of fetching jwks_url."),
        .single(
            "auth.jwt.allow_plain", \.auth.jwt.allowPlain, .boolean,
            "Allows jwks_url without TLS to another machine: whoever is on the way can then let anybody in."
        ),
        .single(
            "auth.jwt.issuer", \.auth.jwt.issuer, ValueFormat.claimText("an issuer").orUnset(),
            "The claim iss of every token. Left out, any: the keys alone say who issued it."),
        .single(
            "auth.jwt.audience", \.auth.jwt.audience, .audiences,
            "The claim aud of a token must name one of these. Left out, a token that names an audience is refused, since it is meant for another service."
        ),
        .single(
            "auth.jwt.user_claim", \.auth.jwt.userClaim, .claimText("the name of a claim"),
            "The claim that names the user."),
        .single(
            "auth.jwt.user_name", \.auth.jwt.userName, .word(noun: "a rule for user names"),
            "Whether the user name in CONNECT must be that of the token, or empty, or is ignored."),
        .single(
            "auth.jwt.publish_claim", \.auth.jwt.publishClaim, .claimText("the name of a claim"),
            "The claim with a list of topic filters, with %u and %c as in access rules: the client publishes to no other topics. A token without it leaves that to the access rules."
        ),
        .single(
            "auth.jwt.subscribe_claim", \.auth.jwt.subscribeClaim,
            .claimText("the name of a claim"),
            "The same for topics that the client may receive."),
        .single(
            "auth.jwt.leeway", \.auth.jwt.leeway,
            .duration(.seconds(1)...(.seconds(300))).orZero(),
            "How far the clocks of login service and broker may differ, for the claims exp, nbf and iat."
        ),
        .single(
            "auth.jwt.require_expiry", \.auth.jwt.requireExpiry, .boolean,
            "Refuses tokens without an end (exp)."),
        .single(
            "auth.jwt.expired", \.auth.jwt.expired, .word(noun: "a rule for expired tokens"),
            "Whether the end of its token closes a connection; a reload changes it for new connections."
        ),
    ]
}

extension ValueFormat where Value == [HermesConfiguration.Auth.Source] {
    /// Sources of logins, as a YAML list or separated by commas.
    static var sources: Self {
        let expectation =
            "jwt, file, http and certificate, or some of them, with commas between them"
        return Self(
            expectation: expectation,
            read: { (text: String) throws(RefusedValue) -> Value in
                var sources: Value = []
                for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                    let name = String(part.trimmingPrefix { $0 == " " })
                    guard let source = HermesConfiguration.Auth.Source(rawValue: name),
                        !sources.contains(source)
                    else {
                        throw RefusedValue(
                            complaint: "\(quoted(name)) is no source of logins, or is named twice",
                            cure: "Give \(expectation).")
                    }
                    sources.append(source)
                }
                return sources
            },
            write: { $0.map(\.rawValue).joined(separator: ",") }
        )
    }
}

extension ValueFormat where Value == String {
    /// A text of a token, or the name of a claim.
    static func claimText(_ noun: String) -> Self {
        Self(
            expectation: "\(noun), of 1 to 256 bytes",
            read: { (text: String) throws(RefusedValue) -> String in
                guard (1...256).contains(text.utf8.count),
                    text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
                else {
                    throw RefusedValue(
                        complaint:
                            "\(quoted(text)) has control characters, or not 1 to 256 bytes",
                        cure: "Give \(noun) as it stands in a token.")
                }
                return text
            },
            write: { $0 }
        )
    }
}

extension ValueFormat where Value == [String] {
    /// Audiences of tokens, as a YAML list or separated by commas.
    static var audiences: Self {
        let one = ValueFormat<String>.claimText("an audience")
        return Self(
            expectation: "an audience, or several with commas between them",
            read: { (text: String) throws(RefusedValue) -> [String] in
                var audiences: [String] = []
                for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                    audiences.append(try one.read(String(part.trimmingPrefix { $0 == " " })))
                }
                return audiences
            },
            write: { $0.joined(separator: ",") }
        )
    }
}
