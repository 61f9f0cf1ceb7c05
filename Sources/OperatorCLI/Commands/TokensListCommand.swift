import ArgumentParser
import BrokerAPI
import Credentials
import PlainText

struct TokensListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the tokens, in the order of the file.")

    @OptionGroup var file: TokenFileOptions
    @OptionGroup var output: OutputOptions

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
            TokenSummary(
                name: entry.name.text, scopes: entry.scopes.names,
                topics: entry.bounds.topics.map(\.text), rate: entry.bounds.rate?.description,
                created: entry.created.description, expires: entry.expires?.description,
                expired: entry.isExpired(at: now))
        }
        try context.console.print(
            output.json
                ? JSONOutput.line(TokenList(tokens: tokens))
                : Self.rendered(tokens, width: context.console.outputColumns))
    }

    static func rendered(_ tokens: [TokenSummary], width: Int?) -> String {
        var table = Table([
            .init(title: "TOKEN", isFlexible: true), .init(title: "SCOPES"),
            .init(title: "TOPICS", isFlexible: true), .init(title: "RATE"),
            .init(title: "CREATED"), .init(title: "EXPIRES"),
        ])
        for token in tokens {
            let end = token.expires.map { token.expired ? "\($0) (expired)" : $0 } ?? "never"
            let topics = token.topics.isEmpty ? "all" : token.topics.joined(separator: " ")
            table.append([
                token.name, token.scopes.joined(separator: ","),
                token.scopes.map { ForeignText($0) } == ["read"] ? "-" : topics, token.rate ?? "-",
                token.created, end,
            ])
        }
        return table.rendered(width: width)
    }
}
