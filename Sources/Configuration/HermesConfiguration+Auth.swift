import Addresses

extension HermesConfiguration {
    /// How clients prove who they are, besides certificates (`auth`).
    package struct Auth: Sendable, Equatable {
        /// The sources asked about a login, in this order, until one knows it. Certificates that are not
        /// among them come first.
        package var sources: [Source] = [.jwt, .file, .http]
        package var jwt = JWT()
        package var http = HTTPLogins()

        package enum Source: String, Sendable, Equatable, CaseIterable {
            /// Tokens of a company's login (`auth.jwt`).
            case jwt
            /// The password file.
            case file
            /// The company's service (`auth.http`).
            case http
            /// The client's certificate, where it names the user.
            case certificate
        }

        /// All sources in their order.
        package var order: [Source] {
            sources.contains(.certificate) ? sources : [.certificate] + sources
        }

        package init() {}
    }

    /// Tokens as the password of CONNECT (`auth.jwt`). At most one of the four places of keys is set.
    package struct JWT: Sendable, Equatable {
        /// PEM file with a public key.
        package var keyFile: String?
        /// File whose one line is the secret of HS256.
        package var secretFile: String?
        /// JSON Web Key Set.
        package var jwksFile: String?
        /// URL of a JSON Web Key Set.
        package var jwksURL: String?
        /// PEM file with the authorities of the URL's certificate; `nil` for those that the system
        /// trusts.
        package var caFile: String?
        /// Interval of fetching the URL, 10 s to a day.
        package var refresh: Duration = .seconds(600)
        /// True when plain HTTP is allowed beyond loopback addresses.
        package var allowPlain = false
        /// The issuer of all tokens; `nil` for any.
        package var issuer: String?
        /// A token is for one of these; empty for tokens that are for nobody in particular.
        package var audience: [String] = []
        package var userClaim = "sub"
        package var publishClaim = "publish"
        package var subscribeClaim = "subscribe"
        /// 0 to 300 s.
        package var leeway: Duration = .seconds(30)
        package var requireExpiry = true
        package var expired = Expired.close
        package var userName = UserName.match

        package enum Expired: String, Sendable, Equatable, CaseIterable {
            case close, keep
        }

        /// What the user name in CONNECT has to be.
        package enum UserName: String, Sendable, Equatable, CaseIterable {
            /// The one that the token names, or empty.
            case match
            case ignore
        }

        package init() {}

        /// True when tokens are verified.
        package var isOn: Bool { !givenKeys.isEmpty }

        /// The places of keys that are set, by the names of their keys.
        package var givenKeys: [(key: String, value: String)] {
            let places = [
                ("key_file", keyFile), ("secret_file", secretFile), ("jwks_file", jwksFile),
                ("jwks_url", jwksURL),
            ]
            return places.compactMap { place in place.1.map { (key: place.0, value: $0) } }
        }

        /// True when the URL's host is another machine, or may be, and there is no TLS.
        var isPlainBeyondLoopback: Bool {
            guard let jwksURL, let parts = WebURL(jwksURL) else { return false }
            return !parts.isSecure && !IPAddress.isLoopback(host: parts.host)
        }
    }

    /// True when another source than the certificate decides about a client whose certificate names
    /// it, or may pass it on to it.
    package var asksBeforeCertificates: Bool {
        auth.order.prefix { $0 != .certificate }.contains { source in
            switch source {
            case .jwt: auth.jwt.isOn
            case .file: passwordFile != nil
            case .http: auth.http.isOn
            case .certificate: false
            }
        }
    }

    /// True when a listener takes the names of users from their certificates.
    package var takesNamesFromCertificates: Bool {
        listeners.contains { $0.tls.isOn && $0.tls.userNameFromCertificate }
    }

    /// True when user names are proven by a password, a token or the company's service.
    package var checksLogins: Bool { passwordFile != nil || auth.jwt.isOn || auth.http.isOn }
}
