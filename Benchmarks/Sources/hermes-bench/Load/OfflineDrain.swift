import MQTTCodec

/// Clients that come back to what waits for them, and leave when they have it all.
///
/// A client has it all when each message of its session has arrived once, every QoS 2 identifier is
/// released, and a PINGREQ sent after that is answered. On a second visit nothing may wait: the
/// PINGREQ leaves with the CONNACK, and whatever arrives is a duplicate.
struct OfflineDrain: ~Copyable {
    let plan: OfflinePlan
    let address: BrokerAddress
    let names: RunNames
    var progress: Progress
    private let isSecondVisit: Bool
    private var opened = 0
    /// Clients that have left with all that they were to get.
    private(set) var finished = 0
    private(set) var delivered: UInt64 = 0
    private(set) var duplicates: UInt64 = 0
    private(set) var outOfOrder: UInt64 = 0
    private(set) var foreign: UInt64 = 0
    /// Sessions that the broker no longer knew.
    private(set) var forgotten: UInt64 = 0
    /// From the first connection to the last message.
    private(set) var lastDelivery = Clock.nanoseconds()
    /// From a client's CONNECT to its first message.
    private(set) var firstDelivery = LatencyHistogram()
    private var ledger: DeliveryLedger
    private var held: HeldIdentifiers
    private var lastArrival = Clock.nanoseconds()

    /// The state of the client of each connection.
    struct Visit {
        var session: Int
        var began: UInt64
        var delivered: UInt64 = 0
        /// QoS 2 messages that the broker has not released.
        var heldCount = 0
        var awaitsPingresp = false
    }
    private var visits: [Visit] = []

    init(
        _ plan: OfflinePlan, _ address: BrokerAddress, _ names: RunNames, _ progress: Progress,
        isSecondVisit: Bool
    ) {
        self.plan = plan
        self.address = address
        self.names = names
        self.progress = progress
        self.isSecondVisit = isSecondVisit
        ledger = DeliveryLedger(streams: plan.sessions)
        held = HeldIdentifiers(subscribers: plan.qos == .exactlyOnce ? plan.returningAtOnce : 0)
    }

    /// Lets all clients come back; returns when each has left, or when nothing arrives any more.
    mutating func run(
        _ sockets: inout ClientSockets, patience: UInt64
    ) throws(BenchFailure) {
        lastArrival = Clock.nanoseconds()
        while finished < plan.sessions || sockets.count > 0 {
            try sockets.turn(atMost: 50_000_000, &self)
            if sockets.now > lastArrival, sockets.now - lastArrival > patience { break }
        }
        progress.clear()
    }

    private var expectedPerSession: UInt64 { isSecondVisit ? 0 : plan.messagesPerSession }

    private mutating func delivered(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32,
        _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        guard case .publish(let publish) = try ClientPackets.decode(frame, bytes) else { return }
        switch publish.delivery {
        case .atMostOnce: break
        case .atLeastOnce(let identifier, _):
            sockets.acknowledge(client, .puback, identifier)
        case .exactlyOnce(let identifier, _):
            sockets.acknowledge(client, .pubrec, identifier)
            // Sent again before its release: the same message, which a receiver ignores.
            guard plan.qos == .exactlyOnce, held.hold(identifier, subscriber: Int(client)) else {
                duplicates += 1
                return
            }
            visits[Int(client)].heldCount += 1
        }
        let session = visits[Int(client)].session
        guard publish.delivery.qos == plan.qos, !publish.retain,
            Int(publish.payload.count) == plan.payloadBytes,
            let stamp = MessageStamp(bytes[publish.payload]), stamp.run == names.run,
            Int(stamp.publisher) == session, stamp.sequence < plan.messagesPerSession
        else {
            foreign += 1
            return
        }
        guard !isSecondVisit else {
            duplicates += 1
            return
        }
        switch ledger.record(stamp.sequence, on: session) {
        case .duplicate:
            duplicates += 1
            return
        case .late: outOfOrder += 1
        case .inOrder: break
        }
        if visits[Int(client)].delivered == 0 {
            firstDelivery.record(sockets.now - min(sockets.now, visits[Int(client)].began))
        }
        visits[Int(client)].delivered += 1
        delivered += 1
        lastDelivery = sockets.now
    }

    /// Asks for the PINGRESP that ends a visit once nothing else is expected.
    private mutating func ping(_ client: UInt32, _ sockets: inout ClientSockets) {
        let visit = visits[Int(client)]
        guard visit.delivered >= expectedPerSession, visit.heldCount == 0, !visit.awaitsPingresp
        else { return }
        visits[Int(client)].awaitsPingresp = true
        sockets.append(client, 2).storeBytes(of: 0x00C0, as: UInt16.self)
    }
}

extension OfflineDrain: PacketHandler {
    mutating func receive(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32,
        _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        lastArrival = sockets.now
        switch frame.type {
        case .publish:
            try delivered(frame, bytes, client, &sockets)
            ping(client, &sockets)
        case .pubrel where plan.qos == .exactlyOnce:
            let identifier = try ClientPackets.identifier(frame, bytes)
            held.release(identifier, subscriber: Int(client))
            sockets.acknowledge(client, .pubcomp, identifier)
            visits[Int(client)].heldCount -= 1
            ping(client, &sockets)
        case .pingresp:
            finished += 1
            sockets.disconnect(client)
        default:
            try ClientPackets.checkAccepted(frame, bytes, client)
            if case .connack(let connack) = try ClientPackets.decode(frame, bytes),
                !connack.sessionPresent
            {
                forgotten += 1
            }
            ping(client, &sockets)
        }
    }

    mutating func closed(
        _ client: UInt32, _ reason: String, _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        throw BenchFailure(
            "the connection of session \(visits[Int(client)].session) ended: \(reason). "
                + "\(finished) of \(plan.sessions) clients had come and gone.")
    }

    mutating func endTurn(_ sockets: inout ClientSockets) throws(BenchFailure) {
        while opened < plan.sessions, sockets.count < plan.returningAtOnce {
            let client = try sockets.open(address)
            let visit = Visit(session: opened, began: sockets.now)
            if Int(client) == visits.count { visits.append(visit) }
            visits[Int(client)] = visit
            sockets.append(
                client,
                ClientPackets.connect(names.clientID("i", opened), cleanSession: false))
            opened += 1
        }
        progress.show(sockets.now, "\(Text.grouped(delivered)) messages delivered")
    }
}
