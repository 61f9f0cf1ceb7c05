import ArgumentParser
import BrokerAPI
import PlainText

struct DevicesShowCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show the device of a client.")

    @OptionGroup var target: ClientArgument
    @OptionGroup var device: DeviceNameOption
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.device(of: target.clientID, named: device.name)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : Self.rendered(answer.model, now: context.now()))
        }
    }

    static func rendered(_ device: DeviceModel, now: Int64) -> String {
        var list = FieldList()
        list.add("client", device.clientID)
        if let name = device.name { list.add("name", name) }
        list.add("kind", device.kind)
        list.add("token", device.token)
        if !device.bundle.isEmpty { list.add("app", device.bundle) }
        if device.kind.hasBytes(of: "apns") { list.add("environment", device.environment) }
        list.add("user", device.userName ?? "any")
        if let zone = device.timeZone { list.add("time zone", zone) }
        list.add("registered", Wording.moment(device.registeredAtMs, now: now))
        list.startGroup()
        let held = device.heldUntilMs.map { ", \(Wording.relative($0, now: now))" } ?? ""
        list.add("wake", Wording.wake(device.wake) + held)
        list.add("messages that ask", "\(device.waiting)")
        if let outcome = device.lastOutcome {
            let reason = device.lastReason.map { " (\($0))" } ?? ""
            list.add("last wake", outcome.replacing("_", with: " ") + reason)
        }
        if let time = device.lastAnsweredAtMs {
            list.add("answered", Wording.moment(time, now: now))
        }
        return list.rendered()
    }
}
