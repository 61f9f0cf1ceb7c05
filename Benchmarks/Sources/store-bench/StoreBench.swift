import ArgumentParser

@main
struct StoreBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store-bench",
        abstract: "Measures what the durable store costs, part by part, on a directory of yours.",
        discussion: """
            Files are made in a new directory inside the one that you name, and deleted at the end. \
            Figures depend on its disk: name one on the disk that the broker is to use.
            """,
        subcommands: [
            JournalCommand.self, DatabaseCommand.self, DatabaseRestoreCommand.self,
            DatabaseLayoutCommand.self, DurableCommand.self,
        ])
}
