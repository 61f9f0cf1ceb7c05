import ArgumentParser
import Credentials
import PlainText

struct TokensRevokeCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke a token: its next request is refused, on open connections too.")

    @Argument(
        help: ArgumentHelp("The token's name.", valueName: "name"),
        transform: TokenNameArgument.parse)
    var name: TokenName

    @OptionGroup var file: TokenFileOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        let path = try file.path(context.environment)
        let place = VisibleText.escaped(path)
        let wasThere: Bool
        do throws(TokenFileError) {
            wasThere = try TokenFile.update(path: path, creating: false) { $0.remove(name) }
        } catch {
            throw CommandFailure(error)
        }
        guard wasThere else {
            throw CommandFailure(
                .refused,
                """
                there is no token "\(name)" in \(place). \
                See which there are: hermesctl tokens list --tokens-file '\(place)'
                """)
        }
        try context.console.print("Revoked \"\(name)\" in \(place).\n")
    }
}
