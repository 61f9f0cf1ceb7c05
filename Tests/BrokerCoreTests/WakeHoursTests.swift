import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Store
import Structures
import Synchronization
import SystemFiles
import Testing
import TimeZones

@testable import BrokerCore
@testable import BrokerFeatures

/// Alerts that quiet hours or a cap hold back. The clock of these tests begins at 22:13:20 UTC, on
/// 14 November 2023.
@Suite("Quiet hours and caps of wakes")
struct WakeHoursTests {
    private final class Sender: Sendable {
        private let state = Mutex<[Wake]>([])

        var wakes: [Wake] { state.withLock { $0 } }
        var topics: [String] { wakes.map(\.topic) }

        func ask(_ link: ShardLink) {
            link.shard.nextWakes(
                .apns, WakeDemand(most: 16) { [self] wakes in state.withLock { $0 += wakes } })
            link.turn()
        }

        func answer(_ link: ShardLink, _ outcome: WakeAnswer.Outcome = .accepted) {
            let wakes = state.withLock { wakes in
                defer { wakes = [] }
                return wakes
            }
            link.shard.answerWakes(wakes.map { WakeAnswer($0.handOut, outcome) })
            link.turn()
            link.commitAll()
            ask(link)
        }
    }

    private let sender = Sender()
    private static let minute: UInt64 = 60_000
    private static let hour: UInt64 = 3_600_000

