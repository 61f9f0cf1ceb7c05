import BrokerAPI
import Testing

@testable import PushServices

@Suite("What the sender makes of refusals and lost answers")
struct SenderPolicyTests {
    private static let good = AppleAnswer(status: 200, body: [])

    private static func refusal(_ status: Int, _ reason: String) -> AppleAnswer {
        AppleAnswer(status: status, body: Array(#"{"reason":"\#(reason)"}"#.utf8))
    }

    // MARK: Health of each app

    @Test("one app's trouble stays its own, and so does one environment's")
    func separate() {
        let queue = QueueUnderTest()
        for device in 0..<10 { queue.enqueue(UInt64(device), sandbox: true) }
        for device in 10..<20 { queue.enqueue(UInt64(device), "other") }
        for _ in 0..<4 {
            queue.answerAll(with: Self.refusal(403, "InvalidProviderToken"), to: 1)
            queue.answerAll(with: Self.refusal(400, "TopicDisallowed"))
            queue.now += 1_000
        }
        let troubles = queue.queue.troubles(at: queue.now)
        #expect(troubles.map(\.environment) == ["sandbox", "production"])
        #expect(troubles.map(\.bundle) == ["app", "other"])
        #expect(troubles.filter(\.isPaused).count == 2)
        _ = queue.takeOutcomes()
        for device in 20..<120 { queue.enqueue(UInt64(device)) }
        queue.answerAll(with: Self.good)
        #expect(queue.takeOutcomes().count { $0 == .accepted } == 100)
    }

    @Test("a key that Apple refuses is tried with one device after the other, ever more slowly")
    func credentials() {
        let queue = QueueUnderTest()
        for device in 0..<200 { queue.enqueue(UInt64(device)) }
        var tries: [UInt64] = []
        let start = queue.now
        // A new connection has one stream until the first success.
        while queue.now < start + 200_000 {
            if queue.send(most: 1) > 0 {
                tries.append((queue.now - start) / 1_000)
                queue.answer { _ in Self.refusal(403, "InvalidProviderToken") }
            }
            queue.queue.giveBackSurplus(unreachable: [nil, nil])
            if queue.queue.count == 0 { queue.enqueue(1_000 + queue.now) }
            queue.now += 1_000
        }
        #expect(tries == [0, 1, 3, 7, 15, 31, 63, 123, 183])
        // What was not tried went back to the broker, and one refusal was an attempt.
        let outcomes = queue.takeOutcomes()
        #expect(outcomes.count { $0 == .later(milliseconds: 1_000) } == 1)
        #expect(outcomes.count { $0 == .givenBack } == outcomes.count - 1)
        #expect(
            queue.queue.limits(unreachable: [nil, nil])
                == [WakeDemand.Limit(.production, bundle: "app", most: 0)])
        // The first that passes ends it.
        queue.now += 60_000
        queue.answerAll(with: Self.good)
        #expect(queue.queue.troubles(at: queue.now).isEmpty)
        #expect(queue.queue.limits(unreachable: [nil, nil]).isEmpty)
    }

    @Test("apps with a key of their own go to services of their own")
    func routes() {
        let queue = QueueUnderTest(("other", nil), ("third", .sandbox), ("other", .sandbox))
        for (device, (bundle, sandbox)) in [
            ("app", false), ("app", true), ("other", false), ("other", true), ("third", false),
            ("third", true),
        ].enumerated() {
            queue.enqueue(UInt64(device), bundle, sandbox: sandbox)
        }
        // Production and sandbox of the usual key, of "other", and of "third".
        let counts = (0..<6).map { queue.send(to: $0) }
        #expect(counts == [2, 1, 1, 1, 0, 1])
    }

    @Test("a key is good or bad for its own apps, and so is the way to Apple with it")
    func severalKeys() {
        let queue = QueueUnderTest(("other", nil))
        for device in 0..<10 { queue.enqueue(UInt64(device)) }
        queue.answerAll(with: Self.good)
        _ = queue.takeOutcomes()
        // The other key has passed nothing yet, so one device may not be what is wrong.
        queue.enqueue(100, "other")
        queue.answerAll(with: Self.refusal(403, "Forbidden"), to: 2)
        #expect(queue.takeOutcomes() == [.later(milliseconds: 1_000)])
        queue.enqueue(101)
        queue.answerAll(with: Self.refusal(403, "Forbidden"))
        #expect(queue.takeOutcomes() == [.badDevice])
        // Its service cannot be reached: of its app one is kept, and nothing of the other.
        queue.queue.forgive()
        for device in 200..<210 { queue.enqueue(UInt64(device), "other") }
        for device in 300..<310 { queue.enqueue(UInt64(device)) }
        let unreachable: [String?] = [nil, nil, "refused", nil]
        queue.queue.giveBackSurplus(unreachable: unreachable)
        #expect(queue.takeOutcomes() == Array(repeating: .givenBack, count: 9))
        #expect(
            queue.queue.limits(unreachable: unreachable)
                == [WakeDemand.Limit(.production, bundle: "other", most: 0)])
    }

