import BrokerAPI
import ArgumentParser
import PlainText
import Store
import SystemFiles

struct StoreAcceptLossCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept-loss",
        abstract: "Accept that damaged data is lost, so that the broker counts as ready again.",
        discussion: """
            Damaged files stay under another name. A running broker does it itself; without one, \
            the data directory of this machine is changed.
            """)

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        if connection.url == nil, connection.socket == nil {
            let directory = try connection.dataDirectory(context.environment)
            if let lock = try DataDirectoryLock.take(directory) {
                let accepted = try lock.whileHeld { () throws(CommandFailure) in
                    do throws(StoreFailure) {
                        return try StoredDamage.accept(in: directory)
                    } catch {
                        throw CommandFailure(.localFile, "\(error)")
                    }
                }
                try show(AcceptLossResult(accepted: accepted), context.console)
                return
            }
        }
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            try show(try await client.acceptLoss().model, context.console)
        }
    }

    private func show(_ result: AcceptLossResult, _ console: Console) throws(CommandFailure) {
        if output.json {
            try console.print(JSONOutput.line(result))
        } else if result.accepted.isEmpty {
            try console.print("Nothing was lost.\n")
        } else {
            for path in result.accepted {
                try console.print("Accepted: \(VisibleText.printable(path))\n")
            }
        }
    }
}
