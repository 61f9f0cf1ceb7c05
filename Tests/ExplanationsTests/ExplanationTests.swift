import BrokerAPI
import Explanations
import Testing

@Suite("Explanations of clients")
struct ExplanationTests {
    private static func detail(
        connected: Bool = true, inFlight: Int = 0, queued: Int = 0, filters: [(String, Int)] = [],
        clean: Bool = false, _ change: (inout ClientDetail) -> Void = { _ in }
    ) -> ClientDetail {
        var detail = ClientDetail(
            summary: ClientSummary(
                clientID: "p", userName: "ann", connected: connected,
                address: connected ? "192.0.2.1:5" : nil, protocolVersion: "3.1.1",
                cleanSession: clean, keepAliveSeconds: 60, sinceMs: 40_000,
                subscriptions: filters.count, inFlight: inFlight, queued: queued, queuedBytes: 0,
                dropped: 0),
            subscriptionList: filters.map { ClientSubscription(filter: $0.0, qos: $0.1) },
            sessionBytes: 0, willTopic: nil, lastPacketMsAgo: connected ? 3_000 : nil,
            inboundQoS2: 0, unacknowledgedPublishes: 0, unsentBytes: 0, readingPaused: false,
            publishesReceived: 0, publishesSent: 0, publishesAcknowledged: 0, dropped: [:],
            lastDisconnectReason: connected ? nil : "keep_alive")
        change(&detail)
        return detail
    }

    private static func event(
        _ kind: ClientEvent.Kind, _ reason: String, lastMs: Int64 = 95_000, count: UInt64 = 1,
        address: String? = nil, userName: String? = nil, topic: String? = nil
    ) -> ClientEvent {
        ClientEvent(
            kind: kind, firstMs: 1, lastMs: lastMs, count: count, reason: reason, address: address,
            userName: userName, topic: topic)
    }

    private static func explained(
        _ detail: ClientDetail?, _ events: [ClientEvent] = [], topic: String? = nil,
        readRight: ReadRight? = nil
    ) -> [String] {
        Explanation(
            clientID: "p", detail: detail, history: ClientHistory(clientID: "p", events: events),
            topic: topic, readRight: readRight, now: 100_000
        ).sentences
    }

