import ArgumentParser
import ConfiguredFiles
import Credentials
import LoginKeys
import LoginTokens
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
            keys are read as the broker reads them, and auth.jwt.jwks_url is fetched; a running \
            broker is not asked. - as USER stands for an empty user name. Exit code 0 says that \
            the client would be let in, 1 that it would not.
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

    @OptionGroup var output: OutputOptions

    /// The output of `--json`.
    private struct Answer: Encodable {
        /// Whether the client would be let in.
        var allowed: Bool
        /// "jwt" or "file"; left out when no source knows the login.
        var source: String?
        /// Why it would not; left out when it would.
        var reason: String?
        /// One word for the reason; of tokens only.
        var kind: String?
        var userName: String?
        /// UNIX seconds at which the token ends.
        var expiresAt: Int64?
        /// Algorithm and key of the token.
        var algorithm: String?
        var keyName: String?
        /// True when the token narrows the access rules.
        var narrows: Bool?

        enum CodingKeys: String, CodingKey {
            case allowed, source, reason, kind
            case userName = "user_name"
            case expiresAt = "expires_at"
            case algorithm
            case keyName = "key_id"
            case narrows
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let configuration = try LocalConfiguration.load(config: config, context.environment)
        guard configuration.checksLogins else {
            throw CommandFailure(
                .usage,
                """
                the configuration has neither users nor keys of tokens, so every user name is \
                unproven. Give --config with one that sets password_file or auth.jwt.
                """)
        }
        let password = try password(context)
        let users = try users(configuration, context.console)
        let userName = user == "-" ? [] : Array(user.utf8)
        let source = configuration.auth.source(
            for: password, isKnown: users.map { users in { users.knows(userName) } })
        let answer: Answer
        switch source {
        case .jwt?: answer = try await check(token: password, userName, configuration.auth)
        case .file?:
            let isRight = users?.verify(userName: userName, password: password) ?? false
            answer =
                isRight
                ? Answer(allowed: true, source: "file", userName: user)
                : Answer(
                    allowed: false, source: "file",
                    reason: users?.knows(userName) == true
                        ? "the password is wrong" : "there is no such user")
        case nil:
            answer = Answer(
                allowed: false, reason: "it is no token, and there is no password file")
        }
        try context.console.print(
            output.json ? JSONOutput.line(answer) : Self.text(answer))
        guard answer.allowed else { throw CommandFailure(.refused, "") }
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
                keyName: login.keyIdentifier, narrows: login.allowance != nil)
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
        let source = answer.source.map { " by \($0)" } ?? ""
        guard answer.allowed else {
            return "refused\(source): \(answer.reason ?? "")\n"
        }
        var text = "let in\(source) as \(VisibleText.quoted(answer.userName ?? ""))"
        if let algorithm = answer.algorithm {
            let key = answer.keyName.map { ", key \(VisibleText.quoted($0))" } ?? ""
            text += " (\(algorithm)\(key))"
            text += answer.expiresAt.map { " until \(UTCTime(clamping: $0))" } ?? " without an end"
        }
        text += "\n"
        if answer.narrows == true {
            text += "The token narrows the topics that the access rules allow.\n"
        }
        return text
    }
}
