import ArgumentParser
import PlainText

struct ScheduledCancelCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Remove a message before it is published.")

    @Argument(
        help: ArgumentHelp("The message's identifier, as its publish answered.", valueName: "id"))
    var messageID: String

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if messageID.isEmpty { throw ValidationError("The identifier is empty.") }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.cancelScheduled(messageID)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : "Cancelled \"\(VisibleText.escaped(answer.model.messageID))\".\n")
        }
    }
}
