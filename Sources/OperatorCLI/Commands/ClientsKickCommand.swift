import ArgumentParser
import PlainText

struct ClientsKickCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "kick", abstract: "Close a client's connection; its session stays.")

    @OptionGroup var target: ClientArgument

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let result = try await client.disconnect(target.clientID).model
            let name = VisibleText.escaped(result.clientID)
            if output.json {
                try context.console.print(JSONOutput.line(result))
            } else if result.disconnected {
                try context.console.print("Disconnected \"\(name)\".\n")
            } else {
                try context.console.print("\"\(name)\" was not connected.\n")
            }
        }
    }
}
