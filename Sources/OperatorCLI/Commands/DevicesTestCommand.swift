import ArgumentParser
import BrokerAPI
import PlainText

struct DevicesTestCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "test",
        abstract: "Send a notification to a client's device now, and say what became of it.",
        discussion: "Exits with 0 when the push service has taken it, and with 1 otherwise.")

    @OptionGroup var target: ClientArgument
    @OptionGroup var device: DeviceNameOption
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.tryWake(of: target.clientID, named: device.name)
            let trial = answer.model
            try context.console.print(
                output.json ? JSONOutput.line(answer.json) : Self.rendered(trial))
            if !trial.outcome.hasBytes(of: WakeResult.accepted.name) {
                throw CommandFailure(.refused, "")
            }
        }
    }

    static func rendered(_ trial: WakeTrial) -> String {
        var list = FieldList()
        list.add("notification", trial.outcome.replacing("_", with: " "))
        if let reason = trial.reason { list.add("reason", reason) }
        return list.rendered()
    }
}
