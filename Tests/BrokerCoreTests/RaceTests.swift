import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures
import Testing

/// The end of a client's first connection, relative to its second CONNECT.
enum RaceEnd: String, CaseIterable, Sendable {
    case takenOver, lost, disconnected
    /// The second CONNECT is processed before the first connection's end.
    case lostLate, disconnectedLate

    /// Ends the first connection around the CONNECT of the second one.
    func replace(_ link: ShardLink, _ old: Handle, cleanSession: Bool = false) throws -> Handle {
        switch self {
        case .takenOver: break
        case .lost: link.lose(old)
        case .disconnected: try link.send(old, .disconnect)
        // Without a turn between: both sockets were ready in one turn.
        case .lostLate: link.shard.lost(old, .peerClosed)
        case .disconnectedLate:
            let bytes = try PacketContent.disconnect.encoded()
            _ = bytes.withUnsafeBytes { link.shard.receive(old, $0) }
        }
        return try link.beginConnect("phone", cleanSession: cleanSession)
    }
}

/// The order in which the store completes pending commits.
enum RaceCompletion: String, CaseIterable, Sendable {
    /// All before the second CONNECT.
    case before
    /// In order, in reverse, or all at once after it.
    case rising, falling, together

    func complete(_ link: ShardLink) {
        switch self {
        case .before, .together: break
        case .rising, .falling:
            for _ in 0..<link.store.pending.count {
                let pending = link.store.pending
                guard let ticket = self == .rising ? pending.first : pending.last else { break }
                link.store.complete(ticket)
                link.turn()
            }
        }
        // Including commits that follow.
        for _ in 0..<10 { link.commitAll() }
    }
}

/// Two events on one session at the same time; docs/limits.md draws each race.
@Suite("Races of connections")
struct RaceTests {
    // MARK: Take-over in the middle of QoS 2

    /// Steps of an outbound exchange that completed on the first connection.
    enum OutboundStep: Int, CaseIterable, Sendable {
        case routed, sent, received, released, completed
    }

    /// ```
    ///   publisher        broker                 phone, 1st        phone, 2nd
    ///     PUBLISH ---------> queue
    ///                        PUBLISH --------------> |                  routed | sent
    ///                        <---------------- PUBREC                   received
    ///                        PUBREL ---------------> |                  released
    ///                        <--------------- PUBCOMP                   completed
    ///                        <------------------------------- CONNECT   at any line above
    ///                        what is not done goes on --------------->
    /// ```
    @Test(
        "[MQTT-4.4.0-1] outbound QoS 2 continues at its step on the next connection, delivered once",
        arguments: OutboundStep.allCases, RaceEnd.allCases)
    func outboundExchange(step: OutboundStep, end: RaceEnd) throws {
        for completion in RaceCompletion.allCases {
            let link = ShardLink(isImmediate: false)
            let first = try link.subscriber("phone", to: "a", .exactlyOnce)
            let publisher = try link.connect("publisher")
            try link.send(publisher, .publish("a", "x", qos: .exactlyOnce, 9))
            if step.rawValue > OutboundStep.routed.rawValue { link.commitAll() }
            if step.rawValue >= OutboundStep.received.rawValue {
                try link.send(first, .pubrec(1))
            }
            if step.rawValue >= OutboundStep.released.rawValue { link.commitAll() }
            if step.rawValue >= OutboundStep.completed.rawValue {
                try link.send(first, .pubcomp(1))
            }
            let seen = try link.takePayloads(first)
            if completion == .before { link.commitAll() }
            let late = try link.takePayloads(first)

            let second = try end.replace(link, first)
            completion.complete(link)
            let packets = try link.take(second)
            let context: Comment = "\(step), \(end), \(completion)"
            #expect(packets.first == .connack(.accepted(sessionPresent: true)), context)
            let wasSent = !(seen + late).isEmpty
            let expected: [PacketContent] =
                switch step {
                case .routed, .sent:
                    [.publish("a", "x", qos: .exactlyOnce, 1, isDuplicate: wasSent)]
                case .received, .released: [.pubrel(1)]
                case .completed: []
                }
            #expect(Array(packets.dropFirst()) == expected, context)

            // It continues to the end, and the identifier's exchange is complete.
            if step.rawValue < OutboundStep.received.rawValue {
                try link.send(second, .pubrec(1))
                link.commitAll()
                #expect(try link.take(second) == [.pubrel(1)], context)
            }
            if step != .completed { try link.send(second, .pubcomp(1)) }
            link.commitAll()
            #expect(try link.take(second).isEmpty, context)
            #expect(link.store.positions(of: 1).isEmpty, context)
            let figures = link.shard.figures
            #expect((figures.queued, figures.inFlight) == (0, 0), context)
        }
    }

    /// Steps of an inbound exchange that completed on the first connection.
    enum InboundStep: Int, CaseIterable, Sendable {
        case published, recorded, released, completed
    }

