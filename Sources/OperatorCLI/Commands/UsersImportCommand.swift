import ArgumentParser
import BrokerAPI
import PlainText

struct UsersImportCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Give the running broker many users at once.",
        discussion: """
            The file has a JSON object on each line, with name, and password or password_hash. A \
            line that cannot be taken fails alone. The hash of a password takes the broker some 20 \
            ms; hashes are taken as they are.
            """)

    @Argument(
        help: ArgumentHelp("The file; - reads standard input.", valueName: "file"),
        completion: .file())
    var path: String

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            try await LineBatch(
                path: path, verb: "taken", printsResults: output.json
            ).run(in: context) { descriptor, name, take throws(CommandFailure) in
                try await client.importUsers(from: descriptor, named: name, take)
            }
        }
    }
}
