import ArgumentParser
import ConfiguredFiles
import Credentials
import LoginServices
import Logins
import OperatorConfiguration
import PlainText
import SystemFiles

struct AuthCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "auth", abstract: "Ask who would be let in.",
        subcommands: [AuthCheckCommand.self])
}

struct AuthCheckCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Ask whether a password or token would be let in, by which source, and why not.",
        discussion: """
            The password or token is read from standard input, or from a file; it is never an \
            argument, which others on this machine could see. Configuration, password file and \
            keys are read as the broker reads them, auth.jwt.jwks_url is fetched, and the service \
            of auth.http is asked; a running broker is not. - as USER stands for an empty user name. \
            With --certificate-name the client has a certificate of that name, and brings no password \
            unless --file names one. Exit code 0 says that the client would be let in, 1 that it \
            would not.
            """)

    @Argument(help: ArgumentHelp("The user name in CONNECT, or - for none.", valueName: "user"))
    var user: String

    @Option(
        help: ArgumentHelp("The broker's configuration.", valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    @Option(
        help: ArgumentHelp("File with the password or token, one line.", valueName: "path"),
        completion: .file())
    var file: String?

    @Option(
        help: ArgumentHelp(
            "The user name that the client's certificate proves.", valueName: "name"))
    var certificateName: String?

    @Option(help: ArgumentHelp("The client identifier that auth.http is told.", valueName: "id"))
    var client = ""

    @Option(help: ArgumentHelp("The address that auth.http is told.", valueName: "address"))
    var address = "127.0.0.1"

    @OptionGroup var output: OutputOptions

    /// A source that does not know the login, and the reason, a clause.
    private struct Passed: Encodable {
        var source: String
        var reason: String

        init(_ source: LoginOrder.Source, _ reason: String) {
            self.source = source.rawValue
            self.reason = reason
        }
    }

    /// The output of `--json`.
    private struct Answer: Encodable {
        /// Whether the client would be let in.
        var allowed: Bool
        /// The sources that were asked before, in their order.
        var passed: [Passed] = []
        /// "jwt", "file", "http" or "certificate"; left out when no source knows the login.
        var source: String?
        /// Why it would not; left out when it would.
        var reason: String?
        /// True when the source gave no answer, and the client would be told to come again; left out
        /// otherwise.
        var unavailable: Bool?
        /// One word for the reason; of tokens only.
        var kind: String?
        var userName: String?
        /// UNIX seconds at which the token ends.
        var expiresAt: Int64?
        /// Algorithm and key of the token.
        var algorithm: String?
        var keyName: String?
        /// True when the token, or the service, narrows the access rules.
        var narrows: Bool?
        /// True when the service lets the client do what no access rule allows.
        var superuser: Bool?

        enum CodingKeys: String, CodingKey {
            case allowed, passed, source, reason, unavailable, kind
            case userName = "user_name"
            case expiresAt = "expires_at"
            case algorithm
            case keyName = "key_id"
            case narrows, superuser
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let configuration = try LocalConfiguration.load(config: config, context.environment)
        guard certificateName == nil || configuration.takesNamesFromCertificates else {
            throw CommandFailure(
                .usage,
                """
                no listener of the configuration takes the names of users from their certificates. \
                Give --config with one that sets tls.user_name_from_certificate.
                """)
        }
        guard configuration.checksLogins || certificateName != nil else {
            throw CommandFailure(
                .usage,
                """
                the configuration has neither users nor keys of tokens nor a service to ask, so every \
                user name is unproven. Give --config with one that sets password_file, auth.jwt or \
                auth.http.
                """)
        }
        let password = certificateName == nil || file != nil ? try password(context) : []
        let users = try users(configuration, context.console)
        let userName = user == "-" ? [] : Array(user.utf8)
        let answer = try await decide(password, userName, users, configuration.auth)
        try context.console.print(
            output.json ? JSONOutput.line(answer) : Self.text(answer))
        guard answer.allowed else { throw CommandFailure(.refused, "") }
    }

    // MARK: Sources

    /// Asks the sources in their order, as the broker does.
    private func decide(
        _ password: [UInt8], _ userName: [UInt8], _ users: PasswordVerifier?,
        _ auth: HermesConfiguration.Auth
    ) async throws(CommandFailure) -> Answer {
        let order = LoginOrder(auth, hasPasswordFile: users != nil)
        var passed: [Passed] = []
        var place = 0
        while let next = order.step(
            for: password, byCertificate: certificateName != nil, after: place,
            isUser: { users?.knows(userName) == true })
        {
            passed += order.passed(place..<next.place).map { Passed($0, $1) }
            place = next.place + 1
            var answer: Answer
            switch next.source {
            case .certificate:
                answer = Answer(allowed: true, source: "certificate", userName: certificateName)
            case .jwt: answer = try await check(token: password, userName, auth)
            case .file: answer = check(password, userName, users)
            case .http:
                guard let decided = try await ask(password, userName, auth.http) else {
                    passed.append(
                        Passed(.http, "the service does not know it (ignore)"))
                    continue
                }
                answer = decided
            }
            answer.passed = passed
            return answer
        }
        passed += order.passed(place..<max(place, order.sources.count)).map { Passed($0, $1) }
        return Answer(
            allowed: false, passed: passed,
            reason: "no source knows it, and there is no password file")
    }

    private func check(
        _ password: [UInt8], _ userName: [UInt8], _ users: PasswordVerifier?
    ) -> Answer {
        guard users?.verify(userName: userName, password: password) == true else {
            return Answer(
                allowed: false, source: "file",
                reason: users?.knows(userName) == true
                    ? "the password is wrong" : "there is no such user")
        }
        return Answer(allowed: true, source: "file", userName: user)
    }

    /// Asks the company's service; `nil` when it does not know the login.
    private func ask(
        _ password: [UInt8], _ userName: [UInt8], _ http: HermesConfiguration.HTTPLogins
    ) async throws(CommandFailure) -> Answer? {
        guard let settings = LoginServiceSettings(http) else { return nil }
        let files: LoginServiceFiles
        do throws(LoginServiceFiles.Unusable) {
            files = try LoginServiceFiles.load(settings)
        } catch {
            throw CommandFailure(.localFile, error.description)
        }
        let question = LoginQuestion(
            userName: userName, clientID: Array(client.utf8), password: password,
            certificateName: certificateName.map { Array($0.utf8) }, address: address)
        let now = UTCTime.now().unixSeconds
        switch await settings.askOnce(question, files, wallClock: now) {
        case .answered(.ignored): return nil
        case .answered(.denied(let reason)):
            return Answer(
                allowed: false, source: "http",
                reason: reason.map { "the service does not let it in: \($0)" }
                    ?? "the service does not let it in")
        case .answered(.ended):
            return Answer(
                allowed: false, source: "http",
                reason: "the service lets it in until a time that is over (expires_at)")
        case .answered(.allowed(let login)), .outdated(let login):
            let claimed = userName.isEmpty ? nil : String(decoding: userName, as: UTF8.self)
            guard let userName = login.userName ?? certificateName ?? claimed else {
                return Answer(
                    allowed: false, source: "http",
                    reason: "the service lets it in, and neither CONNECT nor it names a user")
            }
            return Answer(
                allowed: true, source: "http", userName: userName,
                expiresAt: login.expiresAt, narrows: login.narrows, superuser: login.isSuperuser)
        case .unavailable(let reason):
            return Answer(allowed: false, source: "http", reason: reason, unavailable: true)
        }
    }

    // MARK: Tokens

    private func check(
        token: [UInt8], _ userName: [UInt8], _ auth: HermesConfiguration.Auth
    ) async throws(CommandFailure) -> Answer {
        let verifier = TokenVerifier(keys: try await keys(auth.jwt), policy: TokenPolicy(auth.jwt))
        do throws(TokenRefusal) {
            let login = try verifier.verify(token, now: UTCTime.now().unixSeconds)
            guard auth.accepts(userName: userName, ofTokenFor: login.userName) else {
                throw TokenRefusal.otherUser(login.userName)
            }
            return Answer(
                allowed: true, source: "jwt", userName: login.userName,
                expiresAt: login.expiresAt, algorithm: login.algorithm.rawValue,
                keyName: login.keyIdentifier?.string, narrows: login.allowance != nil)
        } catch {
            return Answer(
                allowed: false, source: "jwt", reason: error.description, kind: error.name)
        }
    }

    private func keys(_ jwt: HermesConfiguration.JWT) async throws(CommandFailure) -> KeySet {
        if let file = KeyFile(jwt) {
            do throws(KeyFile.Unusable) {
                return try file.load()
            } catch {
                throw CommandFailure(.localFile, "\(file.setting): \(error.description)")
            }
        }
        guard let url = KeyURL(jwt) else { return KeySet([]) }
        let (keys, failure) = await url.fetchOnce()
        guard let keys else {
            throw CommandFailure(
                .localFile, "auth.jwt.jwks_url: \(VisibleText.escaped(url.url)): \(failure).")
        }
        return keys
    }

    // MARK: Input

    private func password(_ context: CommandContext) throws(CommandFailure) -> [UInt8] {
        guard let file else {
            let secret = try PasswordPrompt.read(from: context.standardInput)
            return secret.withBytes { Array($0) }
        }
        let opened: OpenFile
        do throws(SystemError) {
            opened = try OpenFile(file, waits: true)
        } catch {
            throw CommandFailure(.localFile, error.complaint)
        }
        let secret = try PasswordPrompt.read(from: opened.descriptor)
        return secret.withBytes { Array($0) }
    }

    private func users(
        _ configuration: HermesConfiguration, _ console: Console
    ) throws(CommandFailure) -> PasswordVerifier? {
        guard let path = configuration.passwordFile else { return nil }
        do throws(PasswordFileError) {
            let file = try PasswordFile.load(path: path)
            warnOfAccess(file, console)
            return PasswordVerifier(file)
        } catch {
            throw CommandFailure(error)
        }
    }

    // MARK: Output

    private static func text(_ answer: Answer) -> String {
        let passed = answer.passed.map { "\($0.source) passes it on: \($0.reason)\n" }.joined()
        let source = answer.source.map { " by \($0)" } ?? ""
        guard answer.allowed else {
            let verdict = answer.unavailable == true ? "not decided" : "refused"
            return "\(passed)\(verdict)\(source): \(answer.reason ?? "")\n"
        }
        var text = "\(passed)let in\(source) as \(VisibleText.quoted(answer.userName ?? ""))"
        if let algorithm = answer.algorithm {
            let key = answer.keyName.map { ", key \(VisibleText.quoted($0))" } ?? ""
            text += " (\(algorithm)\(key))"
            text += answer.expiresAt.map { " until \(UTCTime(clamping: $0))" } ?? " without an end"
        }
        if answer.algorithm == nil, let end = answer.expiresAt {
            text += " until \(UTCTime(clamping: end))"
        }
        text += "\n"
        if answer.superuser == true { text += "The access rules are not asked (superuser).\n" }
        if answer.narrows == true {
            let source = answer.source == "http" ? "service" : "token"
            text += "The \(source) narrows the topics that the access rules allow.\n"
        }
        return text
    }
}
