import BrokerAPI
import ArgumentParser
import PlainText

struct StatusCommand: OperatorCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the broker at a glance.")

    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions

    func run(in context: CommandContext) async throws(CommandFailure) {
        try await connection.withClient(in: context) { client throws(CommandFailure) in
            let answer = try await client.status()
            try context.console.print(
                output.json
                    ? JSONOutput.line(answer.json)
                    : Self.rendered(answer.model, now: context.now()))
        }
    }

    static func rendered(_ status: BrokerStatus, now: Int64) -> String {
        var list = FieldList()
        list.add("version", status.version)
        list.add("started", Wording.moment(status.startedAtMs, now: now))
        list.add(
            "durability",
            status.durability + (status.durabilityIntervalMs.map { " \($0)ms" } ?? ""))
        list.add("listeners", status.listeners.joined(separator: ", "))
        list.startGroup()
        list.add(
            "connections", "\(status.connections) (\(status.connectionsPending) not yet admitted)")
        list.add(
            "since the start",
            "\(status.connectionsTotal) accepted, \(status.connectionsRefused) refused")
        if let drain = status.drain { list.add("drain", DrainCommand.summary(drain)) }
        list.add("protocol violations", "\(status.protocolViolations)")
        if let memory = status.memory { list.add("memory", Self.text(memory)) }
        list.startGroup()
        list.add("sessions", "\(status.sessions) (\(status.persistentSessions) persistent)")
        list.add(
            "their memory",
            Wording.bytes(status.sessionBytes)
                + (status.sessionBytesLimit.map { " of \(Wording.bytes($0))" } ?? ""))
        list.add("subscriptions", "\(status.subscriptions)")
        list.add("retained messages", "\(status.retained)")
        list.add("queued", "\(status.queued) (\(Wording.bytes(status.queuedBytes)))")
        list.add("in flight", "\(status.inFlight)")
        list.startGroup()
        list.add(
            "received",
            "\(status.publishesReceived) messages, \(Wording.bytes(status.bytesReceived))")
        list.add("sent", "\(status.publishesSent) messages, \(Wording.bytes(status.bytesSent))")
        list.add("dropped", Wording.counts(status.dropped))
        list.add("limits reached", Wording.counts(status.limitsReached))
        if let webhook = status.webhook { list.add("webhook", text(webhook, now: now)) }
        for (name, sender) in [("APNs", status.apns), ("FCM", status.fcm)] {
            guard let sender else { continue }
            list.add(
                name,
                sender.pause.map { "nothing is sent: \($0.reason). \($0.hint)" }
                    ?? "\(sender.answers["Success"] ?? 0) notifications taken")
        }
        if let service = status.loginService {
            list.add(
                "login service",
                service.isFailing
                    ? "failing: \(service.failure ?? "no answer")"
                    : "\(service.inFlight) requests on their way")
        }
        if let reload = status.reload {
            let moment = Wording.moment(reload.atMs, now: now)
            list.add(
                "last reload",
                reload.problems.isEmpty
                    ? moment : "refused \(moment): \(reload.problems.joined(separator: "; "))")
        }
        if let store = status.store {
            add(store, notReadyReason: status.notReadyReason, to: &list)
        }
        return list.rendered()
    }

    private static func text(_ memory: MemoryFigures) -> String {
        let limit = memory.limitBytes.map { " of \(Wording.bytes($0))" } ?? ""
        let pressure =
            memory.pressure.hasBytes(of: "none") ? "" : ", short: \(memory.pressure) are cut back"
        let state = memory.keepsNothingNew ? ", full: nothing new is kept" : ""
        return Wording.bytes(memory.usedBytes) + limit + pressure + state
    }

    private static func text(_ webhook: WebhookFigures, now: Int64) -> String {
        let last = webhook.lastSuccessAtMs.map { "the last \(Wording.moment($0, now: now))" }
        let state = webhook.failure.map { "failing: \($0)" }
        return (["\(webhook.events["delivered"] ?? 0) events"] + [last, state].compactMap { $0 })
            .joined(separator: ", ")
    }

    private static func add(
        _ store: StoreStatus, notReadyReason: String?, to list: inout FieldList
    ) {
        list.startGroup()
        list.add("ready", notReadyReason.map { "no: \($0)" } ?? "yes")
        list.add(
            "commits",
            "\(store.commits) (\(Wording.bytes(store.committedBytes))), \(store.failures) failed")
        list.add(
            "longest commit",
            "\(Wording.microseconds(store.longestCommitMicroseconds)), of it fdatasync "
                + "\(Wording.microseconds(store.longestSyncMicroseconds))")
        list.add(
            "journal",
            "\(Wording.bytes(store.journalBytes)), \(store.waitingSegments) segments to be moved")
        list.add(
            "database",
            "\(Wording.bytes(store.databaseBytes)), \(store.movedMessages) messages moved")
        list.add("free on the disk", Wording.bytes(store.freeBytes))
        if let percent = store.backupPercent { list.add("backup", "\(percent) %") }
        for damage in store.damage { list.add("damage", damage) }
    }
}
