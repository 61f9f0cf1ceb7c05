import ArgumentParser
import Credentials
import PlainText

struct TokensCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tokens", abstract: "Keep the tokens of the HTTP API.",
        discussion: """
            A token lets one program in, with the scopes that it needs: publish, read or admin \
            (everything). A running broker knows a new token, and forgets a revoked one, at the next \
            request.
            """,
        subcommands: [
            TokensCreateCommand.self, TokensRevokeCommand.self, TokensListCommand.self,
        ])
}

/// Options that choose the token file.
struct TokenFileOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The token file (default: tokens in the data directory).", valueName: "file"),
        completion: .file())
    var tokensFile: String?

    @Option(
        help: ArgumentHelp("The broker's data directory (default: data).", valueName: "folder"),
        completion: .directory)
    var dataDirectory: String?

    @Option(
        help: ArgumentHelp(
            "The broker's configuration, whose admin.tokens_file or data_directory is used.",
            valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    func validate() throws {
        if tokensFile?.isEmpty == true { throw ValidationError("--tokens-file is empty.") }
        if tokensFile != nil && dataDirectory != nil {
            throw ValidationError(
                "Give either --tokens-file or --data-directory: they name one file.")
        }
    }

    func path(_ environment: [String: String]) throws(CommandFailure) -> String {
        if let tokensFile { return tokensFile }
        if let dataDirectory { return "\(dataDirectory)/\(TokenFile.defaultName)" }
        let settings = try LocalConfiguration.load(config: config, environment)
        return settings.admin.tokensFile ?? "\(settings.dataDirectory)/\(TokenFile.defaultName)"
    }
}

/// A token's name given as an argument.
enum TokenNameArgument {
    /// Throws the parser's error for a name that the file cannot hold.
    static func parse(_ text: String) throws -> TokenName {
        do {
            return try TokenName(text)
        } catch {
            throw ValidationError("\"\(VisibleText.escaped(text))\": \(error)")
        }
    }
}
