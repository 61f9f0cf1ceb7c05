import BrokerCore
import BrokerRuntime
import ConfiguredFiles
import OperatorConfiguration
import Synchronization

/// Decides about logins, by their sources in their order.
final class LoginSources: Sendable {
    /// `nil` without a password file.
    private let passwords: PasswordChecks?
    /// `nil` without tokens.
    private let tokens: TokenLoginChecks?
    /// `nil` when the company's service is not asked.
    private let service: HTTPLoginChecks?
    private let auth: Mutex<HermesConfiguration.Auth>
    private let asksBeforeCertificates: Bool

    /// `nil` when there is no source, and every user name is unproven.
    init?(
        _ configuration: HermesConfiguration, passwords: PasswordChecks?, tokens: TokenLoginChecks?,
        service: HTTPLoginChecks?
    ) {
        guard passwords != nil || tokens != nil || service != nil else { return nil }
        self.passwords = passwords
        self.tokens = tokens
        self.service = service
        auth = Mutex(configuration.auth)
        asksBeforeCertificates = configuration.asksBeforeCertificates
    }

    /// Takes the reloaded keys of a configuration.
    func use(_ configuration: HermesConfiguration) {
        auth.withLock { $0 = configuration.auth }
        tokens?.use(configuration.auth)
        service?.use(configuration)
    }

    var check: LoginCheck {
        let ask: LoginCheck.Ask = { request, then in self.ask(request, then) }
        return LoginCheck(
            asksBeforeCertificates: asksBeforeCertificates, recall: { self.recall($0) },
            verify: { self.verify($0) }, ask: service == nil ? nil : ask)
    }

    private func recall(_ request: AuthenticationRequest) -> LoginCheck.Recollection {
        var request = request
        while let (source, place) = self.source(for: request) {
            switch source {
            case .certificate: return .known(.admitted(Login()))
            case .jwt: return tokens?.recall(request) ?? .known(.wrongPassword)
            case .file:
                return passwords?.recall(userName: request.userName, password: request.password)
                    == true ? .known(Self.rightPassword(request)) : .slow
            case .http:
                switch service?.recall(request, place: place) {
                case .decided(let answer)?: return .known(answer)
                case .passed(let sources)?: request.sourcesPassed = sources
                case nil: return .elsewhere
                }
            }
        }
        return .known(.wrongPassword)
    }

    private func verify(_ request: AuthenticationRequest) -> LoginAnswer {
        var request = request
        while let (source, place) = self.source(for: request) {
            switch source {
            case .certificate: return .admitted(Login())
            case .jwt: return tokens?.verify(request) ?? .wrongPassword
            case .file:
                return passwords?.verify(userName: request.userName, password: request.password)
                    == true ? Self.rightPassword(request) : .wrongPassword
            // ``recall(_:)`` has found a source after it.
            case .http: request.sourcesPassed = place + 1
            }
        }
        return .wrongPassword
    }

    /// The user of the password file, whatever a certificate says.
    private static func rightPassword(_ request: AuthenticationRequest) -> LoginAnswer {
        .admitted(Login(userName: request.userName))
    }

    private func ask(
        _ request: AuthenticationRequest, _ then: @escaping @Sendable (LoginCheck.Asked) -> Void
    ) {
        guard let service, let (source, place) = self.source(for: request), source == .http else {
            // The sources are no longer those of a moment ago: the user is in the file now.
            then(.passed(sources: request.sourcesPassed))
            return
        }
        service.ask(request, place: place, then)
    }

    private func source(
        for request: AuthenticationRequest
    ) -> (source: HermesConfiguration.Auth.Source, place: Int)? {
        let auth = auth.withLock { $0 }
        return auth.source(
            for: request.password, byCertificate: request.certificateName != nil,
            after: request.sourcesPassed,
            isKnown: passwords.map { passwords in
                { passwords.knows(userName: request.userName) }
            })
    }
}
