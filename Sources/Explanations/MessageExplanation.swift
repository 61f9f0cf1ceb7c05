import BrokerAPI
import PlainText

/// Says in plain words what became of one message for one client.
package struct MessageExplanation {
    let messageID: String
    let clientID: String
    /// `nil` for a message that was not followed.
    let receipt: MessageReceipt?
    /// Its place in the client's queue; `nil` when none was found.
    let queued: QueuedMessage?
    /// True when the queue is longer than the part that was looked at.
    let isQueueLonger: Bool
    /// UNIX time in milliseconds.
    let now: Int64

    package init(
        messageID: String, clientID: String, receipt: MessageReceipt?, queued: QueuedMessage?,
        isQueueLonger: Bool, now: Int64
    ) {
        self.messageID = messageID
        self.clientID = clientID
        self.receipt = receipt
        self.queued = queued
        self.isQueueLonger = isQueueLonger
        self.now = now
    }

    /// The topic, if the broker knows the message.
    package var topic: String? { receipt?.topic ?? queued?.topic }

    package var sentences: [String] {
        if let receiver = receipt?.receivers?.first(where: { $0.clientID.hasBytes(of: clientID) }) {
            return [words(of: receiver)]
        }
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
        guard receipt.receivers != nil else {
            return [
                "\(published) to \(receipt.topic) for \(receipt.counts.receivers) receivers, too "
                    + "many to know each of them."
            ]
        }
        return [
            "\(published) to \(receipt.topic), and was not for this client: it had no session or "
                + "no subscription that matched then, or the access rules denied it."
        ]
    }

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
            let reason = receiver.reason.map { Explanation.words(ofLoss: $0) } ?? "unknown"
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