    @Test("new credentials are tried at once")
    func forgiven() {
        let queue = QueueUnderTest()
        for device in 0..<9 { queue.enqueue(UInt64(device)) }
        for _ in 0..<5 {
            _ = queue.send(most: 1)
            queue.answer { _ in Self.refusal(403, "BadCertificate") }
            queue.now += 20_000
        }
        queue.now -= 19_000
        #expect(queue.send() == 0)
        queue.queue.forgive()
        #expect(queue.send() > 1)
    }

    @Test("one device that is refused again and again delays no other")
    func oneDevice() {
        let queue = QueueUnderTest()
        for attempt in 0..<12 {
            queue.enqueue(1, attempt: attempt)
            queue.answerAll(with: Self.refusal(403, "InvalidProviderToken"))
            queue.now += 1_000 << UInt64(min(attempt, 9))
        }
        queue.enqueue(1)
        queue.answerAll(with: Self.refusal(403, "InvalidProviderToken"))
        _ = queue.takeOutcomes()
        queue.now += 1_000
        queue.enqueue(2)
        queue.answerAll(with: Self.good)
        #expect(queue.takeOutcomes() == [.accepted])
    }

    @Test("an app that is refused for all is kept; one device of a good app is not asked for ever")
    func topics() {
        let queue = QueueUnderTest()
        for device in 0..<200 { queue.enqueue(UInt64(device)) }
        queue.answerAll(with: Self.refusal(400, "TopicDisallowed"))
        queue.queue.giveBackSurplus(unreachable: [nil, nil])
        #expect(!queue.takeOutcomes().contains(.refused))
        let hint = queue.queue.troubles(at: queue.now).first?.hint
        #expect(hint?.contains("bundle identifier") == true)
        let other = QueueUnderTest()
        for attempt in 0..<4 {
            other.enqueue(1)
            other.answerAll(with: Self.good)
            other.enqueue(2, attempt: attempt)
            other.answerAll(with: Self.refusal(400, "BadTopic"))
        }
        #expect(other.takeOutcomes().last == .refused)
    }

    // MARK: Unknown tokens

    @Test("bad tokens among good ones stop nobody, and raise an alarm")
    func badTokens() {
        let queue = QueueUnderTest()
        for device in 0..<10_000 { queue.enqueue(UInt64(device)) }
        queue.now += 10
        #expect(queue.send() == 10_000)
        queue.answer { $0 % 10 == 0 ? Self.refusal(400, "BadDeviceToken") : Self.good }
        let outcomes = queue.takeOutcomes()
        #expect(outcomes.count { $0 == .accepted } == 9_000)
        #expect(outcomes.count { $0 == .badDevice } == 1_000)
        let trouble = queue.queue.troubles(at: queue.now).first
        #expect(trouble?.isPaused == false)
        #expect(trouble?.reason.contains("does not know") == true)
        #expect(queue.queue.troubles(at: queue.now + 600_000).isEmpty)
    }

