import ArgumentParser
import BrokerAPI
import PlainText

struct DevicesStatusCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show what became of notifications, and how their senders are.")

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.wakes()
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : Self.rendered(answer.model, now: context.now()))
        }
    }

    static func rendered(_ status: WakeStatus, now: Int64) -> String {
        var list = FieldList()
        list.add("devices", "\(status.devices) (\(Wording.bytes(status.deviceBytes)))")
        list.add("registrations refused", Wording.counts(status.registrationsRefused))
        list.add("owed or watched", "\(status.owed)")
        list.add("messages that asked", Wording.counts(status.messages))
        list.add("wakes", Wording.counts(status.wakes))
        add("Apple", "wakes.apns", status.apns, to: &list)
        add("Google", "wakes.fcm", status.fcm, to: &list)
        return text(list, status.webhook, now)
    }

    private static func add(
        _ name: String, _ section: String, _ figures: PushFigures?, to list: inout FieldList
    ) {
        list.startGroup()
        guard let figures else { return list.add(name, "off (\(section))") }
        if let pause = figures.pause {
            list.add(name, "nothing is sent: \(pause.reason)")
            list.add("what to do", pause.hint)
        } else {
            list.add(name, figures.paused == 0 ? "sending" : "sending, but not everywhere")
        }
        for trouble in figures.troubles
        where figures.pause.map({ !$0.reason.hasBytes(of: trouble.reason) }) ?? true {
            list.add(trouble.isPaused ? "not sent" : "alarm", trouble.reason)
            list.add("what to do", trouble.hint)
        }
        list.add(
            "connections",
            "\(figures.connections) open, \(figures.connectionsFailed) failed, "
                + "\(figures.goAways) goodbyes")
        list.add("\(name)'s answers", Wording.counts(figures.answers))
        list.add("sent again", "\(figures.repeated)")
    }

    private static func text(_ list: FieldList, _ webhook: WebhookFigures?, _ now: Int64) -> String
    {
        var list = list
        list.startGroup()
        guard let webhook else {
            list.add("webhook", "off (wakes.webhook)")
            return list.rendered()
        }
        list.add("webhook", webhook.failure.map { "failing: \($0)" } ?? "working")
        list.add("its answers", Wording.counts(webhook.events))
        if let last = webhook.lastSuccessAtMs {
            list.add("the last", Wording.moment(last, now: now))
        }
        return list.rendered()
    }
}
