import BrokerCore
import BrokerFeatures
import BrokerRuntime
import ConfiguredFiles
import Logins
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
    private let order: Mutex<LoginOrder>
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
        order = Mutex(LoginOrder(configuration.auth, hasPasswordFile: passwords != nil))
        asksBeforeCertificates = configuration.asksBeforeCertificates
    }

    /// Takes the reloaded keys of a configuration.
    func use(_ configuration: HermesConfiguration) {
        let new = LoginOrder(configuration.auth, hasPasswordFile: passwords != nil)
        order.withLock { $0 = new }
        tokens?.use(configuration.auth)
        service?.use(configuration)
    }

    var check: LoginCheck {
        let ask: LoginCheck.Ask = { request, then in self.ask(request, then) }
        return LoginCheck(
            asksBeforeCertificates: asksBeforeCertificates, mayBeGuess: { self.mayBeGuess($0) },
            recall: { self.recall($0) }, verify: { self.verify($0) },
            ask: service == nil ? nil : ask)
    }

    private func mayBeGuess(_ request: AuthenticationRequest) -> Bool {
        request.mayBeGuess
            && order.withLock { $0 }.checksPassword(
                request.password, byCertificate: request.certificateName != nil,
                isUser: { passwords?.knows(userName: request.userName) == true })
    }

    private func recall(_ request: AuthenticationRequest) -> LoginCheck.Recollection {
        decide(request) { step in
            switch step.source {
            case .certificate: return .known(.admitted(Login()))
            case .jwt: return tokens?.recall(request) ?? .known(.wrongPassword)
            case .file:
                return passwords?.recall(userName: request.userName, password: request.password)
                    == true ? .known(Self.rightPassword(request)) : .slow
            case .http:
                return switch service?.recall(request, place: step.place) {
                case .decided(let answer)?: .known(answer)
                case .passed?: nil
                case nil: .elsewhere
                }
            }
        } ?? .known(.wrongPassword)
    }

    private func verify(_ request: AuthenticationRequest) -> LoginAnswer {
        decide(request) { step in
            switch step.source {
            case .certificate: return .admitted(Login())
            case .jwt: return tokens?.verify(request) ?? .wrongPassword
            case .file:
                return passwords?.verify(userName: request.userName, password: request.password)
                    == true ? Self.rightPassword(request) : .wrongPassword
            // ``recall(_:)`` has found a source after it.
            case .http: return nil
            }
        } ?? .wrongPassword
    }

    /// Asks the sources in their order until one has an answer; `nil` of a source passes the login
    /// on, and `nil` is returned when all have done so.
    private func decide<Answer>(
        _ request: AuthenticationRequest, _ ask: (LoginOrder.Step) -> Answer?
    ) -> Answer? {
        var passed = request.sourcesPassed
        while let step = self.step(for: request, after: passed) {
            if let answer = ask(step) { return answer }
            passed = step.place + 1
        }
        return nil
    }

    /// The user of the password file, whatever a certificate says.
    private static func rightPassword(_ request: AuthenticationRequest) -> LoginAnswer {
        .admitted(Login(userName: request.userName))
    }

    private func ask(
        _ request: AuthenticationRequest, _ then: @escaping @Sendable (LoginCheck.Asked) -> Void
    ) {
        guard let service, let step = step(for: request, after: request.sourcesPassed),
            step.source == .http
        else {
            // The sources are no longer those of a moment ago: the user is in the file now.
            then(.passed(sources: request.sourcesPassed))
            return
        }
        service.ask(request, place: step.place, then)
    }

    private func step(for request: AuthenticationRequest, after passed: Int) -> LoginOrder.Step? {
        order.withLock { $0 }.step(
            for: request.password, byCertificate: request.certificateName != nil, after: passed,
            isUser: { passwords?.knows(userName: request.userName) == true })
    }
}
