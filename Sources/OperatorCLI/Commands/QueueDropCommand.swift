import ArgumentParser
import PlainText

struct QueueDropCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop",
        abstract: "Drop what waits for a client; what is in flight to it stays.")

    @OptionGroup var target: ClientArgument

    @Flag(help: "Drop it; without this, only how much it would be is shown.")
    var yes = false

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        // A long queue is dropped in parts; each part is stored before the next.
        try await connection.withClient(in: context, patience: .seconds(60)) {
            client throws(CommandFailure) in
            guard yes else {
                let waiting = try await client.client(target.clientID).model.summary.queued
                throw CommandFailure(
                    .refused,
                    """
                    nothing was dropped: \(waiting) messages wait for \
                    "\(VisibleText.escaped(target.clientID))", and nobody could bring them back. Run it \
                    again with --yes.
                    """)
            }
            let answer = try await client.dropQueue(target.clientID)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : "Dropped \(answer.model.dropped) messages that waited for "
                        + "\"\(VisibleText.escaped(target.clientID))\".\n")
        }
    }
}
