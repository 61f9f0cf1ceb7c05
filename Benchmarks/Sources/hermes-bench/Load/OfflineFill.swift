import MQTTCodec
import Structures

/// Publishes an ``OfflinePlan``'s messages, each publisher as fast as its window allows.
struct OfflineFill: ~Copyable {
    struct Publisher: BitwiseCopyable {
        /// Messages sent so far, which is also the next position.
        var sent: UInt64 = 0
        /// The oldest position that is not acknowledged; `sent` when there is none.
        var oldest: UInt64 = 0
    }

    /// A message that is under way.
    struct Message: BitwiseCopyable {
        enum Stage: UInt8 { case awaitsFirstAcknowledgement, awaitsPubcomp, acknowledged }
        var stage = Stage.acknowledged
        /// When it was sent; monotonic nanoseconds.
        var time: UInt64 = 0
    }

    private static var identifierCount: UInt64 { 65_535 }

    let plan: OfflinePlan
    let address: BrokerAddress
    let names: RunNames
    var progress: Progress
    private let templates: PublishTemplates
    private let publishers: UnsafeMutablePointer<Publisher>
    private let ring: Int
    private let messages: UnsafeMutablePointer<Message>
    private var opened = 0
    private var joined = 0
    /// Of all publishers.
    private(set) var sent: UInt64 = 0
    private(set) var acknowledged: UInt64 = 0
    private(set) var strayAcknowledgements: UInt64 = 0
    /// From PUBLISH to PUBACK or PUBCOMP.
    private(set) var latency = LatencyHistogram()
    private var lastArrival = Clock.nanoseconds()
    private var isLeaving = false

    init(
        _ plan: OfflinePlan, _ address: BrokerAddress, _ names: RunNames, _ progress: Progress
    ) {
        self.plan = plan
        self.address = address
        self.names = names
        self.progress = progress
        templates = PublishTemplates(
            publishers: plan.sessions, names: names, payloadBytes: plan.payloadBytes, qos: plan.qos)
        publishers = .allocate(capacity: plan.publishers)
        publishers.initialize(repeating: Publisher(), count: plan.publishers)
        var ring = 1
        while ring < plan.window { ring *= 2 }
        self.ring = ring
        messages = .allocate(capacity: plan.publishers * ring)
        messages.initialize(repeating: Message(), count: plan.publishers * ring)
    }

    deinit {
        publishers.deallocate()
        messages.deallocate()
    }

    /// Connects the publishers; nothing is published before ``run(_:patience:)``.
    mutating func join(
        _ sockets: inout ClientSockets, patience: UInt64
    ) throws(BenchFailure) {
        while joined < plan.publishers {
            try sockets.turn(atMost: 50_000_000, &self)
            try checkPatience(sockets.now, patience, "\(joined) publishers connected")
        }
    }

    /// Publishes everything and returns when the last acknowledgement is there.
    mutating func run(
        _ sockets: inout ClientSockets, patience: UInt64
    ) throws(BenchFailure) {
        lastArrival = Clock.nanoseconds()
        for publisher in 0..<plan.publishers { publish(publisher, &sockets) }
        while acknowledged < plan.messages {
            try sockets.turn(atMost: 50_000_000, &self)
            try checkPatience(
                sockets.now, patience,
                "\(Text.grouped(acknowledged)) of \(Text.grouped(plan.messages)) messages are "
                    + "acknowledged")
        }
        progress.clear()
    }

    /// Ends the connections.
    mutating func leave(
        _ sockets: inout ClientSockets, patience: UInt64
    ) throws(BenchFailure) {
        isLeaving = true
        sockets.disconnectAll()
        lastArrival = Clock.nanoseconds()
        while sockets.count > 0, sockets.now < lastArrival + patience {
            try sockets.turn(atMost: 50_000_000, &self)
        }
    }

