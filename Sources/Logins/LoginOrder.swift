/// The sources of logins in the order in which they are asked about a CONNECT: the first that knows
/// the login decides. The broker and `hermesctl auth check` both walk it.
///
/// Places in the order stay the same whatever is set up, so that a login that waits for the company's
/// service goes on behind it even when a reload has come between.
package struct LoginOrder: Sendable, Equatable {
    package enum Source: String, Sendable, CaseIterable {
        /// Tokens of a company's login.
        case jwt
        /// The password file. It also decides about a login that no source knows, so that an unknown
        /// name takes as long as a known one.
        case file
        /// The company's service.
        case http
        /// The client's certificate, where it names the user.
        case certificate
    }

    /// A source to be asked, and its place in the order.
    package struct Step: Equatable, Sendable {
        package let source: Source
        package let place: Int
    }

    package let sources: [Source]
    /// The sources that are set up.
    private let inUse: Set<Source>

    /// - Parameters:
    ///   - sources: All sources in their order, each once.
    ///   - inUse: Those that are set up.
    package init(_ sources: [Source], inUse: Set<Source>) {
        self.sources = sources
        self.inUse = inUse
    }

    /// The source that decides about a login, or is asked next whether it knows it.
    ///
    /// - Parameters:
    ///   - password: The password of CONNECT; a token source knows whatever looks like a token.
    ///   - isNamed: True when the client's certificate names the user.
    ///   - passed: The number of sources that are over, from the first.
    ///   - isUser: True for a user of the password file; called when it matters.
    /// - Returns: `nil` when no source is left and there is no password file. For a file that
    ///   decides about an unknown login, the place is behind the last one.
    package func step(
        for password: [UInt8], byCertificate isNamed: Bool, after passed: Int = 0,
        isUser: () -> Bool
    ) -> Step? {
        for (place, source) in sources.enumerated().dropFirst(passed) {
            let isAsked =
                switch source {
                case .certificate: isNamed
                case .jwt: inUse.contains(.jwt) && TokenVerifier.isToken(password)
                case .file: inUse.contains(.file) && isUser()
                case .http: inUse.contains(.http)
                }
            if isAsked { return Step(source: source, place: place) }
        }
        return inUse.contains(.file) ? Step(source: .file, place: sources.count) : nil
    }

    /// True when a password is checked that somebody could guess. A token's signature cannot be, and
    /// where only tokens let clients in, other passwords are not looked at.
    package func checksPassword(
        _ password: [UInt8], byCertificate isNamed: Bool, isUser: () -> Bool
    ) -> Bool {
        switch step(for: password, byCertificate: isNamed, isUser: isUser)?.source {
        case .file, .http, .certificate: true
        case .jwt, nil: false
        }
    }

    /// The sources in a range of places that ``step(for:byCertificate:after:isUser:)`` has passed
    /// over, with the reason of each; those that are not set up have none.
    package func passed(_ places: Range<Int>) -> [(source: Source, reason: String)] {
        sources[places.clamped(to: sources.indices)].compactMap { source in
            guard inUse.contains(source) else { return nil }
            return switch source {
            case .jwt: (source, "it is no token")
            case .file: (source, "there is no such user")
            case .certificate: (source, "no certificate names it")
            case .http: nil
            }
        }
    }
}
