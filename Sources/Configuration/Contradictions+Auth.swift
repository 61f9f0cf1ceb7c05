/// Rules over the keys of the section `auth`.
extension ConfigurationDraft {
    /// One place of keys, and each source that is set up is one that is asked.
    mutating func checkAuth() {
        let jwt = configuration.auth.jwt
        checkKeys(of: jwt)
        let url = "auth.jwt.jwks_url"
        if areUsable(url, "auth.jwt.allow_plain"), jwt.isPlainBeyondLoopback, !jwt.allowPlain {
            problems.add(
                "the keys would be fetched from another machine without TLS, where others could change them",
                cure:
                    "Give a URL of https, or set auth.jwt.allow_plain: true where the way is safe.",
                key: url, at: origin(url))
        }
        checkHTTPLogins()
        guard areUsable("auth.sources") else { return }
        let sources = configuration.auth.sources
        if jwt.isOn, !sources.contains(.jwt) {
            problems.add(
                "tokens are set up (auth.jwt) and nobody asks for them",
                cure: "Add jwt, or delete the key of auth.jwt.", key: "auth.sources",
                at: origin("auth.sources"))
        }
        if configuration.auth.http.isOn, !sources.contains(.http) {
            problems.add(
                "a service is set up (auth.http) and nobody asks it",
                cure: "Add http, or delete auth.http.url.", key: "auth.sources",
                at: origin("auth.sources"))
        }
        if sources.contains(.certificate), !configuration.takesNamesFromCertificates,
            configuration.listeners.indices.allSatisfy({
                areUsable("listeners[\($0)].tls.user_name_from_certificate")
            })
        {
            problems.add(
                "no listener takes the names of users from their certificates",
                cure:
                    "Set tls.user_name_from_certificate: true of a listener, or delete certificate.",
                key: "auth.sources", at: origin("auth.sources"))
        }
        if configuration.passwordFile != nil, !sources.contains(.file) {
            problems.add(
                "there is a password_file and nobody looks into it",
                cure: "Add file, or delete password_file.", key: "auth.sources",
                at: origin("auth.sources"))
        }
    }

    private mutating func checkHTTPLogins() {
        let http = configuration.auth.http
        let url = "auth.http.url"
        if areUsable(url, "auth.http.allow_plain"), http.isPlainBeyondLoopback, !http.allowPlain {
            problems.add(
                "passwords would be sent to another machine without TLS",
                cure:
                    "Give a URL of https, or set auth.http.allow_plain: true where the way is safe.",
                key: url, at: origin(url))
        }
        let others = ["ca_file", "token_file"].map { "auth.http.\($0)" }
        if areUsable(url), !http.isOn, let set = others.first(where: { givenKeys.contains($0) }),
            areUsable(set), http.caFile != nil || http.tokenFile != nil
        {
            problems.add(
                "there is no service that could be asked",
                cure: "Give auth.http.url, or delete auth.http.", key: set, at: origin(set))
        }
    }

    private mutating func checkKeys(of jwt: HermesConfiguration.JWT) {
        let given = jwt.givenKeys.map { "auth.jwt.\($0.key)" }
        guard given.allSatisfy({ areUsable($0) }) else { return }
        if given.count > 1 {
            problems.add(
                "there are keys in \(given.joined(separator: " and ")), and only one is used",
                cure: "Keep one of them; a JSON Web Key Set holds several keys.",
                key: given[1], at: origin(given[1]))
        }
        let others = ["issuer", "audience", "ca_file"].map { "auth.jwt.\($0)" }
        if given.isEmpty, let set = others.first(where: { givenKeys.contains($0) }), areUsable(set),
            jwt.issuer != nil || !jwt.audience.isEmpty || jwt.caFile != nil
        {
            problems.add(
                "there is no key that tokens could be verified with",
                cure:
                    "Give auth.jwt.key_file, secret_file, jwks_file or jwks_url, or delete auth.jwt.",
                key: set, at: origin(set))
        }
    }
}
