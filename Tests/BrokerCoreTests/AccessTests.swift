import BrokerAPI
import Authorization
import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

@Suite("Access rules in a shard")
struct AccessTests {
    // MARK: PUBLISH

    @Test(
        "a PUBLISH that is not allowed closes its connection, and nothing of it is acknowledged or delivered",
        arguments: [QoS.atMostOnce, .atLeastOnce, .exactlyOnce])
    func publishDenied(qos: QoS) throws {
        let link = try link("allow user backend publish orders/#\nallow everyone subscribe #")
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("#", .atMostOnce))
        _ = try link.take(watcher)
        let backend = try link.connect("backend", user: "backend")
        try link.send(backend, .publish("orders/1", "yes", qos: qos, 7))
        #expect(!link.closed.contains(backend))
        #expect(payloads(try link.take(watcher)) == ["yes"])
        _ = try link.take(backend)
        try link.send(backend, .publish("prices/1", "no", qos: qos, 8), .pingreq)
        #expect(link.closed.contains(backend))
        #expect(try link.take(backend).isEmpty)
        #expect(try link.take(watcher).isEmpty)
        #expect(link.refusals("publish") == 1)
        #expect(link.closeReasons.last == .publishDenied)
        let report = try #require(link.reports.last)
        #expect(report.event == .publish && report.line == 0)
        #expect(report.topic == Array("prices/1".utf8) && report.userName == Array("backend".utf8))
    }

    @Test("acknowledgements from before the denial are still sent")
    func earlierAcknowledgements() throws {
        let link = try link("allow everyone publish a")
        let client = try link.connect("c")
        try link.send(
            client, .publish("a", "1", qos: .atLeastOnce, 1),
            .publish("b", "2", qos: .atLeastOnce, 2))
        #expect(try link.take(client) == [.puback(1)])
        #expect(link.closed.contains(client))
    }

    @Test("a refusal publishes the will, if the rules allow the will")
    func willAfterRefusal() throws {
        let link = try link("allow everyone publish wills/%c\nallow everyone subscribe #")
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("wills/#", .atMostOnce))
        _ = try link.take(watcher)
        let client = try link.connect("c", will: "wills/c")
        try link.send(client, .publish("other", "x"))
        #expect(link.closed.contains(client))
        #expect(payloads(try link.take(watcher)) == ["gone"])
    }

    @Test("a cached permission applies to its topic only, and ends with the rules")
    func permits() throws {
        let link = try link("allow user u publish a/long/topic/name\nallow user u publish b")
        let client = try link.connect("c", user: "u")
        for topic in ["a/long/topic/name", "a/long/topic/name", "b", "b", "a/long/topic/name"] {
            try link.send(client, .publish(topic, "x"))
        }
        #expect(!link.closed.contains(client))
        try link.use("allow user u publish b")
        try link.send(client, .publish("a/long/topic/name", "x"))
        #expect(link.closed.contains(client))
        let other = try link.connect("d", user: "u")
        try link.send(other, .publish("b", "x"))
        #expect(!link.closed.contains(other))
        try link.send(other, .publish("bb", "x"))
        #expect(link.closed.contains(other))
        #expect(link.refusals("publish") == 2)
    }

    @Test("a user name without a checked password counts as anonymous")
    func unprovenNames() throws {
        let rules = try rules("allow user admin both #\nallow anonymous publish open")
        let link = ShardLink(access: rules, verifiesPasswords: false)
        let client = try link.connect("c", user: "admin")
        try link.send(client, .publish("open", "x"))
        #expect(!link.closed.contains(client))
        try link.send(client, .publish("closed", "x"))
        #expect(link.closed.contains(client))
        #expect(link.reports.last?.userName == nil)
    }

    @Test("messages of the admin plane are not asked for")
    func adminPlane() throws {
        let link = try link("allow everyone subscribe #")
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("a", .atMostOnce))
        _ = try link.take(watcher)
        link.shard.publish(
            Publication(
                topic: Array("a".utf8), payload: Array("x".utf8), qos: .atMostOnce, retain: false)
        ) { _ in }
        link.turn()
        #expect(payloads(try link.take(watcher)) == ["x"])
    }

    // MARK: SUBSCRIBE

    @Test("a filter without any allowed topic is answered with 0x80, each by itself")
    func subscribeDenied() throws {
        let link = try link("deny everyone both a/secret\nallow everyone subscribe a/+")
        let client = try link.connect("c")
        try link.send(
            client,
            .subscribe(
                3,
                [
                    PacketContent.Request("a/b", .atLeastOnce),
                    PacketContent.Request("a/secret", .atLeastOnce),
                    PacketContent.Request("b/#", .exactlyOnce),
                    PacketContent.Request("#", .atMostOnce),
                    PacketContent.Request("$share/g/b", .atLeastOnce),
                    PacketContent.Request("$share/g/a/b", .atLeastOnce),
                    PacketContent.Request("$SYS/#", .atMostOnce),
                ]))
        #expect(try link.take(client) == [.suback(3, [1, 0x80, 0x80, 0, 0x80, 1, 0x80])])
        #expect(link.refusals("subscribe") == 4)
        #expect(
            link.reports.map(\.event) == [
                .subscribe, .subscribe, .narrowed, .subscribe, .subscribe,
            ])
    }

    @Test(
        "a wildcard subscription reaches no further than the rules",
        arguments: ["#", "+/+", "orders/#", "$share/g/#", "$share/g/+/+"],
        [QoS.atMostOnce, .atLeastOnce, .exactlyOnce])
    func narrowed(filter: String, qos: QoS) throws {
        let link = try link(
            "allow user backend publish #\nallow user * subscribe orders/%u")
        let anna = try link.connect("a", user: "anna", cleanSession: false)
        try link.send(anna, .subscribe(filter, .exactlyOnce))
        #expect(try link.take(anna) == [.suback(1, [2])])
        let backend = try link.connect("b", user: "backend")
        // The second round comes from the cache.
        for number in 1...2 {
            for topic in ["orders/anna", "orders/bob", "prices/anna"] {
                let identifier = try #require(PacketIdentifier(UInt16(number)))
                try link.send(backend, .publish(topic, "\(topic) \(number)", qos: qos, identifier))
                try link.send(backend, .pubrel(identifier))
            }
        }
        #expect(payloads(try link.take(anna)) == ["orders/anna 1", "orders/anna 2"])
        #expect(link.shard.figures.queued == 0)
    }

    @Test("retained messages are withheld as others are")
    func retainedDelivery() throws {
        let link = try link(
            "allow user backend publish #\nallow user anna subscribe a/#\nallow user root subscribe #"
        )
        let backend = try link.connect("b", user: "backend")
        for topic in ["a/1", "b/1", "a/2"] {
            try link.send(backend, .publish(topic, topic, retain: true))
        }
        let anna = try link.connect("a", user: "anna")
        try link.send(anna, .subscribe("#", .atLeastOnce))
        #expect(payloads(try link.take(anna)).sorted() == ["a/1", "a/2"])
        #expect(link.refusals("deliver") == 1)
        #expect(link.reports.map(\.event) == [.narrowed, .withheld])
        #expect(link.reports.last?.topic == Array("b/1".utf8))
        try link.use("allow user root subscribe #")
        try link.send(anna, .subscribe("a/#", .atLeastOnce))
        #expect(try link.take(anna) == [.suback(1, [0x80])])
        let root = try link.connect("r", user: "root")
        try link.send(root, .subscribe("+/+", .atLeastOnce))
        #expect(payloads(try link.take(root)).count == 3)
    }

    @Test("$SYS topics need a rule that names them")
    func systemTopics() throws {
        let link = try link(
            "allow user ops subscribe $SYS/#\nallow everyone subscribe #\nallow everyone publish #")
        let ops = try link.connect("ops", user: "ops")
        try link.send(ops, .subscribe("$SYS/broker/version", .atMostOnce))
        #expect(try link.take(ops).count == 2)
        let other = try link.connect("other", user: "other")
        try link.send(other, .subscribe("$SYS/broker/version", .atMostOnce))
        #expect(try link.take(other) == [.suback(1, [0x80])])
        // A client's PUBLISH is dropped, with and without rules.
        try link.send(ops, .publish("$SYS/broker/version", "x"))
        #expect(!link.closed.contains(ops))
    }

    @Test("messages that are withheld are counted all, and 8 of a turn reported")
    func withheldReports() throws {
        let link = try link("allow user backend publish #\nallow everyone subscribe a/b")
        for number in 0..<20 {
            let member = try link.connect("c\(number)")
            try link.send(member, .subscribe("a/#", .atMostOnce))
        }
        let backend = try link.connect("b", user: "backend")
        for expected in [8, 16] {
            try link.send(backend, .publish("a/\(expected)", "x"), .publish("a/x\(expected)", "x"))
            let withheld = link.reports.filter { $0.event == .withheld }
            #expect(withheld.count == expected)
            #expect(withheld.allSatisfy { $0.line == 0 && $0.userName == nil })
        }
        #expect(link.refusals("deliver") == 80)
    }

    // MARK: Shared subscriptions

    @Test("a group's message goes to a member that may read it")
    func sharedMembers() throws {
        let link = try link(
            "allow user backend publish #\nallow user lead subscribe #\nallow user * subscribe jobs/open/#"
        )
        let members = try ["m1", "lead", "m2"].map { name in
            let member = try link.connect(name, user: name)
            try link.send(member, .subscribe("$share/g/jobs/#", .atLeastOnce))
            _ = try link.take(member)
            return member
        }
        let backend = try link.connect("b", user: "backend")
        for number in 1...6 {
            let topic = number % 2 == 0 ? "jobs/open/1" : "jobs/secret"
            let identifier = try #require(PacketIdentifier(UInt16(number)))
            try link.send(
                backend, .publish(topic, "\(number)", qos: .atLeastOnce, identifier))
        }
        let received = try members.map { payloads(try link.take($0)) }
        #expect(Set(received[1]).isSuperset(of: ["1", "3", "5"]))
        #expect(received.flatMap { $0 }.sorted() == ["1", "2", "3", "4", "5", "6"])
        try link.use("allow user backend publish #\nallow user * subscribe jobs/open/#")
        #expect(link.refusals("deliver") == 0)
        for qos in [QoS.atMostOnce, .atLeastOnce] {
            try link.send(backend, .publish("jobs/secret", "7", qos: qos, 7))
        }
        for member in members { #expect(try payloads(link.take(member)).isEmpty) }
        #expect(link.refusals("deliver") == 2, "once for the group")
        let report = try #require(link.reports.last)
        #expect(report.event == .withheld && report.topic == Array("jobs/secret".utf8))
        #expect(link.shard.counters.dropped[.offline] == 0)
    }

    @Test("also for a group of offline members")
    func sharedAbsentMembers() throws {
        let link = try link("allow user backend publish #\nallow user m2 subscribe #")
        try link.use("allow user backend publish #\nallow user * subscribe #")
        for name in ["m1", "m2"] {
            let member = try link.connect(name, user: name, cleanSession: false)
            try link.send(member, .subscribe("$share/g/#", .atLeastOnce))
            link.lose(member)
        }
        try link.use("allow user backend publish #\nallow user m2 subscribe #")
        let backend = try link.connect("b", user: "backend")
        for _ in 0..<4 { try link.send(backend, .publish("a", "x", qos: .atLeastOnce, 1)) }
        let first = try link.connect("m1", user: "m1", cleanSession: false)
        #expect(try link.take(first).isEmpty)
        #expect(link.client("m1")?.queued == 0)
        #expect(link.shard.figures.queued == 4)
    }

    // MARK: Wills

    @Test("a will is judged by the rules of the moment when it fires")
    func willAtFireTime() throws {
        let open = "allow everyone subscribe #\nallow user u publish alerts/u"
        let link = try link(open)
        let watcher = try link.connect("watcher")
        try link.send(watcher, .subscribe("alerts/#", .atLeastOnce))
        _ = try link.take(watcher)
        let first = try link.connect("c", user: "u", will: "alerts/u")
        try link.use("allow everyone subscribe #")
        link.lose(first)
        #expect(try link.take(watcher).isEmpty)
        #expect(link.refusals("will") == 1)
        #expect(link.reports.last?.event == .will)
        // The reverse: denied at CONNECT, allowed when it fires.
        let second = try link.connect("c", user: "u", will: "alerts/u")
        try link.use(open)
        link.lose(second)
        #expect(payloads(try link.take(watcher)) == ["gone"])
    }

    @Test("a refused will is not retained, and DISCONNECT refuses none")
    func retainedWill() throws {
        let link = try link("allow everyone subscribe #")
        let client = try link.connect("c", will: "alerts/c", retainsWill: true)
        link.lose(client)
        #expect(link.shard.figures.retained == 0)
        #expect(link.refusals("will") == 1)
        let polite = try link.connect("c", will: "alerts/c")
        try link.send(polite, .disconnect)
        #expect(link.refusals("will") == 1)
    }
}

