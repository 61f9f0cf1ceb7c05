import BrokerAPI
import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

/// A message of a shared group goes to a member with room before any message is lost.
@Suite("Members of a shared group with and without room")
struct SharedRoomTests {
    private static let filter = "$share/g/jobs"

    /// The limit that a queue of three messages meets, by which policy, and where the queue is.
    struct Setting: Sendable, CustomStringConvertible {
        let isBytes: Bool
        let policy: BrokerLimits.QueuePolicy
        let isDurable: Bool

        var description: String {
            "\(isBytes ? "bytes" : "messages") \(policy) \(isDurable ? "stored" : "in memory")"
        }

        static let all = [false, true].flatMap { isBytes in
            [BrokerLimits.QueuePolicy.dropOldest, .dropNewest].flatMap { policy in
                [false, true].map {
                    Setting(isBytes: isBytes, policy: policy, isDurable: $0)
                }
            }
        }

        func link() -> ShardLink {
            ShardLink(
                {
                    $0.queuePolicy = policy
                    // The topic and two bytes.
                    if isBytes { $0.queueBytes = 3 * 6 } else { $0.queueMessages = 3 }
                }, isDurable: isDurable)
        }
    }

    private func addMember(
        _ link: ShardLink, _ name: String, qos: QoS = .atLeastOnce, own: String? = nil
    ) throws -> Handle {
        let handle = try link.connect(name, cleanSession: false)
        try link.send(handle, .subscribe(Self.filter, qos))
        if let own { try link.send(handle, .subscribe(own, .atLeastOnce)) }
        _ = try link.take(handle)
        return handle
    }

    private func publish(_ link: ShardLink, _ payloads: [String], to topic: String = "jobs") throws
    {
        let publisher = try link.connect("publisher")
        try link.publish(payloads, to: topic, from: publisher)
        link.lose(publisher)
    }

    private func dropped(_ link: ShardLink) -> UInt64 { link.shard.counters.dropped[.queueFull] }

    @Test("while an offline member has room, a full one loses nothing", arguments: Setting.all)
    func offline(setting: Setting) throws {
        let link = setting.link()
        let members = try [addMember(link, "a", own: "mine"), addMember(link, "b")]
        for member in members { link.lose(member) }
        try publish(link, ["o1", "o2", "o3"], to: "mine")
        try publish(link, ["j1", "j2", "j3"])
        #expect(dropped(link) == 0)
        #expect(link.shard.figures.queued == 6)
        // Now all are full, and each further message costs one.
        try publish(link, ["j4", "j5"])
        #expect(dropped(link) == 2)
        #expect(link.shard.figures.queued == 6)
        let received = try ["a", "b"].map { name in
            try link.takeAll(try link.beginConnect(name))
        }
        #expect(
            received
                == (setting.policy == .dropOldest
                    ? [["o2", "o3", "j4"], ["j2", "j3", "j5"]]
                    : [["o1", "o2", "o3"], ["j1", "j2", "j3"]]))
    }

    @Test("what is dead in one member's queue pushes out nothing that lives in another's")
    func expired() throws {
        let link = ShardLink({ $0.queueMessages = 2 })
        let members = try [addMember(link, "a", own: "mine"), addMember(link, "b", own: "dead")]
        for member in members { link.lose(member) }
        try publish(link, ["o1", "o2"], to: "mine")
        for number in 1...2 {
            let publication = Publication(
                topic: Array("dead".utf8), payload: [UInt8(number)], qos: .atLeastOnce,
                expiresAtMs: link.shard.wallClockMs + 5)
            link.shard.publish(publication) { _ in }
            link.turn()
        }
        link.shard.beginTurn(at: link.shard.now, wallClockMs: link.shard.wallClockMs + 10)
        try publish(link, ["j1", "j2"])
        #expect(dropped(link) == 0)
        #expect(try link.takeAll(try link.beginConnect("b")) == ["j1", "j2"])
    }

    @Test(
        "connected members with full queues leave the message to one with room, connected or not",
        arguments: [true, false])
    func connected(isOtherConnected: Bool) throws {
        let link = ShardLink({
            $0.maxInFlight = 1
            // One message is in flight, and two wait.
            $0.queueBytes = 2 * 6
        })
        _ = try addMember(link, "a", own: "mine")
        try publish(link, ["o1", "o2", "o3"], to: "mine")
        let other = try addMember(link, "b", own: "mine2")
        if isOtherConnected {
            try publish(link, ["x"], to: "mine2")
        } else {
            link.lose(other)
        }
        try publish(link, ["j1", "j2"])
        #expect(dropped(link) == 0)
        if !isOtherConnected {
            #expect(try link.takeAll(try link.beginConnect("b")) == ["j1", "j2"])
        }
    }

    @Test(
        "a copy by a plain subscription, or by another group, takes the last room of a member: the group chooses anew",
        arguments: ["jobs", "$share/h/jobs"])
    func ownCopy(filter: String) throws {
        let link = ShardLink({ $0.queueMessages = 2 })
        let members = try [addMember(link, "a", own: "mine"), addMember(link, "b")]
        try link.send(members[0], .subscribe(filter, .atLeastOnce))
        for member in members { link.lose(member) }
        try publish(link, ["o"], to: "mine")
        try publish(link, ["j"])
        #expect(dropped(link) == 0)
        #expect(try link.takeAll(try link.beginConnect("a")) == ["o", "j"])
        #expect(try link.takeAll(try link.beginConnect("b")) == ["j"])
    }

    @Test("a message of QoS 0 passes over a member that does not read")
    func atMostOnce() throws {
        let link = ShardLink({ $0.outputBytes = 1_024 })
        let slow = try addMember(link, "a", qos: .atMostOnce)
        let other = try addMember(link, "b", qos: .atMostOnce)
        // Its window is full as well, so neither is sent anything at once.
        link.shard.limits.maxInFlight = 0
        link.block(slow)
        let publisher = try link.connect("publisher")
        let long = String(repeating: "x", count: 2_000)
        try link.send(publisher, .publish("jobs", long))
        for number in 1...4 { try link.send(publisher, .publish("jobs", "\(number)")) }
        #expect(link.shard.counters.dropped[.slowReader] == 0)
        #expect(try link.takePayloads(other) == ["1", "2", "3", "4"])
    }
}
