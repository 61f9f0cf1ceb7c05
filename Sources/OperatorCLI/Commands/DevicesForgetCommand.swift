import ArgumentParser
import PlainText

struct DevicesForgetCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget", abstract: "Forget the device of a client: it is woken no more.")

    @OptionGroup var target: ClientArgument
    @OptionGroup var device: DeviceNameOption
    @OptionGroup var connection: ConnectionOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            try await client.forgetDevice(of: target.clientID, named: device.name)
            try context.console.print("\(VisibleText.escaped(target.clientID)): forgotten\n")
        }
    }
}