    private func checkPatience(
        _ now: UInt64, _ patience: UInt64, _ state: @autoclosure () -> String
    ) throws(BenchFailure) {
        guard now > lastArrival, now - lastArrival > patience else { return }
        throw BenchFailure("\(state()), and nothing more arrives.")
    }

    private func message(_ publisher: Int, _ position: UInt64) -> UnsafeMutablePointer<Message> {
        messages + publisher * ring + Int(position & UInt64(ring - 1))
    }

    private mutating func publish(_ publisher: Int, _ sockets: inout ClientSockets) {
        let most = plan.messages(of: publisher)
        while publishers[publisher].sent < most,
            publishers[publisher].sent - publishers[publisher].oldest < UInt64(plan.window)
        {
            let position = publishers[publisher].sent
            let (session, sequence) = plan.destination(publisher: publisher, position: position)
            templates.write(
                publisher: session, sequence: sequence, position: position, time: sockets.now,
                to: sockets.append(UInt32(publisher), templates.packetBytes))
            message(publisher, position).pointee = Message(
                stage: .awaitsFirstAcknowledgement, time: sockets.now)
            publishers[publisher].sent = position + 1
            sent += 1
        }
    }

    private mutating func acknowledged(
        _ publisher: Int, _ type: PacketType, _ identifier: PacketIdentifier,
        _ sockets: inout ClientSockets
    ) {
        let oldest = publishers[publisher].oldest
        let ahead =
            (UInt64(identifier.rawValue - 1) + Self.identifierCount - oldest % Self.identifierCount)
            % Self.identifierCount
        guard oldest + ahead < publishers[publisher].sent else {
            strayAcknowledgements += 1
            return
        }
        let message = message(publisher, oldest + ahead)
        switch (type, message.pointee.stage) {
        case (.puback, .awaitsFirstAcknowledgement) where plan.qos == .atLeastOnce,
            (.pubcomp, .awaitsPubcomp):
            message.pointee.stage = .acknowledged
            latency.record(sockets.now - min(sockets.now, message.pointee.time))
            acknowledged += 1
            retire(publisher)
            publish(publisher, &sockets)
        case (.pubrec, .awaitsFirstAcknowledgement) where plan.qos == .exactlyOnce:
            message.pointee.stage = .awaitsPubcomp
            sockets.acknowledge(UInt32(publisher), .pubrel, identifier)
        default:
            strayAcknowledgements += 1
        }
    }

    /// Steps over the oldest messages that are acknowledged.
    private mutating func retire(_ publisher: Int) {
        while publishers[publisher].oldest < publishers[publisher].sent,
            message(publisher, publishers[publisher].oldest).pointee.stage == .acknowledged
        {
            publishers[publisher].oldest += 1
        }
    }
}

extension OfflineFill: PacketHandler {
    mutating func receive(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32,
        _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        lastArrival = sockets.now
        switch frame.type {
        case .puback, .pubrec, .pubcomp:
            acknowledged(
                Int(client), frame.type, try ClientPackets.identifier(frame, bytes), &sockets)
        default:
            try ClientPackets.checkAccepted(frame, bytes, client)
            joined += 1
        }
    }

    mutating func closed(
        _ client: UInt32, _ reason: String, _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        guard !isLeaving else { return }
        throw BenchFailure(
            "the connection of publisher \(client) ended: \(reason). "
                + "\(Text.grouped(acknowledged)) of \(Text.grouped(sent)) messages had been "
                + "acknowledged.")
    }

    mutating func endTurn(_ sockets: inout ClientSockets) throws(BenchFailure) {
        while !isLeaving, opened < plan.publishers {
            let client = try sockets.open(address)
            precondition(Int(client) == opened, "connection \(opened) is numbered \(client)")
            sockets.append(
                client,
                ClientPackets.connect(names.clientID("p", opened), cleanSession: true))
            opened += 1
        }
        progress.show(sockets.now, "\(Text.grouped(acknowledged)) messages acknowledged")
    }
}
