import ArgumentParser

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store", abstract: "Check or repair stored data, or accept that some is lost.",
        subcommands: [
            StoreCheckCommand.self, StoreRepairCommand.self, StoreAcceptLossCommand.self,
        ])
}
