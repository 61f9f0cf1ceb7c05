import ArgumentParser
import BrokerAPI
import FoundationEssentials

struct PushCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Send a message to many clients, without subscriptions.",
        discussion: """
            Clients are named one by one (--client), or chosen by their tags: those that have one of \
            --any, all of --all and none of --none. The message is what -m says, or the whole file \
            that -f names, or else all of standard input. hermesctl pushes show ID tells how far it \
            is, and hermesctl message ID what became of it.
            """)

    @Option(
        name: .shortAndLong, parsing: .unconditional,
        help: ArgumentHelp("The topic name that clients get it on.", valueName: "topic"))
    var topic: String

    @OptionGroup var payload: PayloadOptions

    @Option(
        name: .customLong("client"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A client identifier; repeat it for more.", valueName: "client"))
    var clients: [String] = []

    @Option(
        name: .customLong("any"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A tag; clients have at least one of these. Repeat it for more.", valueName: "tag"))
    var anyTags: [String] = []

    @Option(
        name: .customLong("all"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A tag; clients have all of these. Repeat it for more.", valueName: "tag"))
    var allTags: [String] = []

    @Option(
        name: .customLong("none"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A tag; clients have none of these. Repeat it for more.", valueName: "tag"))
    var noTags: [String] = []

    @Option(name: .shortAndLong, help: ArgumentHelp("0, 1 or 2.", valueName: "qos"))
    var qos: Int = 1

    @Option(
        help: ArgumentHelp(
            "When it begins, such as 2026-11-23T09:00:00+08:00 (default: now).",
            valueName: "time"))
    var at: String?

    @Option(
        name: .customLong("in"),
        help: ArgumentHelp(
            "After how long it begins, such as 90s, 30m, 12h or 7d.", valueName: "time"),
        transform: { try SpanArgument.parse($0, option: "--in", upToDays: 366) })
    var delay: SpanArgument?

    @Option(
        help: ArgumentHelp(
            "Over how long it is spread evenly, up to 1d (default: as fast as possible).",
            valueName: "time"),
        transform: { try SpanArgument.parse($0, option: "--spread", upToDays: 1) })
    var spread: SpanArgument?

    @Option(
        help: ArgumentHelp(
            "After how long, from its beginning, it is no longer delivered (default: never).",
            valueName: "time"),
        transform: ExpiryArgument.parse)
    var expires: ExpiryArgument?

    @Option(
        help: ArgumentHelp(
            "Your name for it: 1 to 128 visible ASCII characters.", valueName: "id"))
    var messageID: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            """
            A key of yours: 1 to 128 visible ASCII characters. Pushing again with the same key \
            within 24 hours only repeats the answer.
            """, valueName: "key"))
    var key: String?

    @Flag(help: "Do not follow what becomes of the message for each client.")
    var noReceipts = false

    @OptionGroup var wake: WakeOption

    @Flag(help: "Send nothing; only count the clients that it would reach now.")
    var dryRun = false

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if topic.isEmpty { throw ValidationError("The topic name is empty.") }
        guard (0...2).contains(qos) else { throw ValidationError("-q takes 0, 1 or 2.") }
        let hasTags = !(anyTags.isEmpty && allTags.isEmpty && noTags.isEmpty)
        if clients.isEmpty && anyTags.isEmpty && allTags.isEmpty {
            throw ValidationError("Name clients with --client, or their tags with --any or --all.")
        }
        if !clients.isEmpty && hasTags {
            throw ValidationError("Give either --client or tags: both name the clients.")
        }
        if at != nil && delay != nil {
            throw ValidationError("Give either --at or --in: both name its beginning.")
        }
        try KeyArgument.check(key, of: "--key")
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        let body = try body(payload.read(in: context))
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            if dryRun {
                let answer = try await client.preview(body)
                try context.console.print(
                    output.json ? JSONOutput.line(answer.json) : Self.rendered(answer.model))
            } else {
                let answer = try await client.push(body, key: key)
                try context.console.print(
                    output.json
                        ? JSONOutput.line(answer.json)
                        : Self.rendered(answer.model, now: context.now()))
            }
        }
    }

    private func body(_ bytes: [UInt8]) -> PushBody {
        let target =
            clients.isEmpty
            ? PushBody.Target(tags: PushBody.Tags(any: anyTags, all: allTags, none: noTags))
            : PushBody.Target(clients: clients)
        return PushBody(
            target: target,
            message: PushBody.Message(
                topic: topic, payload: Data(bytes).base64EncodedString(), qos: qos,
                messageID: messageID, expiresInSeconds: expires?.seconds,
                receipts: noReceipts ? false : nil, wake: wake.kind),
            deliverAt: at, deliverInSeconds: delay?.seconds, spreadSeconds: spread?.seconds ?? 0,
            isDryRun: dryRun)
    }

    static func rendered(_ push: PushAccepted, now: Int64) -> String {
        var list = FieldList()
        list.add("push", push.pushID + (push.duplicate ? " (sent before)" : ""))
        list.add("durability", push.durability)
        if let scheduled = push.scheduled {
            list.add("begins", Wording.relative(scheduled.deliverAtMs, now: now))
        }
        return list.rendered()
    }

    static func rendered(_ preview: PushPreview) -> String {
        var list = FieldList()
        list.add("matched", "\(preview.matched)")
        list.add("online", "\(preview.online)")
        list.add("offline", "\(preview.offline)")
        list.add("without session", "\(preview.withoutSession)")
        return list.rendered()
    }
}
