import ArgumentParser

struct ScheduledCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scheduled", abstract: "List or cancel messages that are published later.",
        subcommands: [ScheduledListCommand.self, ScheduledCancelCommand.self])
}
