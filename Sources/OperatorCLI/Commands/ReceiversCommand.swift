import ArgumentParser
import BrokerAPI

struct ReceiversCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "receivers",
        abstract: "Say whom a message on a topic would reach now; none is published.")

    @Argument(help: ArgumentHelp("The topic name.", valueName: "topic"))
    var topic: String

    @Option(name: .shortAndLong, help: ArgumentHelp("QoS of the message.", valueName: "qos"))
    var qos: Int = 1

    @Option(help: ArgumentHelp("How many to show at most.", valueName: "count"))
    var limit: Int = 100

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (0...2).contains(qos) else { throw ValidationError("-q takes 0, 1 or 2.") }
        guard (1...PageSize.largest).contains(limit) else {
            throw ValidationError("--limit takes 1 to \(PageSize.largest).")
        }
        if topic.isEmpty { throw ValidationError("The topic name is empty.") }
    }

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { broker throws(CommandFailure) in
            let answer = try await broker.receivers(of: topic, qos: qos, limit: limit)
            guard !output.json else {
                try context.console.print(JSONOutput.line(answer.json))
                return
            }
            try context.console.print(
                Self.rendered(answer.model, width: context.console.outputColumns))
            let hidden = answer.model.matched - answer.model.receivers.count
            if hidden > 0 { context.console.complain("\(hidden) more match. Raise --limit.") }
        }
    }

    static func rendered(_ answer: TopicReceivers, width: Int?) -> String {
        guard answer.matched > 0 || !answer.groups.isEmpty else {
            return "Nobody: no client subscribes to it and may read it.\n"
        }
        var text = ""
        if answer.matched > 0 {
            text = table(of: answer.receivers, "CLIENT", width: width)
        }
        for group in answer.candidates {
            if !text.isEmpty { text += "\n" }
            text += "One member of \(group.filter.visible()), which has \(group.members):\n"
            text +=
                group.candidates.isEmpty
                ? "(none of those looked at may read it)\n"
                : table(of: group.candidates, "CANDIDATE", width: width)
        }
        return text
    }

    private static func table(
        of receivers: [TopicReceiver], _ title: String, width: Int?
    ) -> String {
        var table = Table([
            .init(title: title, isFlexible: true), .init(title: "USER", isFlexible: true),
            .init(title: "QOS", alignment: .right), .init(title: "OUTCOME"),
        ])
        for one in receivers {
            table.append([
                one.clientID, one.userName ?? Wording.absent, "\(one.qos)",
                words(one.outcome, qos: one.qos),
            ])
        }
        return table.rendered(width: width)
    }

    private static func words(_ outcome: TopicReceiver.Outcome, qos: Int) -> String {
        switch outcome {
        case .sent: "sent"
        case .queued: "kept until it comes back"
        case .lost: qos == 0 ? "lost: offline, and QoS 0 is not kept" : "lost: offline"
        }
    }
}
