import Authorization
import BrokerAPI
import PlainText

/// Says in plain words what became of one message for one client.
package struct MessageExplanation {
    let messageID: String
    let clientID: String
    /// `nil` without a connection and a session.
    let detail: ClientDetail?
    /// `nil` for a message that was not followed.
    let receipt: MessageReceipt?
    /// Its place in the client's queue; `nil` when none was found.
    let queued: QueuedMessage?
    /// True when the queue is longer than the part that was looked at.
    let isQueueLonger: Bool
    /// UNIX time in milliseconds.
    let now: Int64

    package init(
        messageID: String, clientID: String, detail: ClientDetail? = nil,
        receipt: MessageReceipt?, queued: QueuedMessage?, isQueueLonger: Bool, now: Int64
    ) {
        self.messageID = messageID
        self.clientID = clientID
        self.detail = detail
        self.receipt = receipt
        self.queued = queued
        self.isQueueLonger = isQueueLonger
        self.now = now
    }

    /// The topic, if the broker knows the message.
    package var topic: String? { receipt?.topic ?? queued?.topic }

    package var sentences: [String] {
        let own = receipt?.receivers?.filter { $0.clientID.hasBytes(of: clientID) } ?? []
        guard own.isEmpty else { return own.map(words(of:)) }
        if let queued { return [words(of: queued)] }
        guard let receipt else {
            let part = isQueueLonger ? " It is not among the first of its queue either." : ""
            return [
                "The broker does not know what became of the message \(messageID): it was not "
                    + "published with receipts in the last 24 hours (\"receipts\": true, or "
                    + "receipts.topics), and does not wait for this client.\(part)"
            ]
        }
        let published = "The message \(messageID) was published \(ago(receipt.publishedAtMs))"
        guard let receivers = receipt.receivers else {
            return [
                "\(published) to \(receipt.topic) for \(receipt.counts.receivers) receivers, too "
                    + "many to know each of them."
            ] + memberships.map { "It may have gone to another member of \($0.filter)." }
        }
        let groups = memberships.map { words(of: $0, receivers) }
        let others = receivers.filter { receiver in
            receiver.group.map { group in
                !memberships.contains { $0.filter.hasBytes(of: group) }
            } ?? false
        }
        let given = others.map {
            "\($0.group ?? "") gave it to \($0.clientID), and to no other member of that group."
        }
        guard groups.isEmpty || hasPlainSubscription else {
            return ["\(published) to \(receipt.topic)."] + groups
        }
        return [
            "\(published) to \(receipt.topic), and was not for this client: it had no session or "
                + "no subscription that matched then, or the access rules denied it."
        ] + groups + given
    }

    // MARK: Shared subscriptions

    private var matching: [ClientSubscription] {
        guard let topic, let detail else { return [] }
        return detail.subscriptionList.filter {
            FilterMatch.matches(filter: $0.filter, topic: topic)
        }
    }

    /// The shared subscriptions that match, as whose member the client may get the message.
    private var memberships: [ClientSubscription] {
        matching.filter { $0.filter.begins(with: "$share/") }
    }

    private var hasPlainSubscription: Bool {
        matching.contains { !$0.filter.begins(with: "$share/") }
    }

    private func words(
        of membership: ClientSubscription, _ receivers: [MessageReceipt.Receiver]
    ) -> String {
        let group = membership.filter
        let got = receivers.filter { $0.group?.hasBytes(of: group) ?? false }
        let member = "It is a member of \(group), which gives each message to one member"
        guard got.isEmpty else {
            let names = got.map { "\($0.clientID) (\($0.state.rawValue))" }
            return "\(member): this one went to \(names.joined(separator: " and "))."
        }
        guard group.utf8.count <= Self.mostGroupBytes else {
            return "\(member): another one may have got it."
        }
        return "\(member), and no member got this one: none was connected then and none's session "
            + "kept it, the access rules denied it, or the group had no members yet."
    }

    /// Receipts name no longer groups.
    private static let mostGroupBytes = 255

    private func words(of receiver: MessageReceipt.Receiver) -> String {
        let time = receiver.atMs.map { " \(ago($0))" } ?? ""
        let message = "The message \(messageID)"
        switch receiver.state {
        case .queued: return "\(message) waits in its queue and was not sent yet."
        case .sent:
            return receiver.atMs == nil
                ? "\(message) was sent, and the client has not acknowledged it yet."
                : "\(message) was sent\(time) with QoS 0, which nobody acknowledges."
        case .acknowledged: return "It acknowledged the message \(messageID)\(time): it has it."
        case .expired: return "\(message) expired\(time), before the client acknowledged it."
        case .dropped:
            if let successor = receiver.replacedBy {
                return "\(message) was replaced in its queue\(time): the message \(successor), of "
                    + "the same collapse key, took its place."
            }
            if let group = receiver.group, receiver.reason?.hasBytes(of: "offline") ?? false {
                return "\(message) was lost\(time): it left \(group), of which no other member was "
                    + "connected, and none's session kept the message."
            }
            let reason =
                receiver.reason.map {
                    Explanation.words(
                        ofLoss: $0, atQoS0: Explanation.words(ofQoS0: matching, several: false))
                } ?? "unknown"
            return "\(message) was lost\(time): \(reason)."
        }
    }

    private func words(of queued: QueuedMessage) -> String {
        let message = "The message \(messageID)"
        return switch queued.state {
        case .waiting: "\(message) waits in its queue, at position \(queued.position)."
        case .inFlight:
            "\(message) was sent, or is being sent, and the client has not acknowledged it yet."
        case .released: "\(message) has reached it (QoS 2), and only the last step is missing."
        }
    }

    private func ago(_ moment: Int64) -> String { Spans.age(of: moment, now: now) + " ago" }
}
