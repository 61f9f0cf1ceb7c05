import HTTPLogins
import LoginKeys
import LoginTokens
import OperatorConfiguration

extension TokenPolicy {
    /// What the configuration demands of a token.
    package init(_ jwt: HermesConfiguration.JWT) {
        self.init(
            issuer: jwt.issuer, audiences: jwt.audience, userClaim: jwt.userClaim,
            publishClaim: jwt.publishClaim, subscribeClaim: jwt.subscribeClaim,
            leewaySeconds: Int64(jwt.leeway / .seconds(1)), requiresExpiry: jwt.requireExpiry)
    }
}

extension KeyFile {
    /// The file that the configuration names; `nil` without one.
    package init?(_ jwt: HermesConfiguration.JWT) {
        if let path = jwt.keyFile {
            self = .publicKey(path)
        } else if let path = jwt.secretFile {
            self = .secret(path)
        } else if let path = jwt.jwksFile {
            self = .keySet(path)
        } else {
            return nil
        }
    }

    /// The key of the configuration that names it.
    package var setting: String {
        switch self {
        case .publicKey: "auth.jwt.key_file"
        case .secret: "auth.jwt.secret_file"
        case .keySet: "auth.jwt.jwks_file"
        }
    }
}

extension KeyURL {
    /// The place that the configuration names; `nil` without one.
    package init?(_ jwt: HermesConfiguration.JWT) {
        guard let url = jwt.jwksURL else { return nil }
        self.init(url: url, caFile: jwt.caFile, refresh: jwt.refresh)
    }
}

extension HermesConfiguration.Auth {
    /// The source that decides about a login: the first that knows it. The password file also
    /// decides about what nobody knows, so that such a name takes as long as a known one.
    ///
    /// - Parameters:
    ///   - password: that of CONNECT; a token source knows whatever looks like a token.
    ///   - isNamed: true when the client's certificate names it.
    ///   - passed: the number of sources that do not know it, as they have said.
    ///   - isKnown: true for a user of the password file; `nil` without a file.
    /// - Returns: the source, and its place in ``order``, behind the last one for a file that decides
    ///   about what nobody knows; `nil` when nobody knows the login, and there is no password file.
    package func source(
        for password: [UInt8], byCertificate isNamed: Bool, after passed: Int = 0,
        isKnown: (() -> Bool)?
    ) -> (source: Source, place: Int)? {
        for (place, source) in order.enumerated().dropFirst(passed) {
            switch source {
            case .certificate where isNamed: return (.certificate, place)
            case .jwt where jwt.isOn && TokenVerifier.isToken(password): return (.jwt, place)
            case .file where isKnown?() == true: return (.file, place)
            case .http where http.isOn: return (.http, place)
            case .jwt, .file, .http, .certificate: continue
            }
        }
        return isKnown == nil ? nil : (.file, order.count)
    }

    /// False when a token for this user comes with the user name of another one. An empty one is
    /// that of nobody.
    package func accepts(userName: [UInt8], ofTokenFor user: String) -> Bool {
        switch jwt.userName {
        case .ignore: true
        case .match: userName.isEmpty || userName.elementsEqual(user.utf8)
        }
    }
}

extension LoginServiceSettings {
    /// The service that the configuration names; `nil` without one.
    package init?(_ http: HermesConfiguration.HTTPLogins) {
        guard let url = http.url else { return nil }
        self.init(url: url)
        caFile = http.caFile
        tokenFile = http.tokenFile
        timeout = http.timeout
        maxInFlight = http.maxInFlight
        maxWaiting = http.maxWaiting
        remember = http.remember
        rememberDenied = http.rememberDenied
        outdated = http.whenUnavailable == .remembered ? http.outdated : nil
        breakerFailures = http.breakerFailures
        breakerPause = http.breakerPause
    }
}