    @Test("when nearly all tokens are bad a trickle goes on, until good ones come")
    func trickle() {
        let queue = QueueUnderTest()
        for device in 0..<100 { queue.enqueue(UInt64(device)) }
        queue.answerAll(with: Self.refusal(400, "BadDeviceToken"))
        for device in 100..<400 { queue.enqueue(UInt64(device)) }
        var sent = 0
        for _ in 0..<100 {
            sent += queue.send()
            queue.answer { _ in Self.refusal(400, "BadDeviceToken") }
            queue.now += 10
        }
        #expect((9...11).contains(sent))
        #expect(
            queue.queue.limits(unreachable: [nil, nil])
                == [WakeDemand.Limit(.production, bundle: "app", most: 0)])
        for _ in 0..<4 {
            queue.now += 100
            queue.answerAll(with: Self.good)
        }
        #expect(queue.send() > 100)
    }

    // MARK: Streams and connections

    @Test("a stream that is refused for ever is repeated a few times, with growing pauses")
    func refusedStreams() {
        let queue = QueueUnderTest()
        queue.enqueue(1)
        var times: [UInt64] = []
        let start = queue.now
        for _ in 0..<100 {
            if queue.send() > 0 {
                times.append(queue.now - start)
                queue.endStreams(isUnprocessed: true)
            }
            queue.now += 500
            queue.queue.checkTimes(at: queue.now)
        }
        #expect(times.count == 5)
        #expect(times.prefix(2).allSatisfy { $0 <= 500 })
        #expect(zip(times.dropFirst(2), times.dropFirst(1)).allSatisfy { $0 > $1 + 500 })
        #expect(queue.takeOutcomes() == [.later(milliseconds: 5_000)])
    }

    @Test("a withdrawn notification is not sent, and one on a stream is not sent again")
    func withdrawn() {
        let queue = QueueUnderTest()
        queue.enqueue(1)
        queue.enqueue(2)
        #expect(queue.send(most: 1) == 1)
        queue.queue.withdraw([1, 2, 3].map { HandOut(device: $0, number: 1) })
        #expect(queue.send() == 0)
        queue.endStreams(isUnprocessed: true)
        #expect(queue.send() == 0)
        #expect(queue.takeOutcomes() == [.givenBack, .givenBack])
        #expect(queue.queue.count == 0)
    }

    @Test("what a useless connection had is no attempt; a useful one counts after three")
    func lost() {
        for wasUseful in [false, true] {
            let queue = QueueUnderTest()
            queue.enqueue(1)
            for _ in 0..<3 {
                #expect(queue.send() == 1)
                queue.loseConnection(wasUseful: wasUseful)
            }
            #expect(queue.send() == 0)
            #expect(
                queue.takeOutcomes() == [wasUseful ? .later(milliseconds: 5_000) : .givenBack])
        }
    }

    @Test("of a service that cannot be reached one notification is kept, and none for long")
    func unreachable() {
        let queue = QueueUnderTest()
        for device in 0..<50 { queue.enqueue(UInt64(device)) }
        queue.enqueue(99, sandbox: true)
        queue.queue.giveBackSurplus(unreachable: ["refused", nil])
        #expect(queue.takeOutcomes() == Array(repeating: .givenBack, count: 49))
        #expect(
            queue.queue.limits(unreachable: ["refused", nil])
                == [WakeDemand.Limit(.production, bundle: nil, most: 0)])
        queue.now += 60_000
        queue.queue.checkTimes(at: queue.now)
        #expect(queue.takeOutcomes() == [.givenBack, .givenBack])
        #expect(
            queue.queue.limits(unreachable: ["refused", nil])
                == [WakeDemand.Limit(.production, bundle: nil, most: 1)])
    }

    @Test("any number of invented apps is forgotten again, and places are not mixed up")
    func inventedApps() {
        let queue = QueueUnderTest()
        for device in 0..<5_000 {
            queue.enqueue(UInt64(device), "app\(device)")
            queue.answerAll(with: Self.refusal(400, "TopicDisallowed"))
        }
        #expect(queue.takeOutcomes().count == 5_000)
        #expect(queue.queue.laneCount <= 1_025)
        for device in 0..<3_000 { queue.enqueue(UInt64(device), "new\(device)") }
        #expect(queue.send() == 3_000)
    }

    @Test("a slow service gets few at a time, and a fast one many")
    func window() {
        var window = StreamWindow()
        for _ in 0..<1_000 { window.answered(after: 5, at: 0) }
        #expect(window.size > 1_000)
        for second in 1...60 {
            for _ in 0..<8 { window.answered(after: 10_000, at: UInt64(second) * 1_000) }
        }
        #expect(window.size == 4)
    }

    @Test("connections grow one a second while requests wait, and back off when none is of use")
    func pool() {
        var pool = EndpointPool(most: 2)
        let asked: [(connections: Int, waiting: Bool, at: UInt64, opens: Bool)] = [
            (0, true, 10_000, true), (0, true, 10_100, false), (1, true, 11_000, true),
            (2, true, 99_000, false), (1, false, 99_000, false),
        ]
        for one in asked {
            let opens = pool.opens(connections: one.connections, waiting: one.waiting, at: one.at)
            #expect(opens == one.opens, "\(one)")
        }
        /// Pauses in seconds after failures one after the other.
        func pauses(wasOpen: Bool) -> [UInt64] {
            var pool = EndpointPool(most: 2)
            return (0..<8).map { _ in
                pool.failed("refused", wasOpen: wasOpen, random: 1, at: 100_000)
                return pool.backoff(at: 100_000) / 1_000
            }
        }
        #expect(pauses(wasOpen: false) == [1, 2, 4, 5, 5, 5, 5, 5])
        #expect(pauses(wasOpen: true) == [1, 2, 4, 8, 16, 32, 60, 60])
        // One notification that is answered with "Shutdown" for ever delays the others by seconds.
        var turnedAway = EndpointPool(most: 2)
        let delays = (0..<8).map { _ in
            turnedAway.saidGoodbye("Shutdown", random: 1, at: 100_000)
            return turnedAway.backoff(at: 100_000) / 1_000
        }
        #expect(delays == [0, 0, 0, 0, 0, 1, 2, 4])
        pool.failed("refused", wasOpen: true, random: 1, at: 100_000)
        #expect(pool.failure == "refused")
        pool.succeeded()
        #expect(pool.failure == nil)
    }
}