    /// ```
    ///   phone, 1st       broker                                phone, 2nd
    ///     PUBLISH ---------> identifier and message: one commit    published
    ///     <---------- PUBREC                                       recorded
    ///     PUBREL ----------> identifier removed: a commit          released
    ///     <--------- PUBCOMP                                       completed
    ///                        <-------------------------- CONNECT   at any line above
    ///                        CONNACK behind all commits --->
    ///                        <------- PUBLISH DUP, or PUBREL       what the client does not know of
    /// ```
    @Test(
        "[MQTT-4.3.3-2] QoS 2 from a client is routed once, whichever step its connection ended at",
        arguments: InboundStep.allCases, RaceEnd.allCases)
    func inboundExchange(step: InboundStep, end: RaceEnd) throws {
        for completion in RaceCompletion.allCases {
            let link = ShardLink(isImmediate: false)
            let witness = try link.subscriber("witness", to: "a", .exactlyOnce)
            let first = try link.connect("phone", cleanSession: false)
            try link.send(first, .publish("a", "x", qos: .exactlyOnce, 7))
            if step.rawValue >= InboundStep.recorded.rawValue { link.commitAll() }
            if step.rawValue >= InboundStep.released.rawValue {
                try link.send(first, .pubrel(7))
            }
            if step == .completed { link.commitAll() }
            if completion == .before { link.commitAll() }
            let answers = try link.take(first)

            let second = try end.replace(link, first)
            // Pipelined after CONNECT: the steps that this client does not know to be complete.
            let isDone = answers.contains(.pubcomp(7))
            let isRecorded = answers.contains(.pubrec(7)) || step == .released
            if !isDone {
                try link.send(
                    second,
                    isRecorded
                        ? .pubrel(7) : .publish("a", "x", qos: .exactlyOnce, 7, isDuplicate: true))
            }
            completion.complete(link)
            let context: Comment = "\(step), \(end), \(completion)"
            var expected: [PacketContent] = [.connack(.accepted(sessionPresent: true))]
            if !isDone { expected.append(isRecorded ? .pubcomp(7) : .pubrec(7)) }
            #expect(try link.take(second) == expected, context)
            if !isDone, !isRecorded {
                try link.send(second, .pubrel(7))
                link.commitAll()
                #expect(try link.take(second) == [.pubcomp(7)], context)
            }
            #expect(try link.takeAll(witness) == ["x"], context)

            // The identifier is free for a new message.
            try link.send(second, .publish("a", "y", qos: .exactlyOnce, 7))
            link.commitAll()
            #expect(try link.takeAll(witness) == ["y"], context)
        }
    }

    // MARK: Late ends

    /// ```
    ///   phone, 1st     broker                phone, 2nd
    ///                  <-------------- CONNECT
    ///     (fenced)     CONNACK --------------->
    ///     DISCONNECT ->  |  end, data, error, drained: no connection
    ///                  PUBLISH ---------------> unharmed
    /// ```
    @Test("a late end of the old connection harms neither session, will nor counters")
    func lateEnd() throws {
        let link = ShardLink(isImmediate: false)
        let watcher = try link.subscriber("watcher", to: "will", .atMostOnce, cleanSession: true)
        let old = try link.connect("phone", cleanSession: false) {
            $0.will = PacketContent.Will(topic: "will", message: Array("old".utf8))
        }
        try link.send(old, .subscribe("a", .atLeastOnce))
        // SUBACK's commit is still pending when the second CONNECT arrives.
        let new = try link.beginConnect("phone") {
            $0.will = PacketContent.Will(topic: "will", message: Array("new".utf8))
        }
        for _ in 0..<3 {
            link.shard.lost(old, .networkError(code: 104))
            try link.send(old, .disconnect)
            link.shard.drained(old)
            link.lose(old)
            link.commitAll()
        }
        #expect(try link.take(old).isEmpty)
        #expect(try link.take(new) == [.connack(.accepted(sessionPresent: true))])
        try link.send(watcher, .publish("a", "x", qos: .atLeastOnce, 1))
        link.commitAll()
        #expect(try link.take(new).payloads == ["x"])
        #expect(try link.takePayloads(watcher) == ["old"])
        let figures = link.shard.figures
        #expect((figures.connections, figures.connectionsPending, figures.sessions) == (2, 0, 2))
        #expect(link.closeReasons == [.takenOver])
    }

    @Test("of many CONNECTs of one client in one turn the last one stays, whatever is pending")
    func takeOverChain() throws {
        for cleanSession in [false, true] {
            let link = ShardLink(isImmediate: false)
            var handles: [Handle] = []
            for _ in 0..<20 {
                let handle = link.open()
                var connect = PacketContent.Connect(clientID: "phone")
                connect.cleanSession = cleanSession
                let bytes = try PacketContent.connect(connect).encoded()
                _ = bytes.withUnsafeBytes { link.shard.receive(handle, $0) }
                handles.append(handle)
            }
            link.turn()
            link.commitAll()
            #expect(link.closed == Set(handles.dropLast()))
            for handle in handles.dropLast() where !cleanSession {
                #expect(try link.take(handle).isEmpty, "answered before its commit")
            }
            let last = try #require(handles.last)
            #expect(try link.take(last).count == 1)
            let figures = link.shard.figures
            #expect(
                (figures.connections, figures.connectionsPending, figures.sessions) == (1, 0, 1))
        }
    }
}
