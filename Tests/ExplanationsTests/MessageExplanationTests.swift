import BrokerAPI
import Explanations
import Testing

@Suite("Explanations of messages")
struct MessageExplanationTests {
    private static let group = "$share/g/jobs/#"

    private static func detail(
        _ filters: [(String, Int)], _ change: (inout ClientDetail) -> Void = { _ in }
    ) -> ClientDetail {
        var detail = ClientDetail(
            summary: ClientSummary(
                clientID: "p", userName: nil, connected: false, address: nil,
                protocolVersion: "3.1.1", cleanSession: false, keepAliveSeconds: 60,
                sinceMs: 40_000, subscriptions: filters.count, inFlight: 0, queued: 0,
                queuedBytes: 0, dropped: 0),
            subscriptionList: filters.map { ClientSubscription(filter: $0.0, qos: $0.1) },
            sessionBytes: 0, willTopic: nil, lastPacketMsAgo: nil, inboundQoS2: 0,
            unacknowledgedPublishes: 0, unsentBytes: 0, readingPaused: false, publishesReceived: 0,
            publishesSent: 0, publishesAcknowledged: 0, dropped: [:],
            lastDisconnectReason: "disconnect")
        change(&detail)
        return detail
    }

    private static func explained(
        _ detail: ClientDetail?, _ receivers: [MessageReceipt.Receiver]?
    ) -> [String] {
        var counts = MessageReceipt.Counts()
        counts.receivers = receivers?.count ?? 70
        return MessageExplanation(
            messageID: "m", clientID: "p", detail: detail,
            receipt: MessageReceipt(
                messageID: "m", topic: "jobs/1", publishedAtMs: 95_000, counts: counts,
                receivers: receivers),
            queued: nil, isQueueLonger: false, now: 100_000
        ).sentences
    }

    private static func taken(_ client: String, group: String? = group)
        -> MessageReceipt.Receiver
    {
        MessageReceipt.Receiver(
            clientID: client, state: .acknowledged, atMs: 96_000, group: group)
    }

    private static let published = "The message m was published 5s ago to jobs/1"
    private static let notForIt =
        published + ", and was not for this client: it had no session or no subscription that "
        + "matched then, or the access rules denied it."

    @Test("another member of its group got the message: who, and as whose member")
    func otherMember() {
        let membership = "It is a member of $share/g/jobs/#, which gives each message to one member"
        #expect(
            Self.explained(Self.detail([(Self.group, 1)]), [Self.taken("q")])
                == [Self.published + ".", membership + ": this one went to q (acknowledged)."])
        #expect(
            Self.explained(Self.detail([(Self.group, 1)]), [Self.taken("q", group: nil)])
                == [
                    Self.published + ".",
                    membership
                        + ", and no member got this one: none was connected then and none's session "
                        + "kept it, the access rules denied it, or the group had no members yet.",
                ])
        #expect(
            Self.explained(Self.detail([(Self.group, 1)]), nil).last
                == "It may have gone to another member of $share/g/jobs/#.")
        // Receipts do not name so long a group.
        let long = "$share/" + String(repeating: "g", count: 250) + "/jobs/#"
        #expect(
            Self.explained(Self.detail([(long, 1)]), [Self.taken("q", group: nil)]).last?
                .hasSuffix("which gives each message to one member: another one may have got it.")
                == true)
    }

    @Test("a client that is no member, or has gone, is told who got it as a member")
    func noMember() {
        for detail in [Self.detail([("other", 1)]), nil] {
            #expect(
                Self.explained(detail, [Self.taken("q")]) == [
                    Self.notForIt,
                    "$share/g/jobs/# gave it to q, and to no other member of that group.",
                ])
        }
        #expect(
            Self.explained(Self.detail([("jobs/#", 1)]), [Self.taken("q", group: nil)])
                == [Self.notForIt])
    }

    @Test("a member that left its group, whose message nobody took")
    func left() {
        let receiver = MessageReceipt.Receiver(
            clientID: "p", state: .dropped, reason: "offline", atMs: 97_000, group: Self.group)
        #expect(
            Self.explained(nil, [receiver]) == [
                "The message m was lost 3s ago: it left $share/g/jobs/#, of which no other member was connected, and none's session kept the message."
            ])
    }

    @Test("a replaced message names the one that took its place")
    func replaced() {
        let receiver = MessageReceipt.Receiver(
            clientID: "p", state: .dropped, reason: "replaced", atMs: 97_000, replacedBy: "m2")
        #expect(
            Self.explained(nil, [receiver]) == [
                "The message m was replaced in its queue 3s ago: the message m2, of the same collapse key, took its place."
            ])
    }

    @Test(
        "whether the message or its subscription had QoS 0",
        arguments: [
            ([("jobs/#", 1)], "it had QoS 0"),
            ([("jobs/#", 0)], "its subscription has QoS 0"),
            ([("jobs/#", 0), ("other", 1)], "its subscription has QoS 0"),
            ([("jobs/#", 0), ("jobs/1", 1)], "it or the matching subscription had QoS 0"),
        ])
    func qosZero(filters: [(String, Int)], words: String) {
        let receiver = MessageReceipt.Receiver(
            clientID: "p", state: .dropped, reason: "offline", atMs: 97_000)
        #expect(
            Self.explained(Self.detail(filters), [receiver])
                == ["The message m was lost 3s ago: \(words), and it was offline."])
    }

    @Test("what a client was sent with QoS 0 is told apart, and whose QoS that was")
    func sent() {
        let detail = Self.detail([("a", 0), ("b", 0)]) {
            $0.publishesSent = 98
            $0.publishesSentQoS0 = 80
            $0.publishesAcknowledged = 18
            $0.dropped = ["offline": 3]
        }
        let sentences = Explanation(
            clientID: "p", detail: detail, history: ClientHistory(clientID: "p", events: []),
            topic: nil, now: 100_000
        ).sentences
        #expect(
            sentences.suffix(2) == [
                "98 messages were sent to it, 80 with QoS 0, which nobody acknowledges; it acknowledged 18.",
                "It lost 3 of its messages: its subscriptions have QoS 0, and it was offline.",
            ])
    }
}
