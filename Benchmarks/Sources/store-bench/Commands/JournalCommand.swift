import ArgumentParser
import Store

struct JournalCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "journal",
        abstract: "Messages that are stored and acknowledged without leaving the journal.",
        discussion: """
            A group is one frame and one fdatasync: it stores so many messages, each with a queue \
            position and a ticket of its own, and acknowledges those of the group before. CPU is \
            that of the whole process, user and system, and covers making the records too.
            """)

    @Option(help: "Messages per group, one row each.")
    var group: [Int] = [1, 16, 128, 1_024]

    @Option(help: "Payload bytes of a message.")
    var payload = 200

    @Option(help: "Seconds per row.")
    var seconds = 3.0

    @Option(help: "Bytes of a segment.")
    var segmentBytes = 16 << 20

    @Flag(help: "Leave fdatasync out, to see what is ours.")
    var noSync = false

    @OptionGroup var options: StoreOptions

    mutating func validate() throws {
        guard group.allSatisfy({ (1...65_536).contains($0) }) else {
            throw ValidationError("--group takes 1 to 65536 messages.")
        }
        guard (0...65_536).contains(payload) else {
            throw ValidationError("--payload takes 0 to 65536 bytes.")
        }
        guard seconds > 0, seconds <= 600 else {
            throw ValidationError("--seconds takes up to 600.")
        }
        guard (65_536...1 << 30).contains(segmentBytes) else {
            throw ValidationError("--segment-bytes takes 65536 to 1073741824.")
        }
    }

    func run() throws {
        var report = StoreReport(
            "journal",
            parameters: [
                ("payload_bytes", .integer(Int64(payload))),
                ("segment_bytes", .integer(Int64(segmentBytes))),
                ("seconds", .number(seconds)), ("fdatasync", .bool(!noSync)),
            ],
            columns: [
                .init("group", "group"), .init("messages", "messages"),
                .init("messages_per_s", "messages/s"),
                .init("cpu_us_per_message", "CPU us/msg", digits: 3),
                .init("user_us_per_message", "user us/msg", digits: 3),
                .init("wall_us_per_message", "wall us/msg", digits: 2),
                .init("bytes_per_message", "bytes/msg"),
                .init("commit_p50_us", "commit p50 us", digits: 1),
                .init("commit_p99_us", "p99 us", digits: 1),
                .init("commit_max_us", "max us", digits: 1),
            ])
        for size in group {
            report.add(
                try options.withScratchDirectory { path in
                    var run = try JournalRun(
                        directory: path, group: size, payload: payload,
                        segmentBytes: segmentBytes, syncs: !noSync)
                    return try run.measure(seconds: seconds)
                })
        }
        try report.publish(json: options.json)
    }
}
