import ArgumentParser

/// How many items a list shows.
struct ListLimitOption: ParsableArguments {
    @Option(help: ArgumentHelp("How many to show at most.", valueName: "count"))
    var limit: Int = 1_000

    func validate() throws {
        guard (1...10_000_000).contains(limit) else {
            throw ValidationError("--limit takes 1 to 10000000.")
        }
    }
}
