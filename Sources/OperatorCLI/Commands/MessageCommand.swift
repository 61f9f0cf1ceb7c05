import ArgumentParser
import BrokerAPI

struct MessageCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "message",
        abstract: "Show what became of a message that was published with receipts.")

    @Argument(
        help: ArgumentHelp("The message's identifier, as its publish answered.", valueName: "id"))
    var messageID: String

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if messageID.isEmpty { throw ValidationError("The identifier is empty.") }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.receipt(messageID)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : Self.rendered(
                        answer.model, now: context.now(), width: context.console.outputColumns))
        }
    }

    static func rendered(_ receipt: MessageReceipt, now: Int64, width: Int?) -> String {
        func ago(_ time: Int64) -> String { Wording.span(seconds: (now - time) / 1_000) }
        var list = FieldList()
        list.add("message", receipt.messageID)
        list.add("topic", receipt.topic)
        list.add("published", "\(ago(receipt.publishedAtMs)) ago")
        list.add("receivers", "\(receipt.counts.receivers)")
        list.add("pending", "\(receipt.counts.pending)")
        list.add("acknowledged", "\(receipt.counts.acknowledged)")
        list.add("sent (QoS 0)", "\(receipt.counts.sent)")
        list.add("expired", "\(receipt.counts.expired)")
        list.add("dropped", "\(receipt.counts.dropped)")
        guard let receivers = receipt.receivers, !receivers.isEmpty else { return list.rendered() }
        let hasGroups = receivers.contains { $0.group != nil }
        var columns: [Table.Column] = [
            .init(title: "STATE"),
            .init(title: "AGO", alignment: .right),
            .init(title: "REASON"),
            .init(title: "CLIENT", isFlexible: true),
        ]
        if hasGroups { columns.append(.init(title: "AS A MEMBER OF", isFlexible: true)) }
        var table = Table(columns)
        for receiver in receivers {
            var row = [
                receiver.state.rawValue, receiver.atMs.map(ago) ?? Wording.absent,
                receiver.replacedBy.map { "replaced by \($0)" } ?? receiver.reason
                    ?? Wording.absent,
                receiver.clientID,
            ]
            if hasGroups { row.append(receiver.group ?? Wording.absent) }
            table.append(row)
        }
        return list.rendered() + "\n" + table.rendered(width: width)
    }
}
