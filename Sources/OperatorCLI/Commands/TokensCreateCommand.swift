import ArgumentParser
import Credentials
import PlainText

struct TokensCreateCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Make a token, and print it once.",
        discussion: """
            The token goes to standard output, and everything else to standard error: \
            hermesctl tokens create billing --scope publish > billing.token. The file keeps only its \
            digest, so nobody can print it again.
            """)

    @Argument(
        help: ArgumentHelp(
            "What to call it: letters, digits, \".\", \"_\" and \"-\". Logs name it.",
            valueName: "name"),
        transform: TokenNameArgument.parse)
    var name: TokenName

    @Option(
        name: .customLong("scope"), parsing: .singleValue,
        help: ArgumentHelp(
            "publish, read, or admin (everything); repeat it for more.", valueName: "scope"))
    var scopes: [ScopeArgument]

    @Option(
        help: ArgumentHelp(
            "After how long it is refused, such as 90d, 12h or 30m (default: never).",
            valueName: "time"),
        transform: LifetimeArgument.parse)
    var expires: LifetimeArgument?

    @Option(
        name: .customLong("topics"), parsing: .singleValue,
        help: ArgumentHelp(
            "Publishing is bound to topics that this filter matches, such as 'orders/#'; repeat it for more.",
            valueName: "filter"),
        transform: BoundArguments.topic)
    var topics: [TokenTopic] = []

    @Option(
        help: ArgumentHelp(
            "Publishing is bound to so many messages a second, minute or hour, such as 500/s.",
            valueName: "rate"),
        transform: BoundArguments.rate)
    var rate: TokenRate?

    @OptionGroup var file: TokenFileOptions

    func validate() throws {
        guard topics.count <= TokenBounds.maximumTopicCount else {
            throw ValidationError(
                "There are more than \(TokenBounds.maximumTopicCount) --topics. Make several tokens."
            )
        }
        let words = Set(scopes.map(\.scope))
        guard topics.isEmpty && rate == nil || words.contains(.publish) && !words.contains(.admin)
        else {
            throw ValidationError(
                "--topics and --rate bind publishing: give --scope publish, and not admin.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let path = try file.path(context.environment)
        let secret = TokenSecret.prefix + TokenSecret.make()
        let created = UTCTime(clamping: context.now() / 1_000)
        // The parser requires at least one scope.
        guard let scopes = TokenScopes(scopes.map(\.scope)) else {
            throw CommandFailure(.usage, "no scope is named. Give --scope publish, read or admin.")
        }
        let entry = TokenFile.Entry(
            name: name, scopes: scopes, created: created,
            expires: expires.map { UTCTime(clamping: created.unixSeconds + $0.seconds) },
            digest: SHA256Digest(of: Array(secret.utf8)),
            bounds: TokenBounds(topics: topics, rate: rate))
        let addition: TokenFile.Addition
        do throws(TokenFileError) {
            addition = try TokenFile.update(path: path, creating: true) { $0.add(entry) }
        } catch {
            throw CommandFailure(error)
        }
        let place = VisibleText.escaped(path)
        switch addition {
        case .added: break
        case .nameTaken:
            throw CommandFailure(
                .refused,
                """
                there is a token "\(name)" in \(place) already. Choose another name, or revoke that \
                one first: hermesctl tokens revoke \(name)
                """)
        case .full:
            throw CommandFailure(
                .refused,
                """
                there are \(TokenFile.maximumCount) tokens in \(place), and no more can be. Revoke \
                some: hermesctl tokens revoke NAME
                """)
        }
        let end = entry.expires.map { "until \($0)" } ?? "until it is revoked"
        context.console.complain(
            """
            made the token "\(name)" in \(place), with the scopes \(scopes), \(end). \
            It is shown this once:
            """)
        try context.console.print(secret + "\n")
    }
}

/// A scope as it is written on the command line.
struct ScopeArgument: ExpressibleByArgument {
    let scope: TokenScope

    init?(argument: String) {
        guard let scope = TokenScope(rawValue: argument) else { return nil }
        self.scope = scope
    }

    static var allValueStrings: [String] { TokenScope.allCases.map(\.rawValue) }
}

/// The bounds of a token as they are written on the command line.
enum BoundArguments {
    /// Throws the parser's error, which says what a filter is.
    static func topic(_ text: String) throws -> TokenTopic {
        if let topic = TokenTopic(text) { return topic }
        throw ValidationError(
            "\"\(VisibleText.escaped(text))\" cannot bind a token. Give \(TokenTopic.rules).")
    }

    /// Throws the parser's error, which says what a rate is.
    static func rate(_ text: String) throws -> TokenRate {
        if let rate = TokenRate(text) { return rate }
        throw ValidationError(
            "\"\(VisibleText.escaped(text))\" is no rate. Give \(TokenRate.rules).")
    }
}

/// A span of 1 minute to 100 years, written as a whole number with m, h or d.
struct LifetimeArgument {
    let seconds: Int64

    private static let range: ClosedRange<Int64> = 60...100 * 365 * 86_400

    /// Throws the parser's error, which lists the valid forms.
    static func parse(_ text: String) throws -> LifetimeArgument {
        if let lifetime = LifetimeArgument(text) { return lifetime }
        throw ValidationError(
            """
            "\(VisibleText.escaped(text))" is no time that a token can have. Give a whole number \
            with m (minutes), h (hours) or d (days), from 1m to 36500d, such as 90d; without \
            --expires it never ends.
            """)
    }

    private init?(_ argument: String) {
        // Seconds are too short for a token.
        guard argument.utf8.last != UInt8(ascii: "s"),
            let seconds = TimeSpanText.seconds(argument), Self.range.contains(seconds)
        else { return nil }
        self.seconds = seconds
    }
}
