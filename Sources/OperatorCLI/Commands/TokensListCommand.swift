import ArgumentParser
import Credentials

struct TokensListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the tokens, in the order of the file.")

    @OptionGroup var file: TokenFileOptions
    @OptionGroup var output: OutputOptions

    /// The output of `--json`.
    struct TokenList: Encodable {
        struct Token: Encodable {
            let name: String
            let scopes: [String]
            let created: String
            /// `nil` for a token that never expires.
            let expires: String?
            let expired: Bool
        }

        let tokens: [Token]
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let path = try file.path(context.environment)
        let loaded: TokenFile
        do throws(TokenFileError) {
            loaded = try TokenFile.load(path: path)
        } catch .missing {
            // A missing file means that no token has been made yet, which is no error.
            loaded = TokenFile()
        } catch {
            throw CommandFailure(error)
        }
        if let warning = loaded.accessWarning { context.console.complain("warning: \(warning)") }
        let now = UTCTime(clamping: context.now() / 1_000)
        let tokens = loaded.entries.map { entry in
            TokenList.Token(
                name: entry.name.text, scopes: entry.scopes.names,
                created: entry.created.description, expires: entry.expires?.description,
                expired: entry.isExpired(at: now))
        }
        try context.console.print(
            output.json
                ? JSONOutput.line(TokenList(tokens: tokens))
                : Self.rendered(tokens, width: context.console.outputColumns))
    }

    static func rendered(_ tokens: [TokenList.Token], width: Int?) -> String {
        var table = Table([
            .init(title: "TOKEN", isFlexible: true), .init(title: "SCOPES"),
            .init(title: "CREATED"), .init(title: "EXPIRES"),
        ])
        for token in tokens {
            let end = token.expires.map { token.expired ? "\($0) (expired)" : $0 } ?? "never"
            table.append([token.name, token.scopes.joined(separator: ","), token.created, end])
        }
        return table.rendered(width: width)
    }
}