    @Test("a client that does not acknowledge")
    func slow() {
        #expect(
            Self.explained(Self.detail(inFlight: 20, queued: 3, filters: [("a/#", 1)])) == [
                "It is connected since 1m, from 192.0.2.1:5; its last packet came 3s ago.",
                "It subscribes to a/# (QoS 1).",
                "20 messages are sent and not acknowledged; 3 more wait behind (limits.max_in_flight).",
            ])
    }

    @Test(
        "who denies a topic that a subscription matches",
        arguments: [
            (ReadRight.Source.rule(line: 7), "line 7 of the access rules denies it."),
            (.rule(line: 0), "no access rule allows it (acl_file)."),
            (
                .login,
                "its login does not allow it (the claims of its token, or the answer of the login service)."
            ),
        ])
    func denied(source: ReadRight.Source, words: String) {
        let detail = Self.detail(filters: [("a/#", 1)])
        let right = ReadRight(isAllowed: false, source: source)
        #expect(
            Self.explained(detail, topic: "a/1", readRight: right).suffix(2) == [
                "Its subscription a/# (QoS 1) matches a/1.", "It may not read a/1: \(words)",
            ])
        let allowed = ReadRight(isAllowed: true, source: source)
        #expect(
            Self.explained(detail, topic: "a/1", readRight: allowed).last
                == "Its subscription a/# (QoS 1) matches a/1.")
    }

    @Test("connections of one address that end each other")
    func takenOver() {
        let event = Self.event(.disconnected, "taken_over")
        let connected = Self.event(.connected, "resumed")
        let sentences = Self.explained(
            Self.detail(), [connected, event, connected, event, connected, event])
        #expect(
            sentences.contains(
                "Newer connections with its identifier ended 3 of its last ones within 5s: two programs use the identifier, or its app connects again before its former connection is closed, as after a change of networks."
            ))
        #expect(!sentences.contains { $0.contains("lets connections go") })
        #expect(
            Self.explained(Self.detail(), [connected, event, connected, event, connected])
                .contains {
                    $0.hasPrefix("It connected 3 times within 5s: its network or its app")
                })
    }

    @Test("a client that is away, with a full queue")
    func away() {
        let detail = Self.detail(connected: false, queued: 1, filters: [("a/#", 1)]) {
            $0.dropped = ["queue_full": 7, "acl": 0]
        }
        let event = Self.event(.lostMessages, "queue_full", count: 7, topic: "a/1")
        #expect(
            Self.explained(detail, [event]) == [
                "It is offline since 1m: it was silent for longer than one and a half times its keep alive, so its network or phone was gone.",
                "It subscribes to a/# (QoS 1).", "1 message is kept until it comes back.",
                "It lost 7 of its messages: its queue was full (limits.queue_messages, limits.queue_bytes), last 5s ago, such as one on a/1.",
            ])
    }

    @Test(
        "the device and its last notification",
        arguments: [
            (DeviceDetail.WakeState.none, "Its device (apns) is owed no notification."),
            (
                .watched,
                "Its device is woken if 2 messages are not acknowledged for long (wakes.unanswered)."
            ),
            (
                .waiting,
                "Its device is woken for 2 messages in a while (wakes.merge, wakes.reconnect_window)."
            ),
            (
                .ready,
                "Its device is to be woken for 2 messages, and no sender has taken that yet (hermesctl devices status)."
            ),
            (
                .held,
                "Its device is woken for 2 messages later: quiet hours or a cap hold that back for 1h (wakes.quiet_hours, wakes.cap)."
            ),
            (.sent, "A notification for 2 messages is with its sender, which has no answer yet."),
            (
                .setAside,
                "Its device gets no notifications, because the push service refuses it, until it registers again."
            ),
        ])
    func device(state: DeviceDetail.WakeState, words: String) {
        let device = Device(
            kind: .apns, token: [1], bundle: "b", environment: .production, registeredAtMs: 0)
        var known = DeviceDetail(
            clientID: "p", device: device, wake: state, waiting: 2,
            lastOutcome: "later", lastReason: "Shutdown", lastAnsweredAtMs: 97_000)
        if state == .held { known.heldUntilMs = 3_700_000 }
        let detail = Self.detail(inFlight: 0, filters: [("a", 1)]) {
            $0.devices = [DeviceModel(known)]
        }
        #expect(
            Self.explained(detail).last == words + " The last one was put off (Shutdown) 3s ago.")
    }

    @Test("each of several devices is named")
    func devices() {
        var device = Device(
            kind: .apns, token: [1], bundle: "b", environment: .production, registeredAtMs: 0)
        func model(_ wake: DeviceDetail.WakeState) -> DeviceModel {
            DeviceModel(DeviceDetail(clientID: "p", device: device, wake: wake, waiting: 1))
        }
        let first = model(.none)
        device.name = "watch"
        let detail = Self.detail(inFlight: 0, filters: [("a", 1)]) {
            $0.devices = [first, model(.sent)]
        }
        #expect(
            Self.explained(detail).suffix(2) == [
                "Its device without a name (apns) is owed no notification.",
                "Its device \"watch\": a notification for 1 message is with its sender, which has no answer yet.",
            ])
    }

    @Test(
        "a wake that is owed while its sender pauses",
        arguments: [DeviceDetail.WakeState.waiting, .ready, .sent])
    func pausedSender(state: DeviceDetail.WakeState) {
        let device = Device(
            kind: .apns, token: [1], bundle: "b", environment: .production, registeredAtMs: 0)
        let detail = Self.detail(filters: [("a", 1)]) {
            $0.devices = [
                DeviceModel(DeviceDetail(clientID: "p", device: device, wake: state, waiting: 1))
            ]
        }
        let sentences = Explanation(
            clientID: "p", detail: detail, history: ClientHistory(clientID: "p", events: []),
            topic: nil, wakeObstacle: { _ in "nothing is sent to Apple: no trust" },
            now: 100_000
        ).sentences
        #expect(
            sentences.last
                == "Its device is owed a notification for 1 message, which goes out later: nothing is sent to Apple: no trust (hermesctl devices status)."
        )
    }

    @Test(
        "whether a topic is for the client",
        arguments: [
            ("a/b", ["Its subscription a/+ (QoS 1) matches a/b."]),
            (
                "x",
                [
                    "Its subscription x (QoS 0) matches x.",
                    "At QoS 0 a message is not kept while it is offline, nor when it reads too slowly.",
                ]
            ),
            (
                "s/1",
                [
                    "Its subscription $share/g/s/# (QoS 2) matches s/1.",
                    "The subscription is shared: another member may have got the message.",
                ]
            ),
            (
                "a",
                [
                    "None of its subscriptions (3) matches a.",
                    "Its subscription a/+ nearly does: + at its end asks for one level more than the topic has, and # would not.",
                ]
            ),
            ("$SYS/x", ["None of its subscriptions (3) matches $SYS/x."]),
            (
                "x/y",
                [
                    "None of its subscriptions (3) matches x/y.",
                    "Its subscription x nearly does: the topic has more levels, and it does not end with /#.",
                ]
            ),
        ])
    func topics(topic: String, sentences: [String]) {
        let detail = Self.detail(filters: [("a/+", 1), ("x", 0), ("$share/g/s/#", 2)])
        #expect(Self.explained(detail, topic: topic).dropFirst() == sentences[...])
    }

    @Test("who gets a topic that is not for the client")
    func others() {
        let detail = Self.detail(filters: [("a", 1)])
        func sentence(_ names: [String], matched: Int, groups: [String] = []) -> String? {
            Explanation(
                clientID: "p", detail: detail, history: ClientHistory(clientID: "p", events: []),
                topic: "b/1",
                receivers: TopicReceivers(
                    topic: "b/1", matched: matched,
                    receivers: names.map {
                        TopicReceiver(clientID: $0, userName: nil, qos: 1, outcome: .sent)
                    }, groups: groups), now: 100_000
            ).sentences.last
        }
        #expect(sentence(["x", "y"], matched: 2) == "A message on b/1 would reach x, y.")
        #expect(
            sentence(["x", "y", "z"], matched: 9)
                == "A message on b/1 would reach x, y, z and 6 more.")
        #expect(sentence([], matched: 0) == "No client would get a message on b/1 now.")
        #expect(
            sentence([], matched: 0, groups: ["$share/g/b/#"])
                == "Only members of shared subscriptions would get a message on b/1 now.")
    }

    @Test("refusals, denials and a client without a session")
    func refusals() {
        let events = [
            Self.event(
                .refused, "bad_user_name_or_password", count: 3, address: "192.0.2.9:1",
                userName: "eve"),
            Self.event(.denied, "publish", topic: "b/1"),
            Self.event(.filterRefused, "max_subscriptions"),
            Self.event(.disconnected, "disconnect"),
        ]
        #expect(
            Self.explained(nil, events) == [
                "It has no session, so nothing is kept for it and nothing reaches it.",
                "Its CONNECT as user eve was refused 3 times, last 5s ago from 192.0.2.9:1: wrong user name or password.",
                "It may not publish to b/1: the access rules denied it 5s ago.",
                "A subscription was refused 5s ago at the limit max_subscriptions.",
            ])
        #expect(
            Self.explained(nil, [Self.event(.expired, "session_expiry")]).last
                == "Its session expired 5s ago (limits.session_expiry).")
        #expect(
            Self.explained(
                nil,
                [
                    Self.event(.sessionEnded, "operator"),
                    Self.event(.lostMessages, "session_ended", count: 7),
                    Self.event(.disconnected, "disconnect"),
                ]
            ).dropFirst() == [
                "An operator ended its session 5s ago.",
                "7 of its messages ended with its session 5s ago: it had not acknowledged them.",
            ])
        #expect(
            Self.explained(nil, [Self.event(.sessionEnded, "clean_session")]).last
                == "It connected 5s ago with a clean session, which removed the one that had kept its subscriptions and messages; that clean one is gone too."
        )
        let gone = [
            Self.event(.deviceGone, "Unregistered"), Self.event(.disconnected, "disconnect"),
        ]
        #expect(
            Self.explained(nil, gone).dropFirst() == [
                "Its session was clean, and ended with its connection 5s ago.",
                "Its push service said 5s ago that its device is gone (Unregistered), which was forgotten until it registers again.",
            ])
        var watch = Self.event(.deviceGone, "Unregistered")
        watch.detail = "watch"
        #expect(
            Self.explained(nil, [watch]).last
                == "Its push service said 5s ago that its device \"watch\" is gone (Unregistered), which was forgotten until it registers again."
        )
        #expect(Self.explained(nil).first?.hasPrefix("The broker knows no client") == true)
    }
}
