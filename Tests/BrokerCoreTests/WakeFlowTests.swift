import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Store
import Structures
import Synchronization
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// Wakes from the message that asks for one to the answer of the sender.
@Suite("Wakes")
struct WakeFlowTests {
    /// A sender that asks for wakes and keeps them.
    private final class Sender: Sendable {
        private let state = Mutex<[Wake]>([])
        private let handOuts = Mutex<[HandOut]>([])

        var wakes: [Wake] { state.withLock { $0 } }
        /// Hand-outs that the broker has withdrawn.
        var withdrawn: [HandOut] { handOuts.withLock { $0 } }

        func ask(_ link: ShardLink, most: Int = 16, limits: [WakeDemand.Limit] = []) {
            link.shard.nextWakes(
                .apns,
                WakeDemand(most: most, limits: limits) { [self] wakes in
                    state.withLock { $0 += wakes }
                } withdraw: { [self] list in
                    handOuts.withLock { $0 += list }
                })
            link.turn()
        }

        func lose() { state.withLock { $0 = [] } }

        func answer(_ link: ShardLink, _ outcome: WakeAnswer.Outcome, reason: String = "") {
            let wakes = state.withLock { wakes in
                defer { wakes = [] }
                return wakes
            }
            link.shard.answerWakes(
                wakes.map { WakeAnswer($0.handOut, outcome, reason: reason) })
            link.turn()
            link.commitAll()
        }
    }

    private let sender = Sender()

    private func makeLink(_ change: (inout BrokerLimits) -> Void = { _ in }) -> ShardLink {
        let link = ShardLink({ limits in
            limits.wakeRules = [
                WakeRule(filter: "quiet/#", kind: nil),
                WakeRule(filter: "sync/+", kind: .background),
                WakeRule(filter: "orders/#", kind: .alert, titleKey: "T", fields: ["status"]),
            ]
            change(&limits)
        })
        sender.ask(link)
        return link
    }

    /// A connected phone that has registered its device and subscribes to everything.
    private func connectPhone(
        _ identifier: String = "phone", user: String? = nil, token: [UInt8] = [1, 2, 3],
        bundle: String = "com.example.app", in link: ShardLink
    ) throws -> Handle {
        let phone = try link.connect(identifier, user: user, cleanSession: false)
        try link.send(phone, .subscribe("#", .atLeastOnce))
        try link.send(
            phone,
            .publish(
                PacketContent.Publish(
                    .atLeastOnce(7, isDuplicate: false), topic: "$hermes/device",
                    payload: Self.registration(token: token, bundle: bundle), retain: false)))
        link.commitAll()
        _ = try link.take(phone)
        return phone
    }

    private static func registration(token: [UInt8], bundle: String = "com.example.app") -> [UInt8]
    {
        [0x0A, UInt8(token.count)] + token + [0x12, UInt8(bundle.utf8.count)] + Array(bundle.utf8)
            + [0x18, 0x02]
    }

    private func publish(
        _ topic: String, _ payload: String = "{}", expiresInMs: Int64? = nil, to link: ShardLink
    ) {
        var publication = Publication(
            topic: Array(topic.utf8), payload: Array(payload.utf8), qos: .atLeastOnce)
        publication.expiresAtMs = expiresInMs.map { link.shard.wallClockMs + $0 }
        link.shard.publish(publication) { _ in }
        link.turn()
        link.commitAll()
    }

    private func disconnect(_ phone: Handle, from link: ShardLink) throws {
        try link.send(phone, .disconnect)
        link.commitAll()
    }

    private var topics: [String] { sender.wakes.map(\.topic) }

    @Test("after DISCONNECT the first message wakes at once, once it is stored")
    func atOnce() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        link.shard.publish(
            Publication(
                topic: Array("orders/1".utf8), payload: Array(#"{"a":1}"#.utf8), qos: .atLeastOnce)
        ) { _ in }
        link.store.isImmediate = false
        link.turn()
        #expect(sender.wakes.isEmpty)
        link.store.completeAll()
        link.turn()
        let wake = try #require(sender.wakes.first)
        #expect(sender.wakes.count == 1)
        #expect(wake.clientID == "phone")
        #expect(wake.device.token == [1, 2, 3])
        #expect(wake.device.bundle == "com.example.app")
        #expect(wake.device.environment == .sandbox)
        #expect(wake.kind == .alert)
        #expect(wake.rule?.filter == "orders/#")
        #expect(wake.topic == "orders/1")
        #expect(wake.payload == Array(#"{"a":1}"#.utf8))
        #expect(wake.waiting == 1)
        #expect(wake.expiresAt == link.shard.wallClockMs / 1_000 + 86_400)
    }

    @Test("topics without a rule, of a silencing rule, and QoS 0 wake nobody")
    func silent() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("other", to: link)
        publish("quiet/1", to: link)
        link.advance(milliseconds: 60_000)
        #expect(topics.isEmpty)
        publish("sync/1", to: link)
        #expect(sender.wakes.map(\.kind) == [.background])
    }

    @Test("after a lost connection the client has the reconnect window, and its return cancels")
    func window() throws {
        let link = makeLink()
        let phone = try connectPhone(in: link)
        link.lose(phone)
        publish("orders/1", to: link)
        link.advance(milliseconds: 14_800)
        #expect(topics.isEmpty)
        let again = try link.connect("phone", cleanSession: false)
        link.turn()
        link.commitAll()
        try link.send(again, .puback(1))
        link.advance(milliseconds: 60_000)
        #expect(topics.isEmpty)
        link.lose(again)
        publish("orders/2", to: link)
        link.advance(milliseconds: 15_100)
        #expect(topics == ["orders/2"])
    }

