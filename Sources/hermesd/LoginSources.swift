import BrokerCore
import BrokerRuntime
import ConfiguredFiles
import OperatorConfiguration
import Synchronization

/// Decides about passwords and tokens, by the sources of logins in their order.
final class LoginSources: Sendable {
    /// `nil` without a password file.
    private let passwords: PasswordChecks?
    /// `nil` without tokens.
    private let tokens: TokenLoginChecks?
    /// `nil` when the company's service is not asked.
    private let service: HTTPLoginChecks?
    private let auth: Mutex<HermesConfiguration.Auth>

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
            recall: { self.recall($0) }, verify: { self.verify($0) },
            ask: service == nil ? nil : ask)
    }

    private func recall(_ request: AuthenticationRequest) -> LoginCheck.Recollection {
        var request = request
        while let (source, place) = self.source(for: request) {
            switch source {
            case .jwt: return tokens?.recall(request) ?? .known(.wrongPassword)
            case .file:
                return passwords?.recall(userName: request.userName, password: request.password)
                    == true ? .known(.rightPassword) : .slow
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
            case .jwt: return tokens?.verify(request) ?? .wrongPassword
            case .file:
                return passwords?.verify(userName: request.userName, password: request.password)
                    == true ? .rightPassword : .wrongPassword
            // ``recall(_:)`` has found a source after it.
            case .http: request.sourcesPassed = place + 1
            }
        }
        return .wrongPassword
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
        let passed = request.sourcesPassed
        guard let passwords else {
            return auth.source(for: request.password, after: passed, isKnown: nil)
        }
        return auth.source(for: request.password, after: passed) {
            passwords.knows(userName: request.userName)
        }
    }
}
