import ArgumentParser

struct ClientsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clients",
        abstract: "List clients, look at one, disconnect it, or end its session.",
        subcommands: [
            ClientsListCommand.self, ClientsShowCommand.self, ClientsKickCommand.self,
            ClientsEndCommand.self,
        ])
}
