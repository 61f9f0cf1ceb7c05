import ArgumentParser
import BrokerAPI

struct PushesShowCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show how far a push is.")

    @OptionGroup var target: PushArgument
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.pushStatus(target.pushID)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : Self.rendered(answer.model, now: context.now()))
        }
    }

    static func rendered(_ push: PushStatus, now: Int64) -> String {
        var list = FieldList()
        list.add("push", push.pushID)
        list.add("topic", push.topic)
        list.add("qos", "\(push.qos)")
        list.add("state", push.state.rawValue)
        list.add("begins", Wording.relative(push.deliverAtMs, now: now))
        if push.spreadSeconds > 0 {
            list.add("spread over", Wording.span(seconds: push.spreadSeconds))
        }
        if let end = push.endedAtMs {
            list.add("ended", Wording.relative(end, now: now))
        }
        list.startGroup()
        list.add("clients", push.matched.map { "\($0)" } ?? Wording.absent)
        list.add("reached", "\(push.reached)")
        list.add("online", "\(push.online)")
        list.add("queued", "\(push.queued)")
        list.add("dropped", "\(push.dropped)")
        list.add("without session", "\(push.withoutSession)")
        list.add("denied", "\(push.denied)")
        guard let receipts = push.receipts else { return list.rendered() }
        list.startGroup()
        list.add("pending", "\(receipts.pending)")
        list.add("acknowledged", "\(receipts.acknowledged)")
        list.add("sent (QoS 0)", "\(receipts.sent)")
        list.add("expired", "\(receipts.expired)")
        list.add("dropped later", "\(receipts.dropped)")
        return list.rendered()
    }
}
