import ArgumentParser

struct BansCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bans", abstract: "Shut out clients, users and addresses.",
        discussion: """
            A ban closes the connections that it fits at once, and refuses new ones. Sessions and \
            what waits in them stay. It survives restarts.
            """,
        subcommands: [BansAddCommand.self, BansListCommand.self, BansLiftCommand.self])
}
