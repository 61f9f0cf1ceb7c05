import ArgumentParser

struct ClientsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clients", abstract: "List clients, look at one, or disconnect it.",
        subcommands: [
            ClientsListCommand.self, ClientsShowCommand.self, ClientsKickCommand.self,
        ])
}
