import ArgumentParser
import BrokerAPI
import PlainText

struct ConfigReloadCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Have the running broker read its configuration and files again.",
        discussion: """
            As SIGHUP does, but it says what came of it: exit code 1 with every mistake when the \
            broker refuses, and then everything stays as it was.
            """)

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        // Files with many users take a while to read.
        try await connection.withClient(in: context, patience: .seconds(60)) {
            client throws(CommandFailure) in
            let answer = try await client.reloadConfiguration()
            try context.console.print(
                output.json ? JSONOutput.line(answer.json) : Self.rendered(answer.model))
        }
    }

    static func rendered(_ reload: ConfigurationReload) -> String {
        func list(_ keys: [String]) -> String {
            keys.map { VisibleText.escaped($0) }.joined(separator: " ")
        }
        var text = "Changed: \(reload.changed.isEmpty ? "nothing" : list(reload.changed))\n"
        if !reload.atNextStart.isEmpty {
            text += "At the next start: \(list(reload.atNextStart))\n"
        }
        return text
    }
}
