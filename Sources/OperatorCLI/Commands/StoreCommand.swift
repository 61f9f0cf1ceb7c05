import ArgumentParser

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store", abstract: "Check stored data, or accept that some of it is lost.",
        subcommands: [StoreCheckCommand.self, StoreAcceptLossCommand.self])
}
