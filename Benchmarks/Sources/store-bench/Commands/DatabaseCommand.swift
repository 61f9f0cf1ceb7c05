import ArgumentParser
import Store

struct DatabaseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "database",
        abstract: "Messages that end up in SQLite: moved in, read by their client, removed.",
        discussion: """
            Messages go round the sessions in turn, and each segment's survivors move in one sorted \
            transaction, followed by a checkpoint. Then every session's queue is read in windows, \
            and all is acknowledged in as many segments as it took to come. CPU is user and system \
            of the whole process, without making the changes; a message's whole stay is the sum.
            """)

    @Option(help: "Sessions that wait, one row each.")
    var sessions: [Int] = [1, 1_000, 20_000, 100_000]

    @Option(help: "Messages in all.")
    var messages = 500_000

    @Option(help: "Messages that survive in each segment.")
    var segmentMessages = 50_000

    @Option(help: "Receivers of each message, which then share its content.")
    var receivers = 1

    @Option(help: "Payload bytes of a message.")
    var payload = 200

    @OptionGroup var options: StoreOptions

    mutating func validate() throws {
        guard sessions.allSatisfy({ (1...1_000_000).contains($0) }) else {
            throw ValidationError("--sessions takes 1 to 1000000.")
        }
        guard (1...100_000_000).contains(messages) else {
            throw ValidationError("--messages takes 1 to 100000000.")
        }
        guard (1...1_000_000).contains(segmentMessages) else {
            throw ValidationError("--segment-messages takes 1 to 1000000.")
        }
        guard sessions.allSatisfy({ (1...$0).contains(receivers) }) else {
            throw ValidationError("--receivers takes 1 to the number of sessions.")
        }
        guard (0...65_536).contains(payload) else {
            throw ValidationError("--payload takes 0 to 65536 bytes.")
        }
    }

    func run() throws {
        var report = StoreReport(
            "database",
            parameters: [
                ("messages", .integer(Int64(messages))),
                ("payload_bytes", .integer(Int64(payload))),
                ("receivers", .integer(Int64(receivers))),
                ("segment_messages", .integer(Int64(segmentMessages))),
            ],
            columns: [
                .init("sessions", "sessions"),
                .init("fill_cpu_us", "in: CPU us/msg", digits: 2),
                .init("fill_wall_us", "wall us/msg", digits: 2),
                .init("longest_apply_ms", "longest apply ms"),
                .init("longest_checkpoint_ms", "longest checkpoint ms"),
                .init("read_cpu_us", "read: CPU us/msg", digits: 2),
                .init("drain_cpu_us", "out: CPU us/msg", digits: 2),
                .init("reclaim_cpu_us", "reclaim: CPU us/msg", digits: 2),
                .init("sum_cpu_us", "all: CPU us/msg", digits: 2),
                .init("file_bytes_per_message", "file bytes/msg"),
                .init("written_bytes_per_message", "log bytes/msg"),
                .init("drained_file_bytes", "file bytes after"),
            ])
        for count in sessions {
            report.add(
                try options.withScratchDirectory { path in
                    let run = try DatabaseRun(
                        directory: path, sessions: count, messages: messages,
                        segmentMessages: segmentMessages, receivers: receivers, payload: payload)
                    return try run.measure()
                })
        }
        try report.publish(json: options.json)
    }
}
