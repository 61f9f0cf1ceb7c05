import ArgumentParser
import BrokerAPI

struct ConfigShowCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show the configuration of the running broker, and where each value comes from.")

    @Flag(help: "Only values that are not the built-in ones.")
    var changed = false

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.configuration()
            let settings = answer.model.settings.filter {
                !changed || $0.from != "default" || $0.atNextStart != nil
            }
            try context.console.print(
                output.json
                    ? JSONOutput.line(ConfiguredSettings(settings: settings))
                    : Self.rendered(settings, width: context.console.outputColumns))
        }
    }

    static func rendered(_ settings: [ConfiguredSetting], width: Int?) -> String {
        let isAnyWaiting = settings.contains { $0.atNextStart != nil }
        var columns: [Table.Column] = [
            .init(title: "KEY"), .init(title: "VALUE", isFlexible: true),
            .init(title: "FROM", isFlexible: true),
        ]
        if isAnyWaiting { columns.append(.init(title: "AT THE NEXT START")) }
        var table = Table(columns)
        for setting in settings {
            let next = setting.atNextStart.map { $0.isEmpty ? "not set" : $0 } ?? Wording.absent
            table.append(
                [
                    setting.key, setting.value.isEmpty ? Wording.absent : setting.value,
                    setting.from,
                ] + (isAnyWaiting ? [next] : []))
        }
        return table.rendered(width: width)
    }
}

struct ConfigSetCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Change keys of the running broker, until its next start.",
        discussion: """
            For limits and logging.level. Write a key without a value, as limits.queue_messages=, to \
            give it back its configured one. What shall stay belongs into the file.
            """)

    @Argument(help: ArgumentHelp("Keys with their values.", valueName: "key=value"))
    var changes: [String]

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        for change in changes where !change.contains("=") || change.hasPrefix("=") {
            throw ValidationError("Write KEY=VALUE, such as logging.level=debug.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        var values: [String: String?] = [:]
        for change in changes {
            let parts = change.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            values.updateValue(parts[1].isEmpty ? nil : String(parts[1]), forKey: String(parts[0]))
        }
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.changeConfiguration(values)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : ConfigShowCommand.rendered(
                        answer.model.settings, width: context.console.outputColumns))
        }
    }
}