    private func makeLink(
        quiet: String? = "22:00-07:00", cap: WakeCap? = nil, zone: String = "UTC",
        _ rules: WakeRule...
    ) throws -> ShardLink {
        let hours = quiet.flatMap { QuietHours($0) }
        var zones = ZoneTable()
        for name in ["Europe/Berlin", "Asia/Kolkata"] {
            let file = try WholeFile("/usr/share/zoneinfo/\(name)", maximumByteCount: 65_536)
            zones.set(Array(name.utf8), try #require(ZoneRules(file.bytes)))
        }
        let link = ShardLink({ limits in
            limits.wakeQuietHours = hours
            limits.wakeCap = cap
            limits.wakeTimeZone = zone
            limits.wakeZones = zones
            limits.wakeRules = rules.isEmpty ? [Self.rule("orders/#")] : rules
        })
        sender.ask(link)
        return link
    }

    private static func rule(
        _ filter: String, _ quiet: WakeRule.Quiet = .usual, isUncapped: Bool = false
    ) -> WakeRule {
        var rule = WakeRule(filter: filter, kind: .alert)
        rule.quiet = quiet
        rule.isUncapped = isUncapped
        return rule
    }

    /// A phone that has registered its device and is away.
    private func addPhone(
        _ identifier: String = "phone", zone: String = "", bundle: String = "b",
        to link: ShardLink
    ) throws {
        let phone = try link.connect(identifier, cleanSession: false)
        try link.send(phone, .subscribe("#", .atLeastOnce))
        let token = Array(identifier.utf8)
        let registration =
            [0x0A, UInt8(token.count)] + token + [0x12, UInt8(bundle.utf8.count)]
            + Array(bundle.utf8)
            + (zone.isEmpty ? [] : [0x32, UInt8(zone.utf8.count)] + Array(zone.utf8))
        try link.send(
            phone,
            .publish(
                PacketContent.Publish(
                    .atLeastOnce(7, isDuplicate: false), topic: "$hermes/device",
                    payload: registration, retain: false)))
        link.commitAll()
        try link.send(phone, .disconnect)
        link.commitAll()
    }

    private func publish(_ topic: String, expiresInMs: Int64? = nil, to link: ShardLink) {
        var publication = Publication(
            topic: Array(topic.utf8), payload: Array("{}".utf8), qos: .atLeastOnce)
        publication.expiresAtMs = expiresInMs.map { link.shard.wallClockMs + $0 }
        link.shard.publish(publication) { _ in }
        link.turn()
        link.commitAll()
    }

    /// Lets time pass in steps of a minute, as the broker's timers would.
    private func pass(_ minutes: UInt64, in link: ShardLink) {
        for _ in 0..<minutes { link.advance(milliseconds: Self.minute) }
        link.commitAll()
    }

    private func state(_ link: ShardLink) -> DeviceDetail.WakeState? {
        link.shard.device(of: "phone")?.wake
    }

    /// The places of the phone's device and session.
    private func places(_ link: ShardLink) throws -> (device: UInt32, session: UInt32) {
        let found = link.shard.features.devices.find(Array("phone".utf8), named: [])
        let device = try #require(found)
        let session = link.shard.session(for: device)
        return (device, try #require(session))
    }

    @Test("what comes in quiet hours is held, and told by itself, once, when they end")
    func held() throws {
        let link = try makeLink()
        try addPhone(to: link)
        publish("orders/1", to: link)
        publish("orders/2", to: link)
        #expect(sender.wakes.isEmpty)
        #expect(state(link) == .held)
        #expect(link.shard.device(of: "phone")?.heldUntilMs == 1_700_031_600_000)
        pass(8 * 60 + 46, in: link)
        #expect(sender.wakes.isEmpty, "it is 06:59:20")
        pass(1, in: link)
        #expect(sender.topics == ["orders/2"])
        #expect(sender.wakes.map(\.waiting) == [2])
        sender.answer(link)
        #expect(state(link) == DeviceDetail.WakeState.none)
        publish("orders/3", to: link)
        link.advance(milliseconds: 31_000)
        #expect(sender.topics == ["orders/3"], "by day nothing is held")
    }

    @Test("the clock is that of the zone that the phone names, or of the configuration")
    func zones() throws {
        // 22:13 in London is 03:43 in Kolkata and 23:13 in Berlin.
        let link = try makeLink(quiet: "23:00-03:30", zone: "Europe/Berlin")
        try addPhone("berlin", to: link)
        try addPhone("kolkata", zone: "Asia/Kolkata", to: link)
        try addPhone("nowhere", zone: "Moon/Tycho", to: link)
        publish("orders/1", to: link)
        #expect(sender.wakes.map(\.clientID) == ["kolkata"])
        #expect(link.shard.device(of: "kolkata")?.device.timeZone == "Asia/Kolkata")
        #expect(link.shard.device(of: "nowhere")?.device.timeZone == "")
        #expect(
            link.notices.contains {
                if case .deviceRefused(_, .unknownZone(Array("Moon/Tycho".utf8))) = $0 {
                    true
                } else {
                    false
                }
            })
        sender.answer(link)
        pass(4 * 60 + 16, in: link)
        #expect(sender.wakes.isEmpty)
        pass(1, in: link)
        #expect(Set(sender.wakes.map(\.clientID)) == ["berlin", "nowhere"])
    }

    @Test("a rule has hours of its own, or none")
    func rules() throws {
        let link = try makeLink(
            quiet: "22:00-07:00", Self.rule("alarm/#", .off),
            Self.rule("lunch/#", .hours(QuietHours("22:00-22:30"), drops: false)),
            Self.rule("orders/#"))
        for name in ["a", "b", "c"] { try addPhone(name, to: link) }
        publish("alarm/1", to: link)
        #expect(sender.topics == ["alarm/1", "alarm/1", "alarm/1"])
        sender.answer(link)
        pass(1, in: link)
        publish("lunch/1", to: link)
        pass(15, in: link)
        #expect(sender.wakes.isEmpty)
        pass(1, in: link)
        #expect(sender.topics == ["lunch/1", "lunch/1", "lunch/1"])
    }

    @Test("what may be told now takes along what is held, and is not held with what comes after it")
    func mixed() throws {
        let link = try makeLink(
            quiet: "22:00-07:00", Self.rule("alarm/#", .off), Self.rule("orders/#"))
        try addPhone(to: link)
        publish("orders/1", to: link)
        #expect(sender.wakes.isEmpty)
        publish("alarm/1", to: link)
        #expect(sender.topics == ["alarm/1"])
        #expect(sender.wakes.map(\.waiting) == [2])
        // One that comes while the first is under way is held.
        publish("orders/2", to: link)
        sender.answer(link)
        pass(2, in: link)
        #expect(sender.wakes.isEmpty)
        #expect(state(link) == .held)
        // One that waits for the merging interval only keeps its name.
        publish("alarm/2", to: link)
        #expect(sender.topics == ["alarm/2"])
        sender.answer(link)
        publish("alarm/3", to: link)
        publish("orders/3", to: link)
        #expect(sender.wakes.isEmpty)
        link.advance(milliseconds: 31_000)
        #expect(sender.topics == ["alarm/3"])
    }

    @Test(
        "what its sender gives back is not held because of what came meanwhile",
        arguments: [true, false])
    func givenBack(isAttempt: Bool) throws {
        let link = try makeLink(
            quiet: "22:00-07:00", Self.rule("alarm/#", .off), Self.rule("orders/#"))
        try addPhone(to: link)
        publish("alarm/1", to: link)
        #expect(sender.topics == ["alarm/1"])
        publish("orders/1", to: link)
        sender.answer(link, isAttempt ? .later(milliseconds: 1_000) : .givenBack)
        for _ in 0..<4 {
            link.advance(milliseconds: 1_000)
            link.commitAll()
        }
        #expect(sender.topics == ["alarm/1"])
    }

    @Test("an alert that is held is not told by what nobody sees, whichever comes first")
    func silent() throws {
        let link = try makeLink(
            quiet: "22:00-07:00", WakeRule(filter: "sync/#", kind: .background),
            Self.rule("orders/#"))
        try addPhone(to: link)
        publish("orders/1", to: link)
        publish("sync/1", to: link)
        #expect(sender.wakes.isEmpty)
        #expect(state(link) == .held)
        pass(8 * 60 + 47, in: link)
        #expect(sender.topics == ["orders/1"])
        #expect(sender.wakes.map(\.kind) == [.alert])
        #expect(sender.wakes.map(\.waiting) == [2])
        sender.answer(link)
        pass(15 * 60, in: link)
        publish("sync/2", to: link)
        #expect(sender.topics == ["sync/2"])
        sender.answer(link)
        // Both come in the merging interval.
        publish("sync/3", to: link)
        publish("orders/2", to: link)
        pass(1, in: link)
        #expect(sender.wakes.isEmpty)
        #expect(state(link) == .held)
    }

    @Test("what was not taken, or waited for a test, is not held because of what comes after it")
    func untold() throws {
        let link = try makeLink(
            quiet: "22:00-07:00", Self.rule("alarm/#", .off), Self.rule("orders/#"))
        try addPhone(to: link)
        publish("alarm/1", to: link)
        sender.answer(link, .later(milliseconds: 1_000))
        publish("orders/1", to: link)
        pass(1, in: link)
        #expect(sender.topics == ["alarm/1"])
        // Its sender never answers.
        publish("orders/2", to: link)
        pass(6, in: link)
        sender.ask(link)
        link.commitAll()
        #expect(sender.topics == ["alarm/1", "alarm/1"])
        sender.answer(link)
        #expect(state(link) == DeviceDetail.WakeState.none)
        for isMeanwhile in [true, false] {
            publish("alarm/2", to: link)
            link.shard.tryWake(of: "phone") { _ in }
            link.turn()
            #expect(sender.wakes.count == 1)
            if isMeanwhile { publish("orders/3", to: link) }
            sender.answer(link)
            if !isMeanwhile { publish("orders/3", to: link) }
            pass(1, in: link)
            #expect(sender.topics == ["alarm/2"], "\(isMeanwhile)")
            sender.answer(link)
        }
    }

    @Test("what came by day is told, though its queue is read again in hours that drop")
    func readAgain() throws {
        let link = try makeLink(quiet: "23:00-07:00", Self.rule("news/#", .hours(nil, drops: true)))
        try addPhone(to: link)
        publish("news/1", to: link)
        sender.answer(link, .later(milliseconds: 1_000))
        link.shard.context.limits.wakeQuietHours = QuietHours("22:00-07:00")
        link.shard.adoptWakeRules()
        let (device, session) = try places(link)
        link.shard.examineQueue(of: session, device)
        pass(1, in: link)
        #expect(state(link) == .held)
        pass(8 * 60 + 47, in: link)
        #expect(sender.topics == ["news/1"])
    }

    @Test("a rule may drop what comes in quiet hours; by day it is told")
    func dropped() throws {
        let link = try makeLink(
            quiet: "22:00-07:00", Self.rule("news/#", .hours(nil, drops: true)),
            Self.rule("orders/#"))
        try addPhone(to: link)
        publish("news/1", to: link)
        #expect(state(link) == DeviceDetail.WakeState.none)
        guard case .fact(let last)? = link.store.records.last else {
            Issue.record("nothing is stored of what was dropped")
            return
        }
        let woken = last.read { (fact) throws(DamagedFact) in try StoredDevice.Woken.read(fact) }
        #expect(woken?.woken.position == 1, "a restart asks for it no more")
        publish("orders/1", to: link)
        publish("news/2", to: link)
        pass(8 * 60 + 47, in: link)
        #expect(sender.topics == ["orders/1"])
        sender.answer(link)
        #expect(state(link) == DeviceDetail.WakeState.none)
        guard case .fact(let last)? = link.store.records.last else { return }
        let after = last.read { (fact) throws(DamagedFact) in try StoredDevice.Woken.read(fact) }
        #expect(after?.woken.position == 3)
        pass(1, in: link)
        publish("news/3", to: link)
        #expect(sender.topics == ["news/3"])
        #expect(link.shard.features.wakeCounters.dropped == 2)
        // Each costs the turn as much work as one that asks.
        let (device, session) = try places(link)
        let before = link.shard.context.budget.unitsLeft
        link.shard.noteDropped(device, session, 3)
        let spent = before - link.shard.context.budget.unitsLeft
        #expect(spent == WorkBudget.wake)
    }

    @Test(
        "no more alerts than the cap go to a device; what is beyond is told when the time is over")
    func cap() throws {
        let link = try makeLink(
            quiet: nil, cap: WakeCap(count: 2, milliseconds: Int64(Self.hour)),
            Self.rule("alarm/#", isUncapped: true), WakeRule(filter: "sync/#", kind: .background),
            Self.rule("orders/#"))
        try addPhone(to: link)
        for number in 1...2 {
            publish("orders/\(number)", to: link)
            #expect(sender.topics == ["orders/\(number)"])
            sender.answer(link)
            pass(1, in: link)
        }
        publish("orders/3", to: link)
        publish("orders/4", to: link)
        #expect(sender.wakes.isEmpty)
        #expect(state(link) == .held)
        // What no user sees does not count, and what must be told is.
        publish("alarm/1", to: link)
        #expect(sender.topics == ["alarm/1"])
        sender.answer(link)
        pass(1, in: link)
        publish("sync/1", to: link)
        #expect(sender.wakes.map(\.kind) == [.background])
        sender.answer(link)
        pass(1, in: link)
        publish("orders/5", to: link)
        pass(55, in: link)
        #expect(sender.wakes.isEmpty, "an hour is over in a minute")
        pass(1, in: link)
        // The wheel of timers may be late by less than a second.
        link.advance(milliseconds: 1_000)
        #expect(sender.topics == ["orders/5"])
        sender.answer(link)
        pass(1, in: link)
        publish("orders/6", to: link)
        #expect(sender.topics == ["orders/6"], "the second of the next hour")
        sender.answer(link)
        pass(1, in: link)
        publish("orders/7", to: link)
        #expect(sender.wakes.isEmpty)
    }

    @Test("a call is not repeated once it would come late", arguments: [nil, 900])
    func lateCall(expires: Int64?) throws {
        var rule = WakeRule(filter: "calls/#", kind: .voip)
        rule.expiresInSeconds = expires
        let link = try makeLink(quiet: nil, rule)
        try addPhone(bundle: "b.voip", to: link)
        publish("calls/1", to: link)
        sender.answer(link, .later(milliseconds: 1_000))
        link.advance(milliseconds: 2_000)
        #expect(sender.topics == ["calls/1"])
        sender.answer(link, .later(milliseconds: 600_000))
        pass(11, in: link)
        #expect(sender.topics == (expires == nil ? [] : ["calls/1"]))
        #expect(link.shard.features.wakeCounters.expired == (expires == nil ? 1 : 0))
        guard expires == nil else { return }
        #expect(state(link) == DeviceDetail.WakeState.none)
        publish("calls/2", to: link)
        #expect(sender.topics == ["calls/2"])
    }

    @Test("alerts that nobody took do not count, and their number is stored")
    func counting() throws {
        let link = try makeLink(quiet: nil, cap: WakeCap(count: 1, milliseconds: Int64(Self.hour)))
        try addPhone(to: link)
        publish("orders/1", to: link)
        sender.answer(link, .later(milliseconds: 1_000))
        link.advance(milliseconds: 2_000)
        #expect(sender.topics == ["orders/1"])
        let time = link.shard.wallClockMs
        sender.answer(link)
        guard case .fact(let last)? = link.store.records.last else {
            Issue.record("nothing is stored")
            return
        }
        let woken = last.read { (fact) throws(DamagedFact) in try StoredDevice.Woken.read(fact) }
        #expect(woken?.woken.alerts == 1)
        #expect(woken?.woken.alertsSinceMs == time)
    }

    @Test("hours that a reload takes away hold nothing longer than ten minutes")
    func reload() throws {
        let link = try makeLink()
        try addPhone(to: link)
        publish("orders/1", to: link)
        #expect(state(link) == .held)
        var limits = link.shard.context.limits
        limits.wakeQuietHours = nil
        link.shard.context.limits = limits
        link.shard.adoptWakeRules()
        pass(9, in: link)
        #expect(sender.wakes.isEmpty)
        pass(1, in: link)
        link.advance(milliseconds: 1_000)
        #expect(sender.topics == ["orders/1"])
    }

    @Test(
        "a client that comes back while its wake is held needs none, and what expires tells nobody")
    func ends() throws {
        let link = try makeLink()
        try addPhone(to: link)
        publish("orders/1", to: link)
        let phone = try link.connect("phone", cleanSession: false)
        link.turn()
        link.commitAll()
        try link.send(phone, .puback(1))
        try link.send(phone, .disconnect)
        link.commitAll()
        #expect(state(link) == DeviceDetail.WakeState.none)
        publish("orders/2", expiresInMs: 1_000, to: link)
        pass(10 * 60, in: link)
        #expect(sender.wakes.isEmpty)
        #expect(state(link) == DeviceDetail.WakeState.none)
    }
}
