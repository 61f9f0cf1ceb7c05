import ArgumentParser
import BrokerAPI
import PlainText

struct ExplainCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Say in plain words what a client is doing, and why it did not get a message.")

    @OptionGroup var target: ClientArgument

    @Option(
        help: ArgumentHelp("Say also whether this topic is for the client.", valueName: "topic"))
    var topic: String?

    @Option(
        help: ArgumentHelp(
            "Say also what became of this message for the client.", valueName: "id"))
    var message: String?

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if message?.isEmpty == true { throw ValidationError("The message's identifier is empty.") }
        if message != nil, topic != nil {
            throw ValidationError("Give either --message or --topic: a message has its own topic.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let about = try await about(client, now: context.now())
            let explanation = Explanation(
                clientID: target.clientID, detail: try await client.knownClient(target.clientID),
                history: try await client.history(of: target.clientID),
                topic: topic ?? about?.topic,
                now: context.now())
            let answer = Answer(
                clientID: target.clientID,
                sentences: (about?.sentences ?? []) + explanation.sentences,
                events: explanation.history.events)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer)
                    : Self.rendered(
                        answer, now: context.now(), width: context.console.outputColumns))
            if explanation.isUnknown { throw CommandFailure(.refused, "") }
        }
    }

    /// What became of the message that the operator asks about; `nil` for none.
    private func about(
        _ client: AdminClient, now: Int64
    ) async throws(CommandFailure) -> MessageExplanation? {
        guard let message else { return nil }
        let receipt = try await client.knownReceipt(message)
        let isListed = receipt?.receivers?.contains { $0.clientID == target.clientID } ?? false
        let queue = isListed ? nil : try await client.knownQueue(target.clientID, limit: 10_000)
        return MessageExplanation(
            messageID: message, clientID: target.clientID, receipt: receipt,
            queued: queue?.messages.first { $0.messageID == message },
            isQueueLonger: queue?.next != nil, now: now)
    }

    /// What `--json` prints.
    struct Answer: Encodable {
        var clientID: String
        var sentences: [String]
        var events: [ClientEvent]

        enum CodingKeys: String, CodingKey {
            case clientID = "client_id"
            case sentences, events
        }
    }

    static func rendered(_ answer: Answer, now: Int64, width: Int?) -> String {
        var text = "\(VisibleText.escaped(answer.clientID))\n"
        for sentence in answer.sentences { text += "- \(VisibleText.escaped(sentence))\n" }
        guard !answer.events.isEmpty else { return text }
        var table = Table([
            .init(title: "LATELY", alignment: .right), .init(title: "WHAT"),
            .init(title: "REASON"), .init(title: "COUNT", alignment: .right),
            .init(title: "FROM"), .init(title: "USER", isFlexible: true),
            .init(title: "TOPIC", isFlexible: true),
        ])
        for event in answer.events {
            table.append([
                Wording.age(of: event.lastMs, now: now) + " ago",
                event.kind.rawValue.replacing("_", with: " "), event.reason, "\(event.count)",
                event.address ?? Wording.absent, event.userName ?? Wording.absent,
                event.topic ?? Wording.absent,
            ])
        }
        return text + "\n" + table.rendered(width: width)
    }
}
