import ArgumentParser
import BrokerAPI
import PlainText

struct PushesCancelCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel what has not left of a push.")

    @OptionGroup var target: PushArgument
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.cancelPush(target.pushID)
            try context.console.print(
                output.json ? JSONOutput.line(answer.json) : Self.text(answer.model))
        }
    }

    private static func text(_ push: PushStatus) -> String {
        let name = "\"\(VisibleText.escaped(push.pushID))\""
        let had = "\(push.reached) clients had been reached."
        return push.state == .done
            ? "The push \(name) was done already; \(had)\n" : "Cancelled \(name); \(had)\n"
    }
}
