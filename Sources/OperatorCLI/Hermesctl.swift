import ArgumentParser
import PlainText

/// The root of the command line, which `hermesctl --help` explains.
package struct Hermesctl: ParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "hermesctl",
        abstract: "Look into a Hermes broker, publish to it, and keep its users and tokens.",
        discussion: """
            Exit codes: 0 done; 1 the broker refused it or has no such thing, the rules deny it, or data is damaged; 2 a file here is \
            missing or wrong; 3 the broker cannot be reached; 4 the token is missing or refused; \
            5 an answer that is not understood; 64 wrong arguments.
            """,
        version: "0.1.0",
        subcommands: [
            StatusCommand.self, TopCommand.self, TroublesCommand.self, ExplainCommand.self,
            TraceCommand.self,
            ClientsCommand.self, QueueCommand.self,
            SubscriptionsCommand.self, ReceiversCommand.self, RetainedCommand.self,
            PublishCommand.self,
            MessageCommand.self, ScheduledCommand.self,
            PushCommand.self, PushesCommand.self, TagsCommand.self,
            DevicesCommand.self,
            ArrivalsCommand.self, LostConnectionsCommand.self,
            BansCommand.self, LockoutsCommand.self, DrainCommand.self,
            StoreCommand.self, BackupCommand.self, UsersCommand.self, TokensCommand.self,
            AclCommand.self, AuthCommand.self,
            ConfigCommand.self,
        ])

    package init() {}

    /// Parses the arguments (without the program's name), runs the command, and returns the exit
    /// code. Output and messages go to the context's console.
    package static func run(_ arguments: [String], in context: CommandContext) async -> CInt {
        do {
            var command = try parseAsRoot(ArgumentOrder.commandFirst(arguments))
            if let command = command as? any OperatorCommand {
                try await command.run(in: context)
            } else {
                // For a group without a subcommand, the parser's answer is the help of the group.
                try command.run()
            }
            return ExitStatus.success.rawValue
        } catch let failure as CommandFailure {
            if !failure.message.isEmpty { context.console.complain(failure.message) }
            return failure.status.rawValue
        } catch {
            return report(error, to: context.console)
        }
    }

    /// Handles the argument parser's errors: a usage error, or requested text (help, version, a
    /// completion script).
    private static func report(_ error: any Error, to console: Console) -> CInt {
        let text = fullMessage(for: error) + "\n"
        let code = exitCode(for: error).rawValue
        guard code == ExitStatus.success.rawValue else {
            // The parser repeats arguments unchanged, and they may be untrusted.
            console.show(
                text.split(separator: "\n", omittingEmptySubsequences: false)
                    .map { VisibleText.printable(String($0)) }.joined(separator: "\n"))
            return code
        }
        do throws(CommandFailure) {
            try console.print(text)
            return code
        } catch {
            return error.status.rawValue
        }
    }
}

/// A command that does something, unlike a group of commands.
protocol OperatorCommand: ParsableCommand {
    func run(in context: CommandContext) async throws(CommandFailure)
}
