import BrokerAPI
import BrokerCore
import BrokerFeatures
import BrokerRuntime
import CLinux
import ConfiguredFiles
import LoginServices
import Logins
import Logging
import OperatorConfiguration
import Synchronization

/// Asks the company's service about logins, and turns its answers into those of the broker.
final class HTTPLoginChecks: Sendable {
    private let service: LoginService
    private let settings: LoginServiceSettings
    private let files: Mutex<LoginServiceFiles>

    /// Reads the files that the settings name; `nil` without a service.
    init?(
        _ configuration: HermesConfiguration, logger: Logger
    ) throws(LoginServiceFiles.Unusable) {
        guard let settings = LoginServiceSettings(configuration.auth.http) else { return nil }
        let files = try LoginServiceFiles.load(settings)
        self.settings = settings
        self.files = Mutex(files)
        service = LoginService(
            settings, files, logger: logger, wallClock: { hermes_wall_ms() / 1_000 })
    }

    var figures: LoginServiceFigures { service.figures }

    func stop() { service.close() }

    // MARK: Logins

    /// What is remembered of a login; takes microseconds. `place` is that of the service in the order
    /// of sources.
    func recall(_ request: AuthenticationRequest, place: Int) -> LoginCheck.Asked? {
        service.recall(Self.question(request)).map { Self.asked($0, place) }
    }

    /// Asks the service; `then` is called once, on any thread.
    func ask(
        _ request: AuthenticationRequest, place: Int,
        _ then: @escaping @Sendable (LoginCheck.Asked) -> Void
    ) {
        service.ask(
            Self.question(request), origin: request.origin, isGone: request.isGone ?? { false }
        ) { outcome in
            switch outcome {
            case .answered(let answer): then(Self.asked(answer, place))
            case .outdated(let login): then(.decided(.admitted(Login(login))))
            case .unavailable(let reason):
                then(.decided(.serviceUnavailable(detail: "auth.http fails: \(reason)")))
            }
        }
    }

    private static func question(_ request: AuthenticationRequest) -> LoginQuestion {
        LoginQuestion(
            userName: request.userName, clientID: request.clientID,
            password: request.password, certificateName: request.certificateName,
            address: request.address.unmapped.hostText)
    }

    private static func asked(_ answer: ServiceAnswer, _ place: Int) -> LoginCheck.Asked {
        switch answer {
        case .allowed(let login): .decided(.admitted(Login(login)))
        case .denied(let reason):
            .decided(
                .denied(
                    detail: reason.map { "auth.http does not let it in: \($0)" }
                        ?? "auth.http does not let it in"))
        // As of a token that has expired: no guess of a password.
        case .ended:
            .decided(
                .tokenRefused(detail: "auth.http lets it in until a time that is over (expires_at)")
            )
        case .ignored: .passed(sources: place + 1)
        }
    }

    // MARK: Reload

    /// Takes the reloaded keys of the configuration.
    func use(_ configuration: HermesConfiguration) {
        guard let settings = LoginServiceSettings(configuration.auth.http) else { return }
        service.use(settings)
    }

    /// The files' part in a reload; if one cannot be used, the old ones stay.
    var part: Reload.Part {
        Reload.Part(name: "files of auth.http") { [self] in
            let read = try LoginServiceFiles.load(settings)
            let isNew = files.withLock { $0.isOther(than: read) }
            return Reload.Prepared(changed: isNew ? "auth.http" : nil) { [self] in
                files.withLock { $0 = read }
                service.use(read)
                return true
            }
        }
    }
}

extension Login {
    fileprivate init(_ login: ServiceLogin) {
        self.init(
            userName: login.userName.map { Array($0.utf8) }, allowance: login.allowance,
            endsAtMs: login.expiresAt.map { $0 * 1_000 })
    }
}
