import ArgumentParser
import Store

struct DurableCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "durable",
        abstract: "The whole store, with its threads: what a broker's messages cost.",
        discussion: """
            First messages that are stored and acknowledged within the journal: one thread submits \
            groups, waits for the commit of each, and acknowledges the messages of earlier ones \
            with the next. Then messages for absent sessions, which end up in SQLite; then every \
            queue is read in windows and acknowledged, until the database is empty again. CPU is \
            that of the whole process, user and system, and covers making the records too; a commit \
            is timed from its submission until its tickets are taken back.
            """)

    @Option(help: "Messages per group, one row each.")
    var group: [Int] = [1, 16, 128]

    @Option(help: "Payload bytes of a message.")
    var payload = 200

    @Option(help: "Groups before a message is acknowledged.")
    var delay = 1

    @Option(help: "Seconds of the first part, per row.")
    var seconds = 3.0

    @Option(help: "Messages of the second and third part; 0 leaves them out.")
    var messages = 300_000

    @Option(help: "Sessions of all parts; messages go to them in turn.")
    var sessions = 1_000

    @Option(help: "Bytes of a segment.")
    var segmentBytes = 16 << 20

    @Option(help: "Synchronise only every so many milliseconds.")
    var interval: Int32?

    @OptionGroup var options: StoreOptions

    mutating func validate() throws {
        guard group.allSatisfy({ (1...65_536).contains($0) }) else {
            throw ValidationError("--group takes 1 to 65536 messages.")
        }
        guard (0...65_536).contains(payload) else {
            throw ValidationError("--payload takes 0 to 65536 bytes.")
        }
        guard (1...1_000).contains(delay) else {
            throw ValidationError("--delay takes 1 to 1000 groups.")
        }
        guard seconds > 0, seconds <= 600 else {
            throw ValidationError("--seconds takes up to 600.")
        }
        guard (0...100_000_000).contains(messages) else {
            throw ValidationError("--messages takes 0 to 100000000.")
        }
        guard (1...1_000_000).contains(sessions) else {
            throw ValidationError("--sessions takes 1 to 1000000.")
        }
        guard (65_536...1 << 30).contains(segmentBytes) else {
            throw ValidationError("--segment-bytes takes 65536 to 1073741824.")
        }
        guard interval.map({ $0 > 0 }) ?? true else {
            throw ValidationError("--interval takes at least 1 ms.")
        }
    }

    func run() throws {
        var report = StoreReport(
            "durable",
            parameters: [
                ("payload_bytes", .integer(Int64(payload))),
                ("sessions", .integer(Int64(sessions))),
                ("delay_groups", .integer(Int64(delay))),
                ("messages", .integer(Int64(messages))),
                ("segment_bytes", .integer(Int64(segmentBytes))),
                ("durability", .string(interval.map { "interval \($0) ms" } ?? "sync")),
            ],
            columns: [
                .init("group", "group"),
                .init("journal_messages_per_s", "journal: msg/s"),
                .init("journal_cpu_us", "CPU us/msg", digits: 2),
                .init("journal_user_us", "user us/msg", digits: 2),
                .init("journal_p50_us", "commit p50 us"),
                .init("journal_p99_us", "p99 us"),
                .init("journal_max_ms", "max ms", digits: 1),
                .init("fill_cpu_us", "fill: CPU us/msg", digits: 2),
                .init("fill_wall_us", "wall us/msg", digits: 2),
                .init("fill_p99_us", "commit p99 us"),
                .init("fill_max_ms", "max ms", digits: 1),
                .init("drain_cpu_us", "drain: CPU us/msg", digits: 2),
                .init("drain_wall_us", "wall us/msg", digits: 2),
                .init("drain_p99_us", "commit p99 us"),
                .init("drain_max_ms", "max ms", digits: 1),
                .init("sum_cpu_us", "fill+drain CPU us/msg", digits: 2),
            ])
        for size in group {
            report.add(
                try options.withScratchDirectory { path in
                    var store = DurableStoreOptions()
                    store.journal.segmentBytes = segmentBytes
                    if let interval { store.durability = .interval(milliseconds: interval) }
                    let run = try DurableRun(
                        directory: path, options: store, group: size, payload: payload,
                        sessions: sessions)
                    return try run.measure(
                        seconds: seconds, delay: delay, messages: messages)
                })
        }
        try report.publish(json: options.json)
    }
}
