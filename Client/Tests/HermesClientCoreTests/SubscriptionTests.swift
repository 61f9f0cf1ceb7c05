import MQTTCodec
import Testing

@testable import HermesClientCore

extension Driver {
    mutating func subscribe(
        _ filter: String, qos: QoS = .atLeastOnce
    ) throws(SubscriptionError) {
        try call { machine, moment throws(SubscriptionError) in
            try machine.subscribe(Array(filter.utf8), qos: qos, at: moment)
        }
    }

    mutating func unsubscribe(_ filter: String) {
        call { $0.unsubscribe(Array(filter.utf8), at: $1) }
    }

    var answers: [String: SubscriptionAnswer] {
        var answers: [String: SubscriptionAnswer] = [:]
        for case .subscriptionAnswered(let filter, let answer) in actions {
            answers[String(decoding: filter, as: UTF8.self)] = answer
        }
        return answers
    }

    /// Answers the SUBSCRIBE or UNSUBSCRIBE that was sent last, granting what was asked.
    mutating func answerSubscription(_ code: UInt8 = 1) {
        for packet in sent.reversed() {
            if case .subscribe(let identifier, let filters) = packet {
                receive(Packets.suback(identifier, filters.map { _ in code }))
                return
            }
            if case .unsubscribe(let identifier, _) = packet {
                receive(Packets.unsuback(identifier))
                return
            }
        }
    }
}

@Suite("Subscriptions")
struct SubscriptionTests {
    @Test("those asked for without a connection go together, in one request")
    func offline() throws {
        var client = try Driver()
        try client.subscribe("a/#")
        try client.subscribe("b")
        client.connect()
        guard case .subscribe(let identifier, ["a/#", "b"])? = client.sent.last else {
            Issue.record("\(client.sent)")
            return
        }
        client.receive(Packets.suback(identifier, [1, 0x80]))
        #expect(client.answers == ["a/#": .granted(1), "b": .refused])
        #expect(client.machine.stored.subscriptions.all.map(\.filter) == [.init(text: "a/#")])
    }

    @Test("what is granted is not asked for again while the session lives, across kills too")
    func sessionPresent() throws {
        var client = try Driver.subscribed(to: "a")
        client = try client.restarted()
        client.connect(sessionPresent: true)
        #expect(client.sent.count == 1)
    }

    @Test("a repeated request is answered with what the broker has granted, across kills too")
    func repeated() throws {
        var client = try Driver()
        client.connect()
        try client.subscribe("a", qos: .exactlyOnce)
        client.answerSubscription(1)
        client.clear()
        for var client in [client, try client.restarted()] {
            try client.subscribe("a", qos: .exactlyOnce)
            #expect(client.answers == ["a": .granted(1)])
            #expect(client.sent == [])
        }
    }

    @Test("a lost session renews them, across kills too")
    func renewal() throws {
        var client = try Driver.subscribed(to: "a")
        client = try client.restarted()
        client.connect(sessionPresent: false)
        guard case .subscribe(_, ["a"])? = client.sent.last else {
            Issue.record("\(client.sent)")
            return
        }
    }

    @Test("a lost CONNACK may have told of a new session: subscriptions are asked for again")
    func lostConnack() throws {
        var client = try Driver.subscribed(to: "a")
        client.transportClosed()
        client.pass(client.retryDelay ?? 0)
        client.transportOpened()
        // The broker has begun a new session, and its CONNACK is lost, or the program is killed.
        for var client in [client, try client.restarted()] {
            if client.machine.link != nil { client.transportClosed(.networkFailure) }
            client.clear()
            client.connect(sessionPresent: true)
            guard case .subscribe(_, ["a"])? = client.sent.last else {
                Issue.record("\(client.sent)")
                return
            }
        }
    }

    @Test("a refused renewal is told, kept, and tried again on the next connection only")
    func refusedRenewal() throws {
        var client = try Driver.subscribed(to: "a")
        client.transportClosed(.networkFailure)
        client.connect(sessionPresent: false)
        client.clear()
        try client.subscribe("b")
        client.connectionAnswersRenewal(code: 0x80)
        #expect(client.events == [.renewalRefused(filter: .init(text: "a"))])
        client.transportClosed(.networkFailure)
        client.clear()
        client.connect(sessionPresent: true)
        guard case .subscribe(_, let filters)? = client.sent.last else {
            Issue.record("\(client.sent)")
            return
        }
        #expect(filters.contains("a"))
    }

    @Test("unsubscribing works without a connection, and is finished by UNSUBACK")
    func unsubscribe() throws {
        var client = try Driver.subscribed(to: "a")
        client.transportClosed()
        client.unsubscribe("a")
        client = try client.restarted()
        client.connect(sessionPresent: true)
        guard case .unsubscribe(_, ["a"])? = client.sent.last else {
            Issue.record("\(client.sent)")
            return
        }
        client.answerSubscription()
        #expect(client.answers["a"] == .unsubscribed)
        #expect(client.machine.stored.subscriptions.all.isEmpty)
        client.unsubscribe("never")
        #expect(client.answers["never"] == .unsubscribed)
    }

    @Test("a lost session ends what the app has unsubscribed from, and answers it")
    func unsubscribedByLostSession() throws {
        var client = try Driver.subscribed(to: "a")
        client.transportClosed()
        client.unsubscribe("a")
        client.clear()
        client.connect(sessionPresent: false)
        #expect(client.answers == ["a": .unsubscribed])
        #expect(client.sent.count == 1)
    }

    @Test("who changes their mind while SUBACK is under way gets what they wanted last")
    func changedMind() throws {
        var client = try Driver()
        client.connect()
        try client.subscribe("a")
        client.unsubscribe("a")
        client.answerSubscription()
        guard case .unsubscribe(_, ["a"])? = client.sent.last else {
            Issue.record("\(client.sent)")
            return
        }
        client.answerSubscription()
        #expect(client.machine.stored.subscriptions.all.isEmpty)
    }

    @Test("no SUBACK for 30 s, or one for another request, ends the connection")
    func answers() throws {
        var client = try Driver()
        client.connect()
        try client.subscribe("a")
        client.pass(30_000)
        #expect(client.events == [.dropped(.subscriptionTimeout)])
        client = try Driver()
        client.connect()
        let identifier = try #require(PacketIdentifier(77))
        client.receive(Packets.suback(77, [0]))
        #expect(client.events == [.dropped(.violation(.unexpectedAnswer(.suback, identifier)))])
    }

    @Test("there are bounds, and an ill-formed topic filter is told")
    func bounds() throws {
        var client = try Driver()
        for number in 0..<1_000 { try client.subscribe("f/\(number)") }
        #expect(throws: SubscriptionError.tooMany) { try client.subscribe("one/more") }
        #expect(throws: SubscriptionError.filter(.misplacedMultiLevelWildcard)) {
            try client.subscribe("a/#/b")
        }
        client.connect()
        var asked = 0
        while case .subscribe(_, let filters)? = client.sent.last {
            asked += filters.count
            let request = client.sent.last
            client.clear()
            if case .subscribe(let identifier, _)? = request {
                client.receive(Packets.suback(identifier, filters.map { _ in 1 }))
            }
        }
        #expect(asked == 1_000)
    }
}

extension Driver {
    /// Answers requests until none is open; renewals get `code`, other subscriptions are granted.
    mutating func connectionAnswersRenewal(code: UInt8) {
        while let request = machine.link?.request {
            let codes = request.filters.map { $0.state == .lost ? code : $0.qos.rawValue }
            receive(Packets.suback(request.identifier.rawValue, codes))
        }
    }
}