// MARK: Support

func rules(_ text: String) throws -> AccessRules {
    try AccessRules(parsing: Array(text.utf8), path: "acl")
}

/// A shard with these rules that accepts every password.
func link(_ text: String) throws -> ShardLink { ShardLink(access: try rules(text)) }

/// The payloads of the PUBLISH packets.
func payloads(_ packets: [PacketContent]) -> [String] {
    packets.compactMap { packet in
        guard case .publish(let publish) = packet else { return nil }
        return String(decoding: publish.payload, as: UTF8.self)
    }
}

extension ShardLink {
    /// Puts other rules into force.
    func use(_ text: String) throws {
        shard.setAccess(try rules(text))
        turn()
    }

    func connect(
        _ identifier: String, user: String? = nil, cleanSession: Bool = true, will: String? = nil,
        retainsWill: Bool = false
    ) throws -> Handle {
        try connect(identifier, cleanSession: cleanSession) { connect in
            if let user {
                connect.userName = Array(user.utf8)
                connect.password = [1]
            }
            if let will {
                connect.will = PacketContent.Will(
                    topic: will, message: Array("gone".utf8), retain: retainsWill)
            }
        }
    }

    func refusals(_ action: String) -> UInt64? {
        shard.figures.accessRefusals.first { $0.label == action }?.value
    }

    var reports: [AccessReport] {
        notices.compactMap { notice in
            if case .access(let report) = notice { report } else { nil }
        }
    }

    func client(_ identifier: String) -> ClientSummary? {
        shard.client(identifier) { _ in "" }?.summary
    }
}
