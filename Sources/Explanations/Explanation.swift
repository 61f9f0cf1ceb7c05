import Authorization
import BrokerAPI
import PlainText

/// Says in plain words what a client is doing, and why it may not have got a message.
package struct Explanation {
    let clientID: String
    /// `nil` without a connection and a session.
    let detail: ClientDetail?
    let history: ClientHistory
    /// A topic that the operator asks about; `nil` for none.
    let topic: String?
    /// Whether the client may get messages of the topic; `nil` if it was not asked, or without a
    /// session.
    let readRight: ReadRight?
    /// The clients that would get a message of the topic now; `nil` if it was not asked.
    let receivers: TopicReceivers?
    /// Why no notification reaches a device now; `nil` while they are sent.
    let wakeObstacle: (DeviceModel) -> String?
    /// UNIX time in milliseconds.
    let now: Int64

    package init(
        clientID: String, detail: ClientDetail?, history: ClientHistory, topic: String?,
        readRight: ReadRight? = nil, receivers: TopicReceivers? = nil,
        wakeObstacle: @escaping (DeviceModel) -> String? = { _ in nil }, now: Int64
    ) {
        self.clientID = clientID
        self.detail = detail
        self.history = history
        self.topic = topic
        self.readRight = readRight
        self.receivers = receivers
        self.wakeObstacle = wakeObstacle
        self.now = now
    }

    /// True when the broker knows nothing of the client.
    package var isUnknown: Bool {
        detail == nil && history.events.isEmpty && history.bans.isEmpty
    }

    /// Sentences, the most general first.
    package var sentences: [String] {
        guard let detail else { return withoutSession }
        return bans + state(detail) + subscriptions(detail) + queue(detail) + sent(detail)
            + losses(detail) + refusals + devices(detail) + report(detail)
    }

    private var withoutSession: [String] {
        guard let newest = history.events.first else {
            return bans + [
                "The broker knows no client of this identifier: it never came, or nothing has "
                    + "happened to it for long (limits.history_bytes), or since the last start."
            ]
        }
        var lines = bans + ["It has no session, so nothing is kept for it and nothing reaches it."]
        let last =
            history.events.first { $0.kind != .deviceGone && $0.kind != .deviceSetAside } ?? newest
        switch last.kind {
        case .disconnected:
            lines.append(
                "Its session was clean, and ended with its connection \(ago(last.lastMs)).")
        case .expired:
            lines.append("Its session expired \(ago(last.lastMs)) (limits.session_expiry).")
        case .sessionEnded: lines.append(words(ofSessionEnd: last))
        default: break
        }
        if let event = self.last(.lostMessages, "session_ended") {
            lines.append(
                "\(event.count) of its messages ended with its session \(ago(event.lastMs)): it had "
                    + "not acknowledged them.")
        }
        return lines + refusals
    }

    private func words(ofSessionEnd event: ClientEvent) -> String {
        switch event.reason {
        case "clean_session":
            "It connected \(ago(event.lastMs)) with a clean session, which removed the one that had "
                + "kept its subscriptions and messages; that clean one is gone too."
        default: "An operator ended its session \(ago(event.lastMs))."
        }
    }

    // MARK: Messages

    private func subscriptions(_ detail: ClientDetail) -> [String] {
        let filters = detail.subscriptionList
        let count = max(detail.summary.subscriptions, filters.count)
        guard !filters.isEmpty else {
            return ["It has no subscription, so no message is for it."]
        }
        guard let topic else {
            let shown = filters.prefix(5).map { "\($0.filter) (QoS \($0.qos))" }
            let rest = count - shown.count
            return [
                "It subscribes to " + shown.joined(separator: ", ")
                    + (rest > 0 ? " and \(rest) more." : ".")
            ]
        }
        let matching = filters.filter { FilterMatch.matches(filter: $0.filter, topic: topic) }
        guard let best = matching.max(by: { $0.qos < $1.qos }) else {
            return ["None of its subscriptions (\(count)) matches \(topic)."]
                + nearMisses(filters, topic) + others(topic) + denial
        }
        var lines = ["Its subscription \(best.filter) (QoS \(best.qos)) matches \(topic)."]
        if best.qos == 0 {
            lines.append(
                "At QoS 0 a message is not kept while it is offline, nor when it reads too slowly.")
        }
        if best.filter.begins(with: "$share/") {
            lines.append("The subscription is shared: another member may have got the message.")
        }
        return lines + denial
    }

    /// The first subscriptions that were probably meant to match.
    private func nearMisses(_ filters: [ClientSubscription], _ topic: String) -> [String] {
        var lines: [String] = []
        for filter in filters.prefix(NearMiss.mostFilters).map(\.filter) where lines.count < 3 {
            guard let slip = NearMiss.words(filter: filter, topic: topic) else { continue }
            lines.append("Its subscription \(filter) nearly does: \(slip).")
        }
        return lines
    }

    /// Says who would get a message of a topic that is not for the client.
    private func others(_ topic: String) -> [String] {
        guard let receivers else { return [] }
        guard receivers.matched > 0 else {
            return receivers.groups.isEmpty
                ? ["No client would get a message on \(topic) now."]
                : ["Only members of shared subscriptions would get a message on \(topic) now."]
        }
        let names = receivers.receivers.prefix(3).map(\.clientID).joined(separator: ", ")
        let rest = receivers.matched - min(3, receivers.receivers.count)
        return [
            "A message on \(topic) would reach \(names)" + (rest > 0 ? " and \(rest) more." : ".")
        ]
    }

    /// Names the rule or the login that denies the client the topic which the operator asks about.
    private var denial: [String] {
        guard let topic, let readRight, !readRight.isAllowed else { return [] }
        switch readRight.source {
        case .nothing: return []
        case .rule(line: 0):
            return ["It may not read \(topic): no access rule allows it (acl_file)."]
        case .rule(let line):
            return ["It may not read \(topic): line \(line) of the access rules denies it."]
        case .login:
            return [
                "It may not read \(topic): its login does not allow it (the claims of its token, or "
                    + "the answer of the login service)."
            ]
        }
    }

    private func queue(_ detail: ClientDetail) -> [String] {
        let client = detail.summary
        var lines: [String] = []
        if client.connected {
            if client.inFlight > 0 {
                let more =
                    client.queued > 0
                    ? "; \(client.queued) more wait behind (limits.max_in_flight)" : ""
                lines.append("\(messages(client.inFlight)) sent and not acknowledged\(more).")
            } else if client.queued > 0 {
                lines.append(
                    "\(messages(client.queued)) waiting: for the disk (hermesctl status), or until "
                        + "it reads.")
            }
            if detail.unsentBytes > 0 {
                lines.append(
                    "It does not read: \(Spans.bytes(detail.unsentBytes)) wait in its connection."
                )
            }
            if detail.readingPaused {
                lines.append(
                    "The broker does not read from it, because too much of what it sent waits for "
                        + "the disk, or for it to read its acknowledgements.")
            }
        } else if client.queued + client.inFlight > 0 {
            var line = "\(messages(client.queued + client.inFlight)) kept until it comes back"
            if client.inFlight > 0 {
                line += "; \(client.inFlight) of them it had been sent and not acknowledged"
            }
            lines.append(line + ".")
        }
        return lines
    }

    private func sent(_ detail: ClientDetail) -> [String] {
        let count = detail.publishesSentQoS0
        guard count > 0 else { return [] }
        return [
            "\(detail.publishesSent == 1 ? "1 message was" : "\(detail.publishesSent) messages were") "
                + "sent to it, \(count) with QoS 0, which nobody acknowledges; it acknowledged "
                + "\(detail.publishesAcknowledged)."
        ]
    }

    private func losses(_ detail: ClientDetail) -> [String] {
        let filters = detail.subscriptionList
        let lost = detail.dropped.filter { $0.value > 0 }.sorted { $0.key < $1.key }
        return lost.map { reason, count in
            let words = Self.words(ofLoss: reason, atQoS0: Self.words(ofQoS0: filters))
            var line = "It lost \(count) of its messages: \(words)"
            if let event = last(.lostMessages, reason) {
                line += ", last \(ago(event.lastMs))"
                if let topic = event.topic { line += ", such as one on \(topic)" }
            }
            return line + "."
        }
    }

    /// Whether the messages or the subscriptions with these filters had QoS 0, for `several` messages or
    /// one.
    static func words(ofQoS0 filters: [ClientSubscription], several: Bool = true) -> String {
        let they = several ? "they" : "it"
        guard filters.contains(where: { $0.qos == 0 }) else { return "\(they) had QoS 0" }
        let one = filters.count == 1
        return filters.contains { $0.qos > 0 }
            ? "\(they) or the matching subscription had QoS 0"
            : "its subscription\(one ? " has" : "s have") QoS 0"
    }

    static func words(ofLoss reason: String, atQoS0: String) -> String {
        switch reason {
        case "offline": "\(atQoS0), and it was offline"
        case "slow_reader": "\(atQoS0), and it read too slowly (limits.output_bytes)"
        case "queue_full": "its queue was full (limits.queue_messages, limits.queue_bytes)"
        case "expired": "they expired before it came"
        case "reserved_topic": "it published below $SYS/, which is the broker's"
        case "operator": "an operator emptied its queue"
        case "acl": "the access rules no longer let it read them"
        case "session_ended": "its session ended before it acknowledged"
        case "handed_over": "another member of its shared subscription got it"
        case "too_large": "they were larger than the packets it takes (Maximum Packet Size)"
        case "refused": "it refused them by a reason code"
        case "replaced": "later messages of the same collapse key took their place"
        default: reason
        }
    }

    // MARK: Refusals

    private var refusals: [String] {
        history.events.compactMap { event in
            let times = event.count > 1 ? " \(event.count) times, last" : ""
            let address = event.address.map { " from \($0)" } ?? ""
            let topic = event.topic.map { " \($0)" } ?? ""
            switch event.kind {
            case .refused:
                let user = event.userName.map { " as user \($0)" } ?? ""
                return "Its CONNECT\(user) was refused\(times) \(ago(event.lastMs))\(address): "
                    + "\(event.detail ?? Self.words(ofRefusal: event.reason))."
            case .filterRefused:
                return "A subscription was refused\(times) \(ago(event.lastMs)) at the limit "
                    + "\(event.reason)."
            case .denied:
                let denial = event.detail.map { "\($0): denied" } ?? "the access rules denied it"
                return "It may not \(Self.words(ofDenial: event.reason))\(topic): "
                    + "\(denial)\(times) \(ago(event.lastMs))."
            case .deviceGone:
                let name = event.detail.map { " \(VisibleText.quoted($0))" } ?? ""
                return "Its push service said \(ago(event.lastMs)) that its device\(name) is gone "
                    + "(\(event.reason)), which was forgotten until it registers again."
            // The device itself says so while it is set aside.
            case .connected, .disconnected, .lostMessages, .expired, .sessionEnded, .deviceSetAside,
                .flapping:
                return nil
            }
        }
    }

    static func words(ofRefusal reason: String) -> String {
        switch reason {
        case "bad_user_name_or_password": "wrong user name or password"
        case "not_authorized":
            "it may not: no user name where one is needed, or the session is another user's"
        case "locked_out":
            "too many wrong passwords had come from its address (limits.lockout_attempts), and this "
                + "one was not looked at"
        case "banned": "an operator has banned it, its user or its address"
        case "draining": "the broker was drained and let nobody in (hermesctl drain status)"
        case "identifier_rejected": "its client identifier is not allowed"
        case "bad_authentication_method":
            "its CONNECT asked for enhanced authentication (MQTT 5.0), which the broker does not have"
        case "too_many_sessions": "there are as many sessions as may be (limits.max_sessions)"
        case "authentication_busy": "too many passwords were being checked"
        case "login_service_unavailable":
            "the company's service that is asked about logins (auth.http) gave no answer"
        case "no_room": "there was no room for its session (limits.session_bytes, limits.memory)"
        default: reason
        }
    }

    static func words(ofDenial action: String) -> String {
        switch action {
        case "publish": "publish to"
        case "subscribe": "subscribe to"
        case "deliver": "get messages of"
        case "will": "publish its will to"
        default: action
        }
    }

    // MARK: Reports

    private func report(_ detail: ClientDetail) -> [String] {
        guard let report = detail.report else { return [] }
        let counts = report.counts
        return [
            "It reported \(ago(report.reportedAtMs)): \(counts.received) received, "
                + "\(counts.losses) lost, \(counts.duplicates) twice, "
                + "\(counts.lostConnections) connections lost."
        ]
    }

    // MARK: Words

    private func last(_ kind: ClientEvent.Kind, _ reason: String) -> ClientEvent? {
        history.events.first { $0.kind == kind && $0.reason == reason }
    }

    func messages(_ count: Int) -> String {
        count == 1 ? "1 message is" : "\(count) messages are"
    }

    func span(_ moment: Int64) -> String { Spans.age(of: moment, now: now) }

    func ago(_ moment: Int64) -> String { span(moment) + " ago" }
}
