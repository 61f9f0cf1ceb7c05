import BrokerAPI
import ArgumentParser
import Credentials
import PlainText

struct PublishCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "publish",
        abstract: "Publish a message, or a file of them, over HTTP.",
        discussion: """
            The message is what -m says, or the whole file that -f names, or else all of \
            standard input, byte for byte. With --batch many messages are published: each line of \
            the file is a JSON object with topic, payload and so on.
            """)

    @Option(
        name: .shortAndLong, parsing: .unconditional,
        help: ArgumentHelp("The topic name.", valueName: "topic"))
    var topic: String?

    @OptionGroup var payload: PayloadOptions

    @Option(name: .shortAndLong, help: ArgumentHelp("0, 1 (the default) or 2.", valueName: "qos"))
    var qos: Int?

    @Flag(
        name: .shortAndLong,
        help: "Keep the message for future subscribers of the topic; an empty one clears it.")
    var retain = false

    @Option(
        help: ArgumentHelp(
            "Your name for the message: 1 to 128 visible ASCII characters.", valueName: "id"))
    var messageID: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            """
            A key of yours: 1 to 128 visible ASCII characters. Publishing again with the same key \
            within 24 hours only repeats the answer.
            """, valueName: "key"))
    var key: String?

    @Option(
        help: ArgumentHelp(
            "After how long it is no longer delivered, such as 90s, 30m, 12h or 7d (default: never).",
            valueName: "time"),
        transform: ExpiryArgument.parse)
    var expires: ExpiryArgument?

    @Flag(help: "Follow the message: hermesctl message ID tells what became of it.")
    var receipts = false

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            """
            Replace what is still queued of the topic's messages with the same key: 1 to 128 \
            visible ASCII characters.
            """, valueName: "key"))
    var collapseKey: String?

    @OptionGroup var wake: WakeOption

    @Option(
        help: ArgumentHelp(
            "File with a message on each line; - is standard input.", valueName: "path"),
        completion: .file())
    var batch: String?

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if batch != nil {
            if topic != nil || payload.isGiven || retain || qos != nil
                || messageID != nil || key != nil || expires != nil || receipts
                || collapseKey != nil || wake.kind != nil
            {
                throw ValidationError(
                    """
                    With --batch each line names its own topic, payload, qos, retain, message_id, \
                    idempotency_key, receipts, collapse_key, wake and expires_in_s.
                    """)
            }
            return
        }
        guard (0...2).contains(qos ?? 0) else { throw ValidationError("-q takes 0, 1 or 2.") }
        guard let topic else { throw ValidationError("Give a topic with -t, or --batch.") }
        if topic.isEmpty { throw ValidationError("The topic name is empty.") }
        try KeyArgument.check(key, of: "--key")
        try KeyArgument.check(collapseKey, of: "--collapse-key")
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        if let batch {
            try await connection.withClient(in: context) { client throws(CommandFailure) in
                try await LineBatch(
                    path: batch, verb: "published", printsResults: output.json
                ).run(in: context) { descriptor, name, take throws(CommandFailure) in
                    try await client.publishBatch(from: descriptor, named: name, take)
                }
            }
            return
        }
        // `validate` has refused a missing one.
        let topic = topic ?? ""
        let bytes = try payload.read(in: context)
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.publish(
                bytes, topic: topic, qos: qos, retain: retain, messageID: messageID,
                expiresInSeconds: expires?.seconds, key: key,
                receipts: receipts, collapseKey: collapseKey, wake: wake.kind)
            try context.console.print(
                output.json ? JSONOutput.line(answer.json) : Self.rendered(answer.model))
        }
    }

    static func rendered(_ result: PublishResult) -> String {
        var list = FieldList()
        list.add("message", result.messageID + (result.duplicate ? " (published before)" : ""))
        list.add("durability", result.durability)
        list.add("matched", "\(result.counts.matched)")
        list.add("online", "\(result.counts.online)")
        list.add("queued", "\(result.counts.queued)")
        list.add("dropped", "\(result.counts.dropped)")
        return list.rendered()
    }
}

/// The key of a message.
enum KeyArgument {
    /// Throws the parser's error for a key that the broker would refuse.
    static func check(_ key: String?, of option: String) throws {
        guard let key else { return }
        guard (1...128).contains(key.utf8.count),
            key.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw ValidationError(
                "\(option) takes 1 to 128 visible ASCII characters, such as a UUID.")
        }
    }
}

/// The time until a message expires, written as a whole number with s, m, h or d.
struct ExpiryArgument {
    let seconds: Int64

    /// Throws the parser's error, which lists the valid forms.
    static func parse(_ text: String) throws -> ExpiryArgument {
        if let seconds = TimeSpanText.seconds(text),
            (1...4_294_967_295).contains(seconds)
        {
            return ExpiryArgument(seconds: seconds)
        }
        throw ValidationError(
            """
            "\(VisibleText.escaped(text))" is no time after which a message can expire. Give a whole \
            number with s (seconds), m (minutes), h (hours) or d (days), from 1s to 49710d, such as \
            30m; without --expires it never does.
            """)
    }
}