    @Test("a connected client that does not acknowledge for 20 s is woken")
    func unanswered() throws {
        let link = makeLink()
        let phone = try connectPhone(in: link)
        publish("orders/1", to: link)
        link.advance(milliseconds: 19_900)
        #expect(topics.isEmpty)
        link.advance(milliseconds: 200)
        #expect(topics == ["orders/1"])
        sender.answer(link, .accepted)
        sender.ask(link)
        publish("orders/2", to: link)
        try link.send(phone, .puback(1), .puback(2))
        link.advance(milliseconds: 60_000)
        #expect(topics.isEmpty)
    }

    @Test("what follows within 30 s is one wake")
    func merged() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        #expect(topics == ["orders/1"])
        publish("orders/2", to: link)
        sender.answer(link, .accepted)
        sender.ask(link)
        publish("orders/3", to: link)
        link.advance(milliseconds: 29_800)
        #expect(topics.isEmpty)
        link.advance(milliseconds: 300)
        #expect(topics == ["orders/3"])
        // All three wait, whatever the first notification told.
        #expect(sender.wakes.map(\.waiting) == [3])
        sender.answer(link, .accepted)
        sender.ask(link)
        link.advance(milliseconds: 120_000)
        #expect(topics.isEmpty)
    }

    @Test("how far an accepted wake told is stored, and nothing for one that is not accepted")
    func stored() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("other", to: link)
        publish("orders/1", to: link)
        sender.answer(link, .later(milliseconds: 0))
        sender.ask(link)
        #expect(!link.store.records.contains { $0.isStored(in: .woken) })
        link.advance(milliseconds: 31_000)
        sender.answer(link, .accepted)
        guard case .fact(let last)? = link.store.records.last else {
            Issue.record("the last record is \(String(describing: link.store.records.last))")
            return
        }
        let woken = last.read { (fact) throws(DamagedFact) in try StoredDevice.Woken.read(fact) }
        #expect(woken?.name == [])
        #expect(woken?.client == Array("phone".utf8))
        let now = link.shard.wallClockMs
        #expect(
            woken?.woken == StoredDevice.Woken(session: 1, position: 2, atMs: now, told: 1))
    }

    @Test("a device that is registered over HTTP is woken for what waits, which is read")
    func read() throws {
        let link = makeLink()
        let phone = try link.connect("phone", cleanSession: false)
        try link.send(phone, .subscribe("#", .atLeastOnce))
        try disconnect(phone, from: link)
        for number in 0..<600 { publish(number % 2 == 0 ? "orders/\(number)" : "other", to: link) }
        let device = Device(
            kind: .apns, token: [5], bundle: "b", environment: .production, registeredAtMs: 0)
        link.shard.setDevice(of: "phone", device) { _ in }
        for _ in 0..<5 {
            link.turn()
            link.commitAll()
        }
        #expect(topics == ["orders/598"])
        #expect(sender.wakes.map(\.waiting) == [300])
    }

    @Test("a wake counts and names what lives", arguments: [true, false])
    func expiredAreNotTold(newestDies: Bool) throws {
        let link = makeLink()
        let phone = try connectPhone(in: link)
        link.lose(phone)
        publish("orders/dead 1", expiresInMs: 2_000, to: link)
        publish("orders/dead 2", expiresInMs: 2_000, to: link)
        publish("orders/living", #"{"a":"living"}"#, to: link)
        publish("other", to: link)
        if newestDies { publish("orders/dead 3", expiresInMs: 2_000, to: link) }
        for _ in 0..<17 { link.advance(milliseconds: 1_000) }
        link.commitAll()
        #expect(topics == ["orders/living"])
        let wake = try #require(sender.wakes.first)
        #expect(wake.waiting == 1)
        #expect(wake.payload == Array(#"{"a":"living"}"#.utf8))
    }

    @Test("a wake whose messages have all expired is not sent, and what comes later wakes")
    func allExpired() throws {
        let link = makeLink()
        let phone = try connectPhone(in: link)
        link.lose(phone)
        publish("orders/dead", expiresInMs: 2_000, to: link)
        publish("other", to: link)
        for _ in 0..<17 { link.advance(milliseconds: 1_000) }
        link.commitAll()
        #expect(topics.isEmpty)
        publish("orders/living", to: link)
        for _ in 0..<32 { link.advance(milliseconds: 1_000) }
        link.commitAll()
        #expect(topics == ["orders/living"])
        #expect(sender.wakes.map(\.waiting) == [1])
    }

    @Test("what expires between the notification and the next is not told again")
    func expiredAfterTelling() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", expiresInMs: 5_000, to: link)
        #expect(topics == ["orders/1"])
        sender.answer(link, .accepted)
        sender.ask(link)
        publish("orders/2", to: link)
        for _ in 0..<32 { link.advance(milliseconds: 1_000) }
        link.commitAll()
        #expect(topics == ["orders/2"])
        #expect(sender.wakes.map(\.waiting) == [1])
    }

    @Test("a device that is gone is forgotten, unless it registered later")
    func gone() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        let registered = link.shard.device(of: "phone")?.device.registeredAtMs ?? 0
        sender.answer(link, .gone(atMs: registered - 1), reason: "Unregistered")
        #expect(link.shard.device(of: "phone") != nil)
        sender.ask(link)
        link.advance(milliseconds: 61_000)
        #expect(topics == ["orders/1"])
        sender.answer(link, .gone(atMs: registered + 1), reason: "Unregistered")
        #expect(link.shard.device(of: "phone") == nil)
        #expect(link.store.records.contains { $0.removedKey(in: .device) == Array("phone".utf8) })
    }

    @Test("a device that the service does not know is set aside until it registers again")
    func setAside() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        sender.answer(link, .badDevice, reason: "BadDeviceToken")
        sender.ask(link)
        #expect(link.shard.device(of: "phone")?.wake == .setAside)
        #expect(link.shard.device(of: "phone")?.lastReason == "BadDeviceToken")
        publish("orders/2", to: link)
        link.advance(milliseconds: 120_000)
        #expect(topics.isEmpty)
        let device = Device(
            kind: .apns, token: [5], bundle: "b", environment: .production, registeredAtMs: 0)
        link.shard.setDevice(of: "phone", device) { _ in }
        link.turn()
        link.commitAll()
        link.turn()
        #expect(topics == ["orders/2"])
        #expect(sender.wakes.map(\.waiting) == [2])
    }

    @Test("an operator has a device that was set aside sent to again", arguments: [true, false])
    func resumed(all: Bool) throws {
        let link = makeLink()
        for number: UInt8 in 0..<3 {
            try disconnect(try connectPhone("p\(number)", token: [number], in: link), from: link)
        }
        try disconnect(
            try connectPhone("p3", token: [3], bundle: "com.example.other", in: link), from: link)
        publish("orders/1", to: link)
        sender.answer(link, .badDevice, reason: "BadDeviceToken")
        sender.ask(link)
        let (one, many) = (Answers<Bool?>(), Answers<ReleaseDevices.Answer>())
        link.shard.releaseDevice(of: "nobody", .resume, reply: one.reply)
        #expect(one.last == .some(nil))
        if all {
            for (bundle, environment) in [("b", nil), (nil, Device.Environment.production)] {
                link.shard.releaseDevices(
                    ReleaseDevices(.resume, bundle: bundle, environment: environment, from: 0),
                    reply: many.reply)
                link.turn()
                link.commitAll()
                #expect(many.last?.released == 0)
            }
            link.shard.releaseDevices(
                ReleaseDevices(
                    .resume, bundle: "com.example.app", environment: .sandbox, from: 1),
                reply: many.reply)
        } else {
            link.shard.releaseDevice(of: "p2", .resume, reply: one.reply)
        }
        link.turn()
        link.commitAll()
        link.turn()
        #expect(all ? many.last?.released == 2 && many.last?.next == nil : one.last == true)
        #expect(sender.wakes.map(\.clientID).sorted() == (all ? ["p1", "p2"] : ["p2"]))
        let stored = link.store.records.last { $0.isStored(in: .device) }
        #expect(stored != nil)
        link.shard.releaseDevice(of: "p2", .resume, reply: one.reply)
        link.turn()
        link.commitAll()
        #expect(one.last == false)
    }

    @Test("a device that goes on while an operator tries it is sent that once, then what waits")
    func resumedBesideTrial() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        sender.answer(link, .badDevice, reason: "BadDeviceToken")
        sender.ask(link)
        let trial = Answers<WakeTrial?>()
        link.shard.tryWake(of: "phone", reply: trial.reply)
        link.turn()
        #expect(sender.wakes.count == 1)
        sender.ask(link)
        link.shard.releaseDevice(of: "phone", .resume) { _ in }
        link.turn()
        link.commitAll()
        link.turn()
        #expect(sender.wakes.count == 1)
        sender.answer(link, .accepted)
        #expect(trial.last??.outcome == "accepted")
        link.advance(milliseconds: 31_000)
        link.commitAll()
        link.turn()
        #expect(topics == ["orders/1"])
    }

    @Test("an operator has a wake tried that pauses, and none that is merged")
    func retried() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        sender.answer(link, .later(milliseconds: 600_000))
        sender.ask(link)
        let answers = Answers<Bool?>()
        func retry() {
            link.shard.releaseDevice(of: "phone", .retry, reply: answers.reply)
            link.turn()
            link.commitAll()
            link.turn()
        }
        #expect(topics.isEmpty)
        retry()
        #expect(answers.last == true)
        #expect(topics == ["orders/1"])
        sender.answer(link, .accepted)
        sender.ask(link)
        publish("orders/2", to: link)
        retry()
        #expect(answers.last == false)
        #expect(topics.isEmpty)
    }

    @Test("an attempt that fails for now is repeated with the same name after a growing pause")
    func repeated() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        var names: Set<UInt64> = []
        for attempt in 0..<5 {
            let wake = try #require(sender.wakes.first, "attempt \(attempt)")
            names.insert(wake.notificationID.low)
            sender.answer(link, .later(milliseconds: 0))
            sender.ask(link)
            link.advance(milliseconds: 900 << UInt64(attempt))
            #expect(topics.isEmpty)
            link.advance(milliseconds: 200 << UInt64(attempt))
        }
        #expect(names.count == 1)
        // An answer that is lost is not waited for.
        link.advance(milliseconds: 290_000)
        sender.ask(link)
        #expect(sender.wakes.count == 1 && sender.withdrawn.isEmpty)
        link.advance(milliseconds: 15_000)
        #expect(sender.wakes.count == 2)
        #expect(sender.withdrawn == [sender.wakes[0].handOut])
        // A late answer to the first hand-out says nothing of the second.
        let late = WakeAnswer(sender.wakes[0].handOut, .refused)
        link.shard.answerWakes([late])
        #expect(link.shard.device(of: "phone")?.wake == .sent)
    }

    @Test("a wake that the sender gives back was no attempt, and comes again at once")
    func givenBack() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        for _ in 0..<8 {
            #expect(sender.wakes.map(\.attempt) == [0])
            sender.answer(link, .givenBack, reason: "Connection refused")
            sender.ask(link)
        }
        #expect(link.shard.device(of: "phone")?.lastOutcome == nil)
        sender.answer(link, .later(milliseconds: 0))
        sender.ask(link)
        link.advance(milliseconds: 900)
        #expect(topics.isEmpty)
        link.advance(milliseconds: 200)
        #expect(sender.wakes.map(\.attempt) == [1])
    }

    @Test("a client that comes back has its hand-out withdrawn, and one that leaves is told once")
    func withdrawn() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        let handOut = try #require(sender.wakes.first?.handOut)
        let again = try link.connect("phone", cleanSession: false)
        #expect(sender.withdrawn == [handOut])
        // The sender still has it, so it is in no other hands.
        try disconnect(again, from: link)
        sender.ask(link)
        #expect(sender.wakes.count == 1)
        sender.answer(link, .givenBack)
        sender.ask(link)
        #expect(sender.wakes.count == 1)
        #expect(sender.wakes.first?.handOut != handOut)
        // It was on its stream already, and is told.
        let third = try link.connect("phone", cleanSession: false)
        sender.answer(link, .accepted)
        try disconnect(third, from: link)
        sender.ask(link)
        link.advance(milliseconds: 60_000)
        #expect(topics.isEmpty)
        // A device that goes takes its hand-out with it.
        publish("orders/2", to: link)
        let last = try #require(sender.wakes.first?.handOut)
        link.shard.removeDevice(of: "phone") { _ in }
        #expect(sender.withdrawn.last == last)
    }

    @Test("a sender in trouble with one app takes the wakes of others, in turn")
    func limits() throws {
        let link = makeLink()
        func register(_ name: String, _ bundle: String) throws {
            let phone = try link.connect(name, cleanSession: false)
            try link.send(phone, .subscribe("#", .atLeastOnce))
            let device = Device(
                kind: .apns, token: Array(name.utf8), bundle: bundle, environment: .production,
                registeredAtMs: 0)
            link.shard.setDevice(of: name, device) { _ in }
            try disconnect(phone, from: link)
        }
        for number in 0..<20 { try register("a\(number)", "app.a") }
        for number in 0..<2 { try register("b\(number)", "app.b") }
        sender.ask(link, most: 0)
        publish("orders/1", to: link)
        sender.ask(
            link,
            limits: [
                WakeDemand.Limit(.production, bundle: "app.a", most: 3),
                WakeDemand.Limit(.production, bundle: "unknown", most: 0),
            ])
        #expect(sender.wakes.filter { $0.device.bundle == "app.a" }.count == 3)
        #expect(sender.wakes.filter { $0.device.bundle == "app.b" }.count == 2)
        sender.lose()
        sender.ask(link, limits: [WakeDemand.Limit(.production, bundle: nil, most: 0)])
        #expect(sender.wakes.isEmpty)
        sender.ask(link, limits: [WakeDemand.Limit(.sandbox, bundle: nil, most: 0)])
        #expect(sender.wakes.count == 16)
    }

    @Test("a count is what waits now, and falls as the phone fetches")
    func counts() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        var counts: [Int] = []
        for number in 0..<3 {
            publish("orders/\(number)", to: link)
            publish("other", to: link)
            link.advance(milliseconds: 31_000)
            counts += sender.wakes.map(\.waiting)
            sender.answer(link, .accepted)
            sender.ask(link)
        }
        #expect(counts == [1, 2, 3])
        let again = try link.connect("phone", cleanSession: false)
        link.turn()
        link.commitAll()
        try link.send(again, .puback(1), .puback(2), .puback(3), .puback(4), .puback(5), .puback(6))
        try disconnect(again, from: link)
        publish("orders/9", to: link)
        link.advance(milliseconds: 31_000)
        #expect(sender.wakes.map(\.waiting) == [1])
    }

    /// A broker that clears badges, whose rule sets them, and a phone that has been told of a message.
    private func makeBadged(_ isOn: Bool = true) throws -> ShardLink {
        let link = makeLink {
            $0.wakeClearsBadge = isOn
            $0.wakeRules = [WakeRule(filter: "orders/#", kind: .alert, badge: true)]
        }
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        sender.answer(link, .accepted)
        sender.ask(link)
        return link
    }

    /// The phone comes back and acknowledges a message.
    private func fetch(_ identifier: PacketIdentifier, from link: ShardLink) throws -> Handle {
        let phone = try link.connect("phone", cleanSession: false)
        link.turn()
        link.commitAll()
        try link.send(phone, .puback(identifier))
        link.turn()
        link.commitAll()
        return phone
    }

    @Test("the badge is cleared once the phone has fetched everything, and once only")
    func badgeCleared() throws {
        let link = try makeBadged()
        publish("other", to: link)
        let phone = try fetch(1, from: link)
        #expect(sender.wakes.isEmpty, "a message waits still")
        try link.send(phone, .puback(2))
        link.turn()
        #expect(sender.wakes.map(\.kind) == [.badge])
        #expect(sender.wakes.map(\.waiting) == [0])
        #expect(link.shard.device(of: "phone")?.lastOutcome == "accepted")
        sender.answer(link, .later(milliseconds: 0), reason: "ServiceUnavailable")
        sender.ask(link)
        #expect(link.shard.device(of: "phone")?.lastReason == nil)
        link.advance(milliseconds: 2_000)
        #expect(sender.wakes.map(\.kind) == [.badge], "it is tried again")
        sender.answer(link, .accepted)
        sender.ask(link)
        publish("other", to: link)
        try link.send(phone, .puback(3))
        link.advance(milliseconds: 120_000)
        #expect(sender.wakes.isEmpty)
        #expect(link.shard.device(of: "phone")?.wake == DeviceDetail.WakeState.none)
    }

    @Test("each clearing of a badge has a name of its own, and its attempts have the same")
    func badgeNames() throws {
        let link = try makeBadged()
        var names: [UInt64] = []
        for identifier: UInt16 in 1...3 {
            // No notification is taken meanwhile: one is refused, the next never answered.
            let phone = try fetch(try #require(PacketIdentifier(identifier)), from: link)
            names += sender.wakes.map(\.notificationID.high)
            sender.answer(link, .later(milliseconds: 0))
            sender.ask(link)
            link.advance(milliseconds: 2_000)
            #expect(sender.wakes.map(\.kind) == [.badge])
            #expect(sender.wakes.map(\.notificationID.high) == names.suffix(1))
            sender.answer(link, .refused)
            sender.ask(link)
            try disconnect(phone, from: link)
            publish("orders/1", to: link)
            link.advance(milliseconds: 60_000)
            #expect(sender.wakes.map(\.kind) == [.alert])
            sender.answer(link, .refused)
            sender.ask(link)
        }
        #expect(Set(names).count == 3)
    }

    @Test(
        "a badge stays without the setting, and the setting's reload clears it with the next fetch")
    func badgeSetting() throws {
        let link = try makeBadged(false)
        let phone = try fetch(1, from: link)
        link.advance(milliseconds: 120_000)
        #expect(sender.wakes.isEmpty)
        var limits = link.shard.context.limits
        limits.wakeClearsBadge = true
        link.shard.context.limits = limits
        publish("other", to: link)
        try link.send(phone, .puback(2))
        link.turn()
        #expect(sender.wakes.map(\.kind) == [.badge])
    }

    @Test("a new message takes the place of a badge that is about to be cleared")
    func badgeReplaced() throws {
        let link = try makeBadged()
        // The sender takes nothing for now.
        sender.ask(link, most: 0)
        try disconnect(try fetch(1, from: link), from: link)
        #expect(link.shard.device(of: "phone")?.wake == .ready)
        publish("orders/2", to: link)
        sender.ask(link)
        #expect(sender.wakes.isEmpty, "it waits until the notification before it is older")
        link.advance(milliseconds: 31_000)
        #expect(sender.wakes.map(\.kind) == [.alert])
        #expect(sender.wakes.map(\.attempt) == [0])
        #expect(sender.wakes.map(\.waiting) == [1])
        sender.answer(link, .accepted)
        sender.ask(link)
        #expect(sender.wakes.isEmpty)
        try disconnect(try fetch(2, from: link), from: link)
        #expect(sender.wakes.map(\.kind) == [.badge])
        // It comes while the clearing is under way, and is told after it.
        publish("orders/3", to: link)
        sender.answer(link, .accepted)
        sender.ask(link)
        link.advance(milliseconds: 31_000)
        #expect(sender.wakes.map(\.topic) == ["orders/3"])
        #expect(sender.wakes.map(\.attempt) == [0])
    }

    @Test(
        "a badge is cleared when the client may no longer read what it counts",
        arguments: [true, false])
    func badgeRevoked(isInFlight: Bool) throws {
        let link = makeLink {
            $0.wakeClearsBadge = true
            $0.wakeRules = [WakeRule(filter: "orders/#", kind: .alert, badge: true)]
        }
        let phone = try connectPhone(user: "anna", in: link)
        if isInFlight { publish("orders/1", to: link) }
        try disconnect(phone, from: link)
        if !isInFlight { publish("orders/1", to: link) }
        link.advance(milliseconds: 60_000)
        #expect(sender.wakes.map(\.kind) == [.alert])
        sender.answer(link, .accepted)
        sender.ask(link)
        try link.use("deny user anna subscribe orders/#\nallow user anna subscribe #")
        _ = try link.connect("phone", user: "anna", cleanSession: false)
        link.turn()
        link.commitAll()
        link.turn()
        #expect(sender.wakes.map(\.kind) == [.badge])
    }

    @Test("a badge is known by the notification that was sent, whatever names the next")
    func badgeOfSent() throws {
        let link = makeLink {
            $0.wakeClearsBadge = true
            $0.wakeRules = [
                WakeRule(filter: "orders/#", kind: .alert, badge: true),
                WakeRule(filter: "news/#", kind: .alert),
            ]
        }
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        publish("news/1", to: link)
        sender.answer(link, .accepted)
        sender.ask(link)
        let phone = try fetch(1, from: link)
        try link.send(phone, .puback(2))
        link.turn()
        #expect(sender.wakes.map(\.kind) == [.badge])
    }

    @Test("a badge is cleared when the session ends before the push service has answered")
    func badgeOfEndedSession() throws {
        let link = makeLink {
            $0.wakeClearsBadge = true
            $0.wakeRules = [WakeRule(filter: "orders/#", kind: .alert, badge: true)]
        }
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        #expect(sender.wakes.map(\.kind) == [.alert])
        sender.ask(link)
        _ = try link.connect("phone", cleanSession: true)
        link.turn()
        link.commitAll()
        #expect(sender.wakes.map(\.kind) == [.alert, .badge])
    }

    @Test("a member of a group that gets no more messages is followed for its badge still")
    func badgeOfMember() throws {
        let link = makeLink {
            $0.wakeClearsBadge = true
            $0.wakeRules = [WakeRule(filter: "orders/#", kind: .alert, badge: true)]
            $0.queueMessages = 1
            $0.queuePolicy = .dropNewest
        }
        let phone = try connectPhone(in: link)
        try link.send(phone, .subscribe("$share/g/t", .atLeastOnce))
        link.commitAll()
        try disconnect(phone, from: link)
        publish("orders/1", expiresInMs: 60_000, to: link)
        sender.answer(link, .accepted)
        sender.ask(link)
        let other = try link.connect("other", cleanSession: false)
        try link.send(other, .subscribe("$share/g/t", .atLeastOnce))
        link.commitAll()
        var publication = Publication(
            topic: Array("t".utf8), payload: Array("x".utf8), qos: .atLeastOnce)
        publication.receiptID = Array("r".utf8)
        link.shard.publish(publication) { _ in }
        link.turn()
        link.commitAll()
        link.lose(other)
        link.lose(try link.connect("other"))
        for _ in 1...20 {
            link.turn()
            link.commitAll()
        }
        let receipt = link.shard.receipt(of: OwnedName(Array("r".utf8), of: .unknown))
        #expect(
            receipt?.receivers?.filter { $0.state == .dropped }.map(\.clientID) == [
                "phone", "phone",
            ])
        #expect(sender.wakes.isEmpty)
        link.advance(milliseconds: 62_000)
        #expect(sender.wakes.map(\.kind) == [.badge])
    }

    @Test("a badge is cleared when what it counts expires, or with another session")
    func badgeWithoutFetch() throws {
        let link = makeLink {
            $0.wakeClearsBadge = true
            $0.wakeRules = [WakeRule(filter: "orders/#", kind: .alert, badge: true)]
        }
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", expiresInMs: 60_000, to: link)
        sender.answer(link, .accepted)
        sender.ask(link)
        link.advance(milliseconds: 62_000)
        #expect(sender.wakes.map(\.kind) == [.badge])
        sender.answer(link, .accepted)
        sender.ask(link)
        publish("orders/2", to: link)
        sender.answer(link, .accepted)
        sender.ask(link)
        let again = try link.connect("phone", cleanSession: true)
        link.turn()
        link.commitAll()
        #expect(sender.wakes.map(\.kind) == [.badge])
        link.lose(again)
    }

    @Test(
        "a device that was gone before it registered is asked for a few times, then set aside")
    func staleGone() throws {
        let link = makeLink()
        try disconnect(try connectPhone(in: link), from: link)
        publish("orders/1", to: link)
        for _ in 0..<5 {
            #expect(sender.wakes.count == 1)
            sender.answer(link, .gone(atMs: 1), reason: "Unregistered")
            sender.ask(link)
            link.advance(milliseconds: 61_000)
        }
        #expect(topics.isEmpty)
        #expect(link.shard.device(of: "phone")?.wake == .setAside)
        let ends = link.shard.figures.wakes
        #expect(ends.contains(BrokerFigures.Count("gone", 0)))
    }

    @Test("a token that another client registers leaves the first")
    func otherPerson() throws {
        let link = makeLink()
        try disconnect(try connectPhone("first", token: [7], in: link), from: link)
        try disconnect(try connectPhone("second", token: [7], in: link), from: link)
        #expect(link.shard.device(of: "first") == nil)
        #expect(link.shard.device(of: "second") != nil)
        publish("orders/1", to: link)
        #expect(sender.wakes.map(\.clientID) == ["second"])
        #expect(link.store.records.contains { $0.removedKey(in: .device) == Array("first".utf8) })
    }

    @Test(
        "an empty registration forgets the device; one that cannot be read is acknowledged and told"
    )
    func forgotten() throws {
        let link = makeLink()
        let phone = try connectPhone(in: link)
        try link.send(phone, .publish("$hermes/device", "", qos: .atLeastOnce, 9))
        link.commitAll()
        #expect(try link.take(phone) == [.puback(9)])
        #expect(link.shard.device(of: "phone") == nil)
        try link.send(phone, .publish("$hermes/device", "nonsense", qos: .atLeastOnce, 10))
        #expect(try link.take(phone) == [.puback(10)])
        let refused = link.notices.contains { notice in
            if case .deviceRefused(_, .malformed(8)) = notice { true } else { false }
        }
        #expect(refused)
    }

    @Test("an expired message and an emptied queue wake nobody")
    func ended() throws {
        let link = makeLink()
        let phone = try connectPhone(in: link)
        link.lose(phone)
        publish("orders/1", expiresInMs: 10_000, to: link)
        link.advance(milliseconds: 16_000)
        #expect(topics.isEmpty)
        publish("orders/2", to: link)
        link.advance(milliseconds: 100)
        #expect(topics == ["orders/2"])
        sender.answer(link, .accepted)
        sender.ask(link)
        publish("orders/3", to: link)
        link.shard.dropQueue(of: "phone", below: nil) { _ in }
        link.turn()
        link.commitAll()
        link.advance(milliseconds: 60_000)
        #expect(topics.isEmpty)
    }

    @Test("a trial is sent whatever waits, and tells its end")
    func trial() throws {
        let link = makeLink()
        let answers = Answers<WakeTrial?>()
        link.shard.tryWake(of: "phone", reply: answers.reply)
        #expect(answers.last == .some(nil))
        _ = try connectPhone(in: link)
        link.shard.tryWake(of: "phone", reply: answers.reply)
        link.turn()
        #expect(sender.wakes.count == 1)
        sender.answer(link, .refused, reason: "BadTopic")
        #expect(answers.last == WakeTrial(outcome: "refused", reason: "BadTopic"))
        link.shard.tryWake(of: "phone", reply: answers.reply)
        #expect(answers.last??.outcome == "later")
        #expect(link.shard.device(of: "phone")?.wake == DeviceDetail.WakeState.none)
    }

    @Test("a trial leaves what is owed, and adds nothing to what is not")
    func trialBesideMessages() throws {
        let link = makeLink()
        let phone = try connectPhone(in: link)
        publish("other", to: link)
        // Sent and not acknowledged, by a topic that wakes nobody.
        link.lose(phone)
        link.advance(milliseconds: 16_000)
        link.shard.tryWake(of: "phone") { _ in }
        link.turn()
        sender.answer(link, .accepted)
        sender.ask(link)
        link.advance(milliseconds: 120_000)
        #expect(topics.isEmpty)
        publish("orders/1", to: link)
        sender.answer(link, .later(milliseconds: 60_000))
        sender.ask(link)
        link.shard.tryWake(of: "phone") { _ in }
        link.turn()
        #expect(sender.wakes.count == 1)
        sender.answer(link, .accepted)
        sender.ask(link)
        link.advance(milliseconds: 31_000)
        #expect(topics == ["orders/1"])
        #expect(sender.wakes.map(\.waiting) == [1])
    }

    @Test(
        "a trial that is put off, refused or lost leaves what is owed, and its merge time",
        arguments: [WakeAnswer.Outcome.later(milliseconds: 60_000), .refused, nil]
            as [WakeAnswer.Outcome?])
    func trialWithoutSuccess(_ outcome: WakeAnswer.Outcome?) throws {
        let link = makeLink()
        let phone = try connectPhone(in: link)
        link.lose(phone)
        link.advance(milliseconds: 16_000)
        publish("orders/1", to: link)
        sender.answer(link, .accepted)
        sender.ask(link)
        publish("orders/2", to: link)
        publish("orders/3", to: link)
        let answers = Answers<WakeTrial?>()
        link.shard.tryWake(of: "phone", reply: answers.reply)
        link.turn()
        #expect(sender.wakes.count == 1)
        if let outcome {
            sender.answer(link, outcome, reason: "InvalidProviderToken")
        } else {
            sender.lose()
            link.advance(milliseconds: 310_000)
        }
        #expect(answers.last??.outcome == (outcome ?? .later(milliseconds: 0)).result.name)
        #expect(link.shard.device(of: "phone")?.wake != DeviceDetail.WakeState.none)
        #expect(link.shard.device(of: "phone")?.waiting == 2)
        sender.ask(link)
        #expect(outcome == nil || topics.isEmpty)
        link.advance(milliseconds: 61_000)
        #expect(sender.wakes.map(\.waiting) == [3])
        sender.answer(link, .accepted)
        #expect(link.shard.device(of: "phone")?.wake == DeviceDetail.WakeState.none)
    }

    // MARK: Several devices of a client

    private func register(
        _ name: String, token: [UInt8], user: String? = nil, in link: ShardLink
    ) -> Bool? {
        let answers = Answers<SetDevice.Answer>()
        let device = Device(
            name: name, kind: .apns, token: token, bundle: "b", environment: .production,
            userName: user, registeredAtMs: 0)
        link.shard.setDevice(of: "phone", device, reply: answers.reply)
        link.turn()
        link.commitAll()
        link.turn()
        return answers.last.map { $0 == .stored }
    }

    @Test("a token that is for calls is woken by rules for calls alone, also after a reading")
    func forms() throws {
        let link = makeLink {
            $0.wakeRules = [
                WakeRule(filter: "calls/#", kind: .voip),
                WakeRule(filter: "orders/#", kind: .alert),
            ]
        }
        let phone = try connectPhone(in: link)
        for (name, bundle, token) in [
            ("calls", "com.example.app.voip", UInt8(4)), ("talk", "com.example.app.voip-ptt", 5),
            ("activity", "com.example.app.push-type.liveactivity", 6), ("dot", ".voip", 7),
        ] {
            let device = Device(
                name: name, kind: .apns, token: [token], bundle: bundle, environment: .production,
                registeredAtMs: 0)
            link.shard.setDevice(of: "phone", device) { _ in }
            link.turn()
            link.commitAll()
        }
        try disconnect(phone, from: link)
        publish("calls/1", to: link)
        #expect(sender.wakes.map(\.device.name) == ["calls"])
        #expect(sender.wakes.map(\.kind) == [.voip])
        sender.answer(link, .accepted)
        sender.ask(link)
        publish("orders/1", to: link)
        // A name that is nothing but the suffix is an app's.
        #expect(sender.wakes.map(\.device.name).sorted() == ["", "dot"])
        sender.answer(link, .accepted)
        sender.ask(link)
        // One that registers later has its queue read.
        let late = Device(
            name: "late", kind: .apns, token: [8], bundle: "com.example.other.voip",
            environment: .production, registeredAtMs: 0)
        link.shard.setDevice(of: "phone", late) { _ in }
        for _ in 0..<5 {
            link.turn()
            link.commitAll()
        }
        #expect(sender.wakes.map(\.device.name) == ["late"])
        #expect(sender.wakes.map(\.waiting) == [1])
        #expect(topics == ["calls/1"])
    }

    @Test("each device of a client is woken, and has an answer of its own")
    func severalDevices() throws {
        let link = makeLink()
        let phone = try connectPhone(in: link)
        #expect(register("watch", token: [4], in: link) == true)
        #expect(register("car", token: [5], user: "somebody", in: link) == true)
        try disconnect(phone, from: link)
        publish("orders/1", to: link)
        #expect(sender.wakes.map(\.device.name).sorted() == ["", "watch"])
        #expect(Set(sender.wakes.map(\.notificationID.low)).count == 2)
        #expect(link.shard.devices(of: "phone").map(\.device.name) == ["", "car", "watch"])
        let wakes = sender.wakes
        sender.lose()
        let watch = try #require(wakes.first { $0.device.name == "watch" })
        let usual = try #require(wakes.first { $0.device.name.isEmpty })
        link.shard.answerWakes([
            WakeAnswer(watch.handOut, .badDevice), WakeAnswer(usual.handOut, .accepted),
        ])
        link.turn()
        link.commitAll()
        sender.ask(link)
        #expect(link.shard.device(of: "phone", named: "watch")?.wake == .setAside)
        #expect(link.shard.device(of: "phone")?.wake == DeviceDetail.WakeState.none)
        link.advance(milliseconds: 31_000)
        publish("orders/2", to: link)
        #expect(sender.wakes.map(\.device.name) == [""])
        // A client that comes back is told by none of its devices.
        #expect(register("watch", token: [4], in: link) == true)
        // The queue is read for it.
        sender.ask(link)
        link.commitAll()
        link.turn()
        #expect(sender.wakes.map(\.device.name).sorted() == ["", "watch"])
        let before = sender.withdrawn.count
        _ = try link.connect("phone", cleanSession: false)
        link.turn()
        #expect(sender.withdrawn.dropFirst(before).map(\.device).count == 2)
    }

    @Test("a name registers anew, a token moves, and a goodbye is for one device or for all")
    func namedDevices() throws {
        let link = makeLink()
        let phone = try connectPhone(in: link)
        func send(_ payload: [UInt8]) throws {
            try link.send(
                phone,
                .publish(
                    PacketContent.Publish(
                        .atLeastOnce(9, isDuplicate: false), topic: "$hermes/device",
                        payload: payload, retain: false)))
            link.commitAll()
            _ = try link.take(phone)
        }
        var names: [String] { link.shard.devices(of: "phone").map(\.device.name) }
        let watch: [UInt8] = [0x2A, 5] + Array("watch".utf8)
        try send(Self.registration(token: [4]) + watch)
        try send(Self.registration(token: [6]) + watch)
        #expect(names == ["", "watch"])
        #expect(link.shard.device(of: "phone", named: "watch")?.device.token == [6])
        // The same app under another name.
        try send(Self.registration(token: [6]) + [0x2A, 1, 0x61])
        #expect(names == ["", "a"])
        try send([0x2A, 1, 0x62])
        try send([0x2A, 2, 0x2F, 0x2F])
        #expect(names == ["", "a"])
        try send([0x2A, 1, 0x61])
        #expect(names == [""])
        for number: UInt8 in 0..<9 { _ = register("n\(number)", token: [50 + number], in: link) }
        #expect(names.count == Device.mostOfClient)
        #expect(register("n0", token: [70], in: link) == true, "it takes its own place")
        #expect(register("n9", token: [71], in: link) == false)
        try send([])
        #expect(names.isEmpty)
        #expect(register("n9", token: [71], in: link) == true, "there is room again")
    }

    @Test("the list of a client's devices holds whichever goes", arguments: 0..<4)
    func siblings(first: Int) throws {
        let link = makeLink()
        var left = ["a", "b", "c", "d"]
        for (number, name) in left.enumerated() {
            #expect(register(name, token: [UInt8(number)], in: link) == true)
        }
        for step in 0..<4 {
            let name = left.remove(at: (first + step) % left.count)
            link.shard.removeDevice(of: "phone", named: name) { _ in }
            link.turn()
            link.commitAll()
            #expect(link.shard.devices(of: "phone").map(\.device.name) == left)
        }
        let bytes = link.shard.features.devices.bytes
        #expect(bytes == 0)
    }

    @Test("no room for a device: the client keeps the one it has")
    func noRoom() throws {
        let link = makeLink { $0.deviceBytes = 380 }
        _ = try connectPhone("one", token: [1], in: link)
        _ = try connectPhone("two", token: [2], in: link)
        #expect(link.shard.device(of: "one") != nil)
        #expect(link.shard.device(of: "two") == nil)
        let refused = link.notices.contains { notice in
            if case .deviceRefused(_, .noRoom) = notice { true } else { false }
        }
        #expect(refused)
    }

    @Test(
        "a user's device is changed neither by another user under its identifier, nor is all room one user's"
    )
    func users() throws {
        let link = makeLink { $0.deviceBytes = 20_000 }
        func register(_ client: String, _ user: String?, _ token: [UInt8]) throws {
            let phone = try link.connect(client) { $0.userName = user.map { Array($0.utf8) } }
            try link.send(
                phone,
                .publish(
                    PacketContent.Publish(
                        .atLeastOnce(7, isDuplicate: false), topic: "$hermes/device",
                        payload: token.isEmpty ? [] : Self.registration(token: token),
                        retain: false)),
                .disconnect)
            link.commitAll()
        }
        func token(_ client: String) -> [UInt8]? { link.shard.device(of: client)?.device.token }
        try register("phone", "ann", [1])
        try register("phone", "bob", [])
        #expect(token("phone") == [1])
        try register("phone", "bob", [2])
        #expect(token("phone") == [1])
        let refusals = link.notices.count { notice in
            if case .deviceRefused(_, .ofAnotherUser) = notice { true } else { false }
        }
        #expect(refusals == 2)
        // Bob has logged in on Ann's phone.
        try register("phone", "bob", [1])
        #expect(link.shard.device(of: "phone")?.device.userName == "bob")
        try register("phone", "bob", [])
        #expect(token("phone") == nil)

        for number in 0..<60 { try register("bob-\(number)", "bob", [3, UInt8(number)]) }
        #expect(token("bob-0") != nil && token("bob-59") == nil)
        try register("ann", "ann", [4])
        #expect(token("ann") == [4])
    }
}
