import AdminTLS
import BrokerCore
import BrokerFeatures
import BrokerRuntime
import CLinux
import ConfiguredFiles
import Logging
import LoginServices
import Logins
import OperatorConfiguration
import OperatorLog
import PlainText
import Synchronization
import SystemFiles

/// Verifies tokens of the company's login with keys from a file, which a reload reads again, or from
/// a URL, which is fetched.
final class TokenLoginChecks: Sendable {
    private struct Settings {
        var auth: HermesConfiguration.Auth
        var keys: KeySet
        /// The stamp of the key file whose keys are in use; `nil` without a file.
        var stamp: FileStamp?
    }

    private let logins: TokenLogins
    private let file: KeyFile?
    /// `nil` when the keys come from a file.
    private let refresh: KeyRefresh?
    private let logger: Logger
    private let settings: Mutex<Settings>

    /// A file cannot be used. The description names setting, file and cure.
    struct Unusable: FileRefusal {
        let description: String
        let isTransient: Bool
    }

    /// Reads the key file, or the authorities of the URL's certificate; `nil` without tokens.
    init?(_ configuration: HermesConfiguration, logger: Logger) throws(Unusable) {
        let jwt = configuration.auth.jwt
        guard jwt.isOn else { return nil }
        let file = KeyFile(jwt)
        let stamp = file.flatMap { FileStamp(of: $0.path) }
        let keys = try Self.load(file)
        do throws(PEMFile.Unusable) {
            refresh = try KeyURL(jwt).map { (url) throws(PEMFile.Unusable) in
                try KeyRefresh(url, logger: logger)
            }
        } catch {
            throw Unusable(
                description: "auth.jwt.ca_file: \(error.description)",
                isTransient: error.isTransient)
        }
        self.file = file
        self.logger = logger
        logins = TokenLogins(TokenVerifier(keys: keys, policy: TokenPolicy(jwt)))
        settings = Mutex(Settings(auth: configuration.auth, keys: keys, stamp: stamp))
        sayRead(keys)
    }

    /// Without a file there is no key until the first is fetched.
    private static func load(_ file: KeyFile?) throws(Unusable) -> KeySet {
        guard let file else { return KeySet([]) }
        do throws(KeyFile.Unusable) {
            return try file.load()
        } catch {
            throw Unusable(
                description: "\(file.setting): \(error.description)",
                isTransient: error.isTransient)
        }
    }

    // MARK: Logins

    /// What is remembered of a token; takes microseconds.
    func recall(_ request: AuthenticationRequest) -> LoginCheck.Recollection {
        guard request.password.count <= TokenVerifier.longestToken else {
            return .known(
                .tokenRefused(
                    detail: "its token has \(request.password.count) bytes, more than 8192"))
        }
        guard let login = logins.recall(request.password, now: Self.now()) else { return .quick }
        return .known(answer(login, request))
    }

    /// Verifies a token in full.
    func verify(_ request: AuthenticationRequest) -> LoginAnswer {
        if refresh != nil, logins.verifier.keys.keys.isEmpty {
            return .busy(detail: "no keys have come from auth.jwt.jwks_url so far")
        }
        do throws(TokenRefusal) {
            return answer(try logins.verify(request.password, now: Self.now()), request)
        } catch .unknownKey(let name) {
            let refusal = TokenRefusal.unknownKey(name)
            guard let refresh, refresh.request() else {
                return .tokenRefused(detail: refusal.description)
            }
            return .busy(detail: "\(refusal.description); auth.jwt.jwks_url is asked for it")
        } catch {
            return .tokenRefused(detail: error.description)
        }
    }

    private func answer(_ login: TokenLogin, _ request: AuthenticationRequest) -> LoginAnswer {
        let auth = settings.withLock { $0.auth }
        guard auth.accepts(userName: request.userName, ofTokenFor: login.userName) else {
            return .tokenRefused(detail: TokenRefusal.otherUser(login.userName).description)
        }
        let endsAt = auth.jwt.expired == .close ? login.endsAt : nil
        return .admitted(
            Login(
                userName: Array(login.userName.utf8), allowance: login.allowance,
                endsAtMs: endsAt.map { $0 * 1_000 }))
    }

    /// UNIX seconds.
    private static func now() -> Int64 { hermes_wall_ms() / 1_000 }

    // MARK: Keys

    /// Keeps fetched keys up to date until the task is cancelled.
    func run() async {
        await refresh?.run { keys in
            self.settings.withLock { settings in
                settings.keys = keys
                return self.logins.use(
                    TokenVerifier(keys: keys, policy: TokenPolicy(settings.auth.jwt)))
            }
        }
    }

    /// True when keys are fetched.
    var fetches: Bool { refresh != nil }

    /// Takes the reloaded keys of the configuration.
    func use(_ auth: HermesConfiguration.Auth) {
        settings.withLock { settings in
            settings.auth = auth
            logins.use(TokenVerifier(keys: settings.keys, policy: TokenPolicy(auth.jwt)))
        }
    }

    /// The key file's part in a reload; if the file cannot be used, the old keys stay.
    var part: Reload.Part {
        Reload.Part(name: "key file of tokens") { [self] in
            guard let file else { return Reload.Prepared(changed: nil) { true } }
            let stamp = FileStamp(of: file.path)
            let keys = try Self.load(file)
            let isNew = settings.withLock { $0.stamp != stamp }
            return Reload.Prepared(changed: isNew ? file.setting : nil) { [self] in
                settings.withLock { settings in
                    (settings.keys, settings.stamp) = (keys, stamp)
                    logins.use(
                        TokenVerifier(keys: keys, policy: TokenPolicy(settings.auth.jwt)))
                }
                if isNew { sayRead(keys) }
                return true
            }
        }
    }

    private func sayRead(_ keys: KeySet) {
        guard let file else { return }
        var metadata: Logger.Metadata = [
            "file": "\(file.path.visible(limit: 4_096))", LogKeys.loginKeys: "\(keys.keys.count)",
        ]
        if !keys.skipped.isEmpty {
            metadata[LogKeys.hint] = "not used: \(keys.skipped.joined(separator: "; "))"
        }
        logger.info("Keys of tokens read", metadata: metadata)
    }
}
