import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures
import Testing

/// Random interleavings of client actions and completed commits, judged by the packets that clients
/// receive. A failure names its seed.
@Suite("Random races")
struct RaceModelTests {
    @Test(
        "at least once, exactly once and in order, whatever happens between", arguments: 1...60)
    func model(seed: Int) throws {
        var model = try RaceModel(seed: UInt64(seed))
        try model.run(steps: 400)
        try model.settle()
        #expect(model.violations() == [], "replay with seed \(seed)")
    }
}

/// Four clients that publish and subscribe: two with persistent sessions, one with clean sessions,
/// and one that keeps changing its session and subscriptions.
private struct RaceModel {
    /// The first peers always subscribe: all that they must receive is known.
    private static let steady = 0..<2
    private static let clean = 2
    private static let fickle = 3
    private static let topics = ["t/a", "t/b"]

    let link: ShardLink
    var generator: SplitMix64
    var peers = [
        RacePeer(name: "sure", subscribedQoS: .atLeastOnce, isPersistent: true),
        RacePeer(name: "once", subscribedQoS: .exactlyOnce, isPersistent: true),
        RacePeer(name: "clean", subscribedQoS: .exactlyOnce, isPersistent: false),
        RacePeer(name: "fickle", subscribedQoS: .exactlyOnce, isPersistent: true),
    ]
    private var numbers: [String: Int] = [:]
    private var found: [String] = []
    /// Tickets of the groups that contain a payload.
    private var tickets: [String: [UInt64]] = [:]
    private var seenGroups = 0

    init(seed: UInt64) throws {
        generator = SplitMix64(seed: seed)
        link = ShardLink(
            {
                $0.maxInFlight = 3
                // Large, so that nothing is dropped and all messages can be required.
                $0.queueMessages = 60_000
                $0.queueBytes = 1 << 30
            }, isImmediate: false)
        for index in peers.indices {
            try peers[index].connect(link, cleanSession: index == Self.clean)
            link.commitAll()
            try peers[index].receive(link)
            if let handle = peers[index].handle {
                try link.send(handle, .subscribe("t/#", peers[index].subscribedQoS))
            }
            link.commitAll()
            try peers[index].receive(link)
        }
    }

    // MARK: Steps

    mutating func run(steps: Int) throws {
        for _ in 0..<steps {
            try step()
            for index in peers.indices where chance(60) { try receive(index) }
        }
    }

