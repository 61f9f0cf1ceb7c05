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
    private let auth: Mutex<HermesConfiguration.Auth>

    /// `nil` when there is no source, and every user name is unproven.
    init?(
        _ configuration: HermesConfiguration, passwords: PasswordChecks?, tokens: TokenLoginChecks?
    ) {
        guard passwords != nil || tokens != nil else { return nil }
        self.passwords = passwords
        self.tokens = tokens
        auth = Mutex(configuration.auth)
    }

    /// Takes the reloaded keys of a configuration.
    func use(_ configuration: HermesConfiguration) {
        auth.withLock { $0 = configuration.auth }
        tokens?.use(configuration.auth)
    }

    var check: LoginCheck {
        LoginCheck(recall: { self.recall($0) }, verify: { self.verify($0) })
    }

    private func recall(_ request: AuthenticationRequest) -> LoginCheck.Recollection {
        switch source(for: request) {
        case .jwt?: tokens?.recall(request) ?? .known(.wrongPassword)
        case .file?:
            passwords?.recall(userName: request.userName, password: request.password) == true
                ? .known(.rightPassword) : .slow
        case nil: .known(.wrongPassword)
        }
    }

    private func verify(_ request: AuthenticationRequest) -> LoginAnswer {
        switch source(for: request) {
        case .jwt?: tokens?.verify(request) ?? .wrongPassword
        case .file?:
            passwords?.verify(userName: request.userName, password: request.password) == true
                ? .rightPassword : .wrongPassword
        case nil: .wrongPassword
        }
    }

    private func source(for request: AuthenticationRequest) -> HermesConfiguration.Auth.Source? {
        let auth = auth.withLock { $0 }
        guard let passwords else { return auth.source(for: request.password, isKnown: nil) }
        return auth.source(for: request.password) { passwords.knows(userName: request.userName) }
    }
}
