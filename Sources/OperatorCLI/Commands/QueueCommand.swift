import ArgumentParser

struct QueueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue", abstract: "Show what a client is owed, or drop what waits for it.",
        subcommands: [QueueShowCommand.self, QueueDropCommand.self])
}
