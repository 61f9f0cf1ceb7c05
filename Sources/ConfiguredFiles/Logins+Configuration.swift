import LoginServices
import Logins
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

extension LoginOrder {
    /// The order that the configuration names. Only a certificate that has a place in `auth.sources`
    /// counts as one that is set up.
    package init(_ auth: HermesConfiguration.Auth, hasPasswordFile: Bool) {
        var inUse: Set<Source> = []
        if auth.jwt.isOn { inUse.insert(.jwt) }
        if hasPasswordFile { inUse.insert(.file) }
        if auth.http.isOn { inUse.insert(.http) }
        if auth.sources.contains(.certificate) { inUse.insert(.certificate) }
        self.init(auth.order.map { Source($0) }, inUse: inUse)
    }
}

extension LoginOrder.Source {
    fileprivate init(_ source: HermesConfiguration.Auth.Source) {
        switch source {
        case .jwt: self = .jwt
        case .file: self = .file
        case .http: self = .http
        case .certificate: self = .certificate
        }
    }
}

extension HermesConfiguration.Auth {
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
