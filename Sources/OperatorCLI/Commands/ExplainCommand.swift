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
        if topic?.isEmpty == true { throw ValidationError("The topic is empty.") }
        if message?.isEmpty == true { throw ValidationError("The message's identifier is empty.") }
        if message != nil, topic != nil {
            throw ValidationError("Give either --message or --topic: a message has its own topic.")
        }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let explanation = try await client.explanation(
                of: target.clientID, topic: topic, message: message)
            let answer = Answer(
                clientID: target.clientID, sentences: explanation.sentences,
                events: explanation.events)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer)
                    : Self.rendered(
                        answer, now: context.now(), width: context.console.outputColumns))
            if !explanation.known { throw CommandFailure(.refused, "") }
        }
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
        var table = Table(
            [.init(title: "LATELY", alignment: .right)] + EventCells.columns)
        for event in answer.events {
            table.append([EventCells.time(event, now: now)] + EventCells.cells(event))
        }
        return text + "\n" + table.rendered(width: width)
    }
}
