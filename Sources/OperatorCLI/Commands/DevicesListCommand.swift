import ArgumentParser
import BrokerAPI
import PlainText

struct DevicesListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List devices, their wakes and the last answers.")

    @Option(help: ArgumentHelp("Those of this client only.", valueName: "client"))
    var client: String?

    @OptionGroup var most: ListLimitOption
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if let client { try ClientArgument.check(client) }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let page = try await client.devices(of: self.client, limit: most.limit)
            guard !output.json else {
                try context.console.print(JSONOutput.line(page))
                return
            }
            try context.console.print(
                Self.rendered(
                    page.devices, now: context.now(), width: context.console.outputColumns))
            if page.next != nil {
                context.console.complain(
                    "there are more than these \(page.devices.count). Raise --limit.")
            }
        }
    }

    static func rendered(_ devices: [DeviceModel], now: Int64, width: Int?) -> String {
        var table = Table([
            .init(title: "CLIENT", isFlexible: true), .init(title: "KIND"), .init(title: "TOKEN"),
            .init(title: "WAKE"), .init(title: "WAITING", alignment: .right),
            .init(title: "LAST", isFlexible: true), .init(title: "ANSWERED", alignment: .right),
        ])
        let sorted = devices.sorted { ForeignText($0.clientID) < ForeignText($1.clientID) }
        for device in sorted {
            let kind =
                device.environment.hasBytes(of: "sandbox") ? "\(device.kind) sandbox" : device.kind
            table.append([
                device.name.map { "\(device.clientID) \($0)" } ?? device.clientID, kind,
                device.token,
                Wording.wake(device.wake), "\(device.waiting)",
                last(of: device),
                device.lastAnsweredAtMs.map { Wording.age(of: $0, now: now) + " ago" }
                    ?? Wording.absent,
            ])
        }
        return table.rendered(width: width)
    }

    /// The end of the last wake since the start, with the push service's word for it.
    static func last(of device: DeviceModel) -> String {
        let parts = [device.lastOutcome?.replacing("_", with: " "), device.lastReason]
            .compactMap { $0 }
        return parts.isEmpty ? Wording.absent : parts.joined(separator: ": ")
    }
}
