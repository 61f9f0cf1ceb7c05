import ArgumentParser

struct DatabaseLayoutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "layouts",
        abstract: "Ways to lay queues out in SQLite, with one receiver per message.",
        discussion: """
            1: content in the queue's row. 2: content in a table of its own, keyed by the message's \
            number. 3: the same, keyed in the order in which it is moved, so that a session's \
            messages of one segment lie together. Bare tables and statements, without the store; \
            the same work as "database", of which the decision on the layout came (0009).
            """)

    @Option(help: "Sessions that wait, one row each and layout.")
    var sessions: [Int] = [1_000, 20_000, 100_000]

    @Option(help: "Bytes of a page, one row each.")
    var page: [Int] = [4_096, 8_192, 16_384]

    @Option(help: "Messages in all.")
    var messages = 500_000

    @OptionGroup var options: StoreOptions

    mutating func validate() throws {
        guard sessions.allSatisfy({ (1...1_000_000).contains($0) }) else {
            throw ValidationError("--sessions takes 1 to 1000000.")
        }
        guard page.allSatisfy({ (512...65_536).contains($0) && $0.nonzeroBitCount == 1 }) else {
            throw ValidationError("--page takes a power of two from 512 to 65536.")
        }
        guard (1...10_000_000).contains(messages) else {
            throw ValidationError("--messages takes 1 to 10000000.")
        }
    }

    func run() throws {
        var report = StoreReport(
            "layouts", parameters: [("messages", .integer(Int64(messages)))],
            columns: [
                .init("layout", "layout"), .init("page_bytes", "page"),
                .init("sessions", "sessions"),
                .init("fill_cpu_us", "in: CPU us/msg", digits: 2),
                .init("read_cpu_us", "read: CPU us/msg", digits: 2),
                .init("drain_cpu_us", "out: CPU us/msg", digits: 2),
                .init("reclaim_cpu_us", "reclaim: CPU us/msg", digits: 2),
                .init("sum_cpu_us", "all: CPU us/msg", digits: 2),
                .init("fill_log_bytes", "log bytes/msg"),
            ])
        for pageBytes in page {
            for count in sessions {
                for layout in DatabaseLayoutRun.Layout.allCases {
                    report.add(
                        try options.withScratchDirectory { path in
                            let run = try DatabaseLayoutRun(
                                directory: path, layout: layout, pageBytes: pageBytes,
                                sessions: count, messages: messages)
                            return try run.measure()
                        })
                }
            }
        }
        try report.publish(json: options.json)
    }
}
