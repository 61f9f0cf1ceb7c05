import ArgumentParser
import Store

struct DatabaseRestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "What a starting broker reads from SQLite, with a cold and a warm page cache.",
        discussion: """
            Every session has a user name and its subscriptions, and messages wait for it; every \
            hundredth has a will, and there are as many retained messages. Opening and streaming \
            are timed; queues are not read, so their length must not show.
            """)

    @Option(help: "Sessions.")
    var sessions = 100_000

    @Option(help: "Subscriptions of each session.")
    var subscriptions = 2

    @Option(help: "Messages that wait, one row each.")
    var queued: [Int] = [0, 1_000_000]

    @OptionGroup var options: StoreOptions

    mutating func validate() throws {
        guard (1...1_000_000).contains(sessions) else {
            throw ValidationError("--sessions takes 1 to 1000000.")
        }
        guard (0...100).contains(subscriptions) else {
            throw ValidationError("--subscriptions takes 0 to 100.")
        }
        guard queued.allSatisfy({ (0...100_000_000).contains($0) }) else {
            throw ValidationError("--queued takes 0 to 100000000.")
        }
    }

    func run() throws {
        var report = StoreReport(
            "restore",
            parameters: [
                ("sessions", .integer(Int64(sessions))),
                ("subscriptions_per_session", .integer(Int64(subscriptions))),
            ],
            columns: [
                .init("queued", "queued"), .init("cold_ms", "cold ms", digits: 1),
                .init("warm_ms", "warm ms", digits: 1),
                .init("warm_cpu_ms", "warm CPU ms", digits: 1),
                .init("sessions", "sessions"), .init("subscriptions", "subscriptions"),
                .init("retained", "retained"), .init("wills", "wills"),
                .init("file_bytes", "file bytes"),
            ])
        for count in queued {
            report.add(
                try options.withScratchDirectory { path in
                    let run = DatabaseRestoreRun(
                        directory: path, sessions: sessions, subscriptions: subscriptions,
                        queued: count)
                    return try run.measure()
                })
        }
        try report.publish(json: options.json)
    }
}
