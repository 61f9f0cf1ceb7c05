import ArgumentParser
import BrokerAPI
import PlainText

struct BansLiftCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "lift", abstract: "Let somebody in again.")

    @Argument(
        help: ArgumentHelp(
            "The ban, as hermesctl bans list names it.", valueName: "id"),
        transform: BanArgument.parse)
    var ban: Ban.ID

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.lift(ban: ban.text)
            let whom = VisibleText.escaped(BansListCommand.target(of: answer.model.lifted))
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json) : "Lifted the ban of \(whom).\n")
        }
    }
}

/// A ban's identifier given as an argument.
enum BanArgument {
    /// Throws the parser's error, which says what an identifier looks like.
    static func parse(_ text: String) throws -> Ban.ID {
        if let id = Ban.ID(text) { return id }
        throw ValidationError(
            """
            "\(VisibleText.escaped(text))" is no ban. Give the eight digits that hermesctl bans \
            list shows.
            """)
    }
}
