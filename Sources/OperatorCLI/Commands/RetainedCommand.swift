import ArgumentParser
import BrokerAPI
import FoundationEssentials
import PlainText

struct RetainedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retained", abstract: "List, show and delete retained messages.",
        subcommands: [
            RetainedListCommand.self, RetainedShowCommand.self, RetainedDeleteCommand.self,
        ])
}

/// The argument that names a topic with a retained message.
struct TopicArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "The topic name. Put -- before one that begins with a dash.", valueName: "topic"))
    var topic: String

    func validate() throws {
        if topic.isEmpty { throw ValidationError("The topic name is empty.") }
    }
}

struct RetainedListCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List topics with a retained message, sorted by topic.")

    @Option(help: ArgumentHelp("Only topics that this filter matches.", valueName: "filter"))
    var filter: String = "#"

    @OptionGroup var most: ListLimitOption
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { broker throws(CommandFailure) in
            let page = try await broker.retained(filter: filter, limit: most.limit)
            guard !output.json else {
                try context.console.print(JSONOutput.line(page))
                return
            }
            try context.console.print(
                Self.rendered(
                    page.retained, now: context.now(), width: context.console.outputColumns))
            if page.next != nil {
                context.console.complain(
                    "there are more than these \(page.retained.count). Raise --limit.")
            }
        }
    }

    static func rendered(_ retained: [RetainedSummary], now: Int64, width: Int?) -> String {
        var table = Table([
            .init(title: "TOPIC", isFlexible: true), .init(title: "QOS", alignment: .right),
            .init(title: "BYTES", alignment: .right),
            .init(title: "EXPIRES IN", alignment: .right),
        ])
        for one in retained {
            table.append([
                one.topic, "\(one.qos)", "\(one.payloadBytes)",
                one.expiresAtMs.map { Wording.span(seconds: ($0 - now) / 1_000) }
                    ?? Wording.absent,
            ])
        }
        return table.rendered(width: width)
    }
}

struct RetainedShowCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show a topic's retained message with its payload.")

    @OptionGroup var target: TopicArgument

    @Flag(help: "Write the payload alone, byte for byte.")
    var raw = false

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if raw && output.json { throw ValidationError("Give either --raw or --json.") }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { broker throws(CommandFailure) in
            let answer = try await broker.retainedMessage(of: target.topic)
            if output.json {
                try context.console.print(JSONOutput.line(answer.json))
            } else if raw {
                try context.console.print(bytes: Self.payload(answer.model))
            } else {
                try context.console.print(Self.rendered(answer.model, now: context.now()))
            }
        }
    }

    private static func payload(_ message: RetainedModel) -> [UInt8] {
        if let text = message.payload { return Array(text.utf8) }
        return message.payloadBase64.flatMap { Data(base64Encoded: $0) }.map { Array($0) } ?? []
    }

    static func rendered(_ message: RetainedModel, now: Int64) -> String {
        var list = FieldList()
        list.add("topic", message.topic)
        list.add("qos", "\(message.qos)")
        list.add("bytes", "\(message.payloadBytes)")
        list.add(
            "expires",
            message.expiresAtMs.map { Wording.relative($0, now: now) } ?? "never")
        list.add(
            "payload", message.payload ?? "not text: --raw writes it, --json has it in Base64")
        return list.rendered()
    }
}

struct RetainedDeleteCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Delete a topic's retained message; subscribers are not told.")

    @OptionGroup var target: TopicArgument
    @OptionGroup var connection: ConnectionOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { broker throws(CommandFailure) in
            try await broker.deleteRetained(target.topic)
            try context.console.print(
                "Deleted the retained message of \"\(VisibleText.escaped(target.topic))\".\n")
        }
    }
}
