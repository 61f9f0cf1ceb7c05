import BrokerAPI
import ArgumentParser
import PlainText

struct ClientsShowCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show one client in full.")

    @OptionGroup var target: ClientArgument

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.client(target.clientID)
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : Self.rendered(
                        answer.model, now: context.now(), width: context.console.outputColumns))
        }
    }

    static func rendered(_ detail: ClientDetail, now: Int64, width: Int?) -> String {
        var text = fields(detail, now: now).rendered()
        guard !detail.subscriptionList.isEmpty else { return text }
        var table = Table([
            .init(title: "SUBSCRIPTION", isFlexible: true),
            .init(title: "QOS", alignment: .right),
        ])
        for subscription in detail.subscriptionList {
            table.append([subscription.filter, "\(subscription.qos)"])
        }
        text += "\n" + table.rendered(width: width)
        let rest = detail.summary.subscriptions - detail.subscriptionList.count
        if rest > 0 {
            text +=
                "and \(rest) more: hermesctl subscriptions --client "
                + "\(VisibleText.quoted(detail.summary.clientID))\n"
        }
        return text
    }

    private static func fields(_ detail: ClientDetail, now: Int64) -> FieldList {
        let client = detail.summary
        var list = FieldList()
        list.add("client", client.clientID)
        list.add("user", client.userName ?? Wording.absent)
        list.add("state", client.connected ? "connected" : "offline")
        list.add("since", Wording.moment(client.sinceMs, now: now))
        if let address = client.address { list.add("address", address) }
        list.add("MQTT", client.protocolVersion)
        list.add("session", client.cleanSession ? "clean" : "persistent")
        list.add(
            "keep alive", client.keepAliveSeconds == 0 ? "none" : "\(client.keepAliveSeconds) s")
        if let age = detail.lastPacketMsAgo {
            list.add("last packet", "\(Wording.span(seconds: age / 1_000)) ago")
        }
        if let heartbeat = detail.heartbeatSeconds {
            list.add("heartbeat", "\(heartbeat) s of silence before the last PINGREQ")
        }
        list.add("will topic", detail.willTopic ?? "none")
        if let reason = detail.lastDisconnectReason { list.add("last disconnection", reason) }
        if let fight = detail.takeOvers {
            list.add(
                "fought over by",
                "\(fight.peers.joined(separator: " and ")), \(fight.count) take-overs")
            list.add(
                "next take-over",
                "waits \(Wording.span(seconds: fight.delayMs / 1_000))"
                    + (fight.waiting.map { ", \($0) does" } ?? ""))
        }
        list.startGroup()
        list.add("subscriptions", "\(client.subscriptions)")
        list.add("memory of the session", Wording.bytes(detail.sessionBytes))
        list.add("in flight", "\(client.inFlight)")
        list.add("queued", "\(client.queued) (\(Wording.bytes(client.queuedBytes)))")
        list.add("unsent", Wording.bytes(detail.unsentBytes))
        list.add("QoS 2 not released", "\(detail.inboundQoS2)")
        list.add("awaiting our acknowledgement", "\(detail.unacknowledgedPublishes)")
        list.add("reading paused", Wording.yesNo(detail.readingPaused))
        for device in detail.devices ?? [] {
            let name = device.name.map { " \($0)" } ?? ""
            list.add("device\(name)", "\(device.kind) \(device.token)")
            list.add("its wake", Wording.wake(device.wake))
            list.add("last wake", DevicesListCommand.last(of: device))
        }
        list.startGroup()
        list.add("messages received", "\(detail.publishesReceived)")
        list.add(
            "messages sent",
            "\(detail.publishesSent)"
                + (detail.publishesSentQoS0 > 0
                    ? ", \(detail.publishesSentQoS0) with QoS 0, which nobody acknowledges" : ""))
        list.add("messages acknowledged", "\(detail.publishesAcknowledged)")
        list.add("messages dropped", Wording.counts(detail.dropped))
        guard let report = detail.report else { return list }
        list.startGroup()
        list.add("reported", Wording.moment(report.reportedAtMs, now: now))
        list.add("counted since", Wording.moment(report.sinceMs, now: now))
        list.add("arrival rate", Wording.share(report.arrivalRate))
        list.add("received", "\(report.counts.received)")
        list.add("received twice", "\(report.counts.duplicates)")
        list.add("lost", "\(report.counts.losses)")
        list.add("connects", "\(report.counts.connects)")
        list.add("lost connections", "\(report.counts.lostConnections)")
        list.add("lost sessions", "\(report.counts.lostSessions)")
        if let heartbeat = report.heartbeatSeconds { list.add("its heartbeat", "\(heartbeat) s") }
        if let network = report.network { list.add("network", network) }
        return list
    }
}