    private mutating func step() throws {
        let index = Int.random(in: peers.indices, using: &generator)
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<30: try publish(index, count: 1)
        case 30..<33: try publish(index, count: Int.random(in: 20...120, using: &generator))
        case 33..<45:
            try peers[index].acknowledge(link, count: Int.random(in: 1...4, using: &generator))
        case 45..<53: try connect(index)
        case 53..<57: end(index, byDisconnect: chance(50))
        case 57..<61: try changeSubscription()
        case 61..<80: completeOne()
        case 80..<90: link.commitAll()
        case 90..<95: link.store.holdsReads.toggle()
        default: link.turn()
        }
    }

    private mutating func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &generator) < percent
    }

    private mutating func receive(_ index: Int) throws {
        let delivered = peers[index].delivered.count
        let retained = peers[index].retained.count
        try peers[index].receive(link)
        let peer = peers[index]
        for payload in peer.delivered[delivered...] + peer.retained[retained...] {
            judgeCommit(payload, peer.name)
        }
    }

    private mutating func publish(_ index: Int, count: Int) throws {
        guard peers[index].isOpen else { return }
        for _ in 0..<count {
            let topic = Self.topics[Int.random(in: Self.topics.indices, using: &generator)]
            let qos = QoS.allCases[Int.random(in: 0..<3, using: &generator)]
            // QoS 0 may overtake the others, so it is counted separately.
            let key = "\(peers[index].name) \(topic) \(qos == .atMostOnce ? "unsure" : "sure")"
            numbers[key, default: 0] += 1
            try peers[index].publish(
                link, topic, "\(key) \(qos.rawValue) \(numbers[key] ?? 0)", qos,
                retain: chance(10))
        }
    }

    /// Takes over if the peer is still connected.
    private mutating func connect(_ index: Int) throws {
        let cleanSession = index == Self.clean || (index == Self.fickle && chance(30))
        try peers[index].connect(link, cleanSession: cleanSession)
        // Sometimes the commit is quick.
        if chance(30) { link.commitAll() }
    }

    private mutating func end(_ index: Int, byDisconnect: Bool) {
        guard let handle = peers[index].handle else { return }
        if byDisconnect, peers[index].isOpen {
            try? link.send(handle, .disconnect)
        } else {
            link.lose(handle)
        }
        peers[index].leave(link)
    }

    private mutating func changeSubscription() throws {
        let peer = peers[chance(50) ? Self.clean : Self.fickle]
        guard let handle = peer.handle, peer.isOpen else { return }
        if chance(30) {
            try link.send(handle, .unsubscribe(9, [Array("t/#".utf8)]))
        } else {
            try link.send(handle, .subscribe("t/#", peer.subscribedQoS))
        }
    }

    /// Completes one pending commit, in any order.
    private mutating func completeOne() {
        guard let ticket = link.store.pending.randomElement(using: &generator) else { return }
        link.store.complete(ticket)
        link.turn()
    }

    /// Completes all commits and reconnects all clients, until nothing is left to do.
    mutating func settle() throws {
        link.store.holdsReads = false
        link.commitAll()
        for index in peers.indices {
            try receive(index)
            guard !peers[index].isOpen else { continue }
            if peers[index].handle == nil {
                try peers[index].connect(link, cleanSession: index == Self.clean)
            }
        }
        for _ in 0..<5_000 {
            link.commitAll()
            for index in peers.indices {
                try receive(index)
                try peers[index].acknowledge(link, count: 100)
            }
            if isQuiet { return }
        }
        found.append("something is left to do for ever")
    }

    private var isQuiet: Bool {
        let figures = link.shard.figures
        return peers.allSatisfy(\.isSettled) && figures.queued == 0 && figures.inFlight == 0
            && link.store.pending.isEmpty
    }

    // MARK: Judging

    /// No receiver gets a message of QoS 1 or 2 that a crash could lose.
    private mutating func judgeCommit(_ payload: String, _ name: String) {
        let groups = link.store.groups
        while seenGroups < groups.count {
            for case .message(_, _, let bytes, _, _, _) in groups[seenGroups].records {
                tickets[String(decoding: bytes, as: UTF8.self), default: []]
                    .append(groups[seenGroups].ticket)
            }
            seenGroups += 1
        }
        guard payload.contains(" sure "), let stored = tickets[payload] else { return }
        let pending = link.store.pending
        if stored.allSatisfy({ pending.contains($0) }) {
            found.append("\(name) got \(payload) before its commit")
        }
    }

    func violations() -> [String] {
        var result = found + peers.flatMap(\.violations)
        for (index, peer) in peers.enumerated() {
            result += Self.disorder(in: peer, isSteady: Self.steady.contains(index))
        }
        let acknowledged = peers.reduce(into: Set<String>()) { $0.formUnion($1.acknowledged) }
        for index in Self.steady {
            let lost = acknowledged.subtracting(peers[index].delivered).sorted()
            result += lost.prefix(3).map { "\(peers[index].name) never got \($0)" }
        }
        for number in 1...UInt64(200) where !link.store.positions(of: number).isEmpty {
            result.append("session \(number) still has \(link.store.positions(of: number))")
        }
        let figures = link.shard.figures
        if figures.connections != peers.count(where: \.isOpen) {
            result.append("\(figures.connections) connections are counted")
        }
        return result
    }

    /// Messages of one publisher and topic arrive in order; repeated only as QoS 1 allows.
    ///
    /// A client that subscribes in between may get a QoS 1 message first when its publisher repeats
    /// it, after later ones. For such clients only QoS 0 and 2 are checked.
    private static func disorder(in peer: RacePeer, isSteady: Bool) -> [String] {
        var result: [String] = []
        var last: [Substring: Int] = [:]
        var seen: Set<String> = []
        for payload in peer.delivered {
            let words = payload.split(separator: " ")
            let key = payload.prefix { !$0.isNumber }
            let isOnce = min(words[3], "\(peer.subscribedQoS.rawValue)") != "1"
            guard seen.insert(payload).inserted else {
                if isOnce { result.append("\(peer.name) got \(payload) twice") }
                continue
            }
            guard isSteady || words[3] != "1", let number = Int(words[4]) else { continue }
            if number < last[key, default: 0] {
                result.append("\(peer.name) got \(payload) behind \(last[key, default: 0])")
            }
            last[key] = number
        }
        return Array(result.prefix(5))
    }
}
