import ArgumentParser
import PlainText

struct QueueDropCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop",
        abstract: "Drop what waits for a client; what is in flight to it stays.")

    @Argument(
        help: ArgumentHelp(
            "The client identifier. Put -- before one that begins with a dash.",
            valueName: "client"))
    var clientID: String

    @Flag(help: "Drop it; without this, only how much it would be is shown.")
    var yes = false

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        try ClientIdentifierArgument.check(clientID)
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        // A long queue is dropped in parts; each part is stored before the next.
        try await connection.withClient(in: context, patience: .seconds(60)) {
            client throws(CommandFailure) in
            guard yes else {
                let waiting = try await client.client(clientID).model.summary.queued
                throw CommandFailure(
                    .refused,
                    """
                    nothing was dropped: \(waiting) messages wait for \
                    "\(VisibleText.escaped(clientID))", and nobody could bring them back. Run it \
                    again with --yes.
                    """)
            }
            let answer = try await client.dropQueue(clientID)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : "Dropped \(answer.model.dropped) messages that waited for "
                        + "\"\(VisibleText.escaped(clientID))\".\n")
        }
    }
}
