import MQTTCodec
import Structures

/// Publishers and subscribers that exchange messages by a ``LoadPlan``, as one handler of sockets.
///
/// ```
/// joining ──> warmingUp ──> measuring ──> draining ──> done
///    │                         ▲
///    └── plans that count ─────┘
/// ```
/// Subscribers join first, each once its SUBACK is there, then the publishers. Everything per message
/// lives in flat arrays that are made before the first one is sent.
struct MessageLoad: ~Copyable {
    enum Phase { case joining, warmingUp, measuring, draining, done }

    struct Publisher: BitwiseCopyable {
        var client: UInt32
        /// Messages sent so far, which is also the next sequence.
        var sent: UInt64 = 0
        /// The oldest message in progress; `sent` without any.
        var oldest: UInt64 = 0
        var isListed = false
    }

    /// A message in progress.
    struct Message: BitwiseCopyable {
        enum Stage: UInt8 { case awaitsFirstAcknowledgement, awaitsPubcomp, acknowledged }
        var stage: Stage
        /// Time of sending, or the scheduled time in an open loop; monotonic nanoseconds.
        var time: UInt64
        /// Subscribers that have not seen it.
        var unseen: UInt32
    }

    /// Connections being made at a time: few enough for a broker with a short listen queue.
    private static var mostJoining: Int { 64 }
    /// Messages under way per publisher in an open loop.
    private static var openLoopWindow: Int { 4_096 }
    private static var identifierCount: UInt64 { 65_535 }

    let plan: LoadPlan
    let names: RunNames
    let address: BrokerAddress
    let process: BrokerProcess?
    var progress: Progress
    var phase = Phase.joining

    // Connections are numbered in the order of joining: subscribers, then publishers.
    private var opened = 0
    private var joined = 0

    private let publishers: UnsafeMutablePointer<Publisher>
    /// Publishers whose window may have opened in this turn.
    private var listed = GrowableBuffer<UInt32>()
    private let window: UInt64
    private let ringMask: UInt64
    private let messages: UnsafeMutablePointer<Message>
    private let templates: PublishTemplates
    private var held: HeldIdentifiers
    private var ledger: DeliveryLedger
    private var owed = LateAcknowledgements()

    var counts = LoadCounts()
    /// Until a message reached its subscriber.
    var latency = LatencyHistogram()
    /// Until PUBACK or PUBCOMP reached its publisher.
    var acknowledgementLatency = LatencyHistogram()
    /// Delay of messages against their schedule, in an open loop.
    var lag = LatencyHistogram()
    private var scheduleStart: UInt64 = 0
    private var scheduled: UInt64 = 0
    private var phaseStart: UInt64 = 0
    /// Grows whenever a client joins, or a message arrives or ends.
    private var advances: UInt64 = 0
    private var lastAdvance: UInt64
    private(set) var begin: (mark: CPUMark, counts: LoadCounts)?
    private(set) var end: (mark: CPUMark, counts: LoadCounts)?

    init(
        _ plan: LoadPlan, _ address: BrokerAddress, _ process: BrokerProcess?, _ progress: Progress
    ) {
        self.plan = plan
        self.address = address
        self.process = process
        self.progress = progress
        let names = RunNames()
        self.names = names
        lastAdvance = Clock.nanoseconds()
        ledger = DeliveryLedger(streams: plan.streams)

        let publisherCount = plan.publishers
        publishers = .allocate(capacity: publisherCount)
        let window =
            switch plan.pace {
            case .window(let window): window
            case .rate: Self.openLoopWindow
            }
        self.window = UInt64(window)
        var ring = 1
        while ring < window { ring *= 2 }
        ringMask = UInt64(ring - 1)
        messages = .allocate(capacity: publisherCount * ring)
        messages.initialize(
            repeating: Message(stage: .acknowledged, time: 0, unseen: 0),
            count: publisherCount * ring)

        for publisher in 0..<publisherCount {
            (publishers + publisher).initialize(
                to: Publisher(client: UInt32(plan.subscribers + publisher)))
        }
        templates = PublishTemplates(
            publishers: publisherCount, names: names, payloadBytes: plan.payloadBytes,
            qos: plan.qos)
        held = HeldIdentifiers(subscribers: plan.qos == .exactlyOnce ? plan.subscribers : 0)
    }

    deinit {
        publishers.deallocate()
        messages.deallocate()
    }

    /// The longest time that a turn may wait.
    func longestWait(now: UInt64) -> Int64 {
        var wait: UInt64 = 50_000_000
        if let due = owed.nextDue { wait = min(wait, due > now ? due - now : 0) }
        if case .rate(let rate) = plan.pace, mayPublish {
            let due = scheduleStart + UInt64(Double(scheduled) * 1e9 / rate)
            wait = min(wait, due > now ? due - now : 0)
        }
        return Int64(wait)
    }

    // MARK: Publishing

    private var mayPublish: Bool { phase == .warmingUp || phase == .measuring }

    private mutating func list(_ publisher: Int) {
        guard !publishers[publisher].isListed else { return }
        publishers[publisher].isListed = true
        listed.append(UInt32(publisher))
    }

    private var mostPerPublisher: UInt64 {
        switch plan.extent {
        case .time: .max
        case .messages(let count): count
        }
    }

    /// Fills the windows that have opened.
    private mutating func publishIntoWindows(_ sockets: inout ClientSockets) {
        let most = mostPerPublisher
        while let publisher = listed.popLast() {
            let index = Int(publisher)
            publishers[index].isListed = false
            guard mayPublish else { continue }
            while publishers[index].sent - publishers[index].oldest < window,
                publishers[index].sent < most
            {
                publish(index, time: sockets.now, &sockets)
            }
        }
    }

    /// Publishes all messages that are due, each publisher in turn.
    private mutating func publishOnSchedule(_ rate: Double, _ sockets: inout ClientSockets) {
        let now = Clock.nanoseconds()
        while true {
            let due = scheduleStart + UInt64(Double(scheduled) * 1e9 / rate)
            let index = Int(scheduled % UInt64(plan.publishers))
            // A full window holds the schedule back; its messages keep the time they were due.
            guard due <= now, publishers[index].sent - publishers[index].oldest < window,
                publishers[index].sent < mostPerPublisher
            else { return }
            lag.record(now - due)
            publish(index, time: due, &sockets)
            scheduled += 1
        }
    }

    private mutating func publish(_ index: Int, time: UInt64, _ sockets: inout ClientSockets) {
        let sequence = publishers[index].sent
        templates.write(
            publisher: index, sequence: sequence, position: sequence, time: time,
            to: sockets.append(publishers[index].client, templates.packetBytes))
        message(index, sequence).initialize(
            to: Message(
                stage: plan.qos == .atMostOnce ? .acknowledged : .awaitsFirstAcknowledgement,
                time: time, unseen: UInt32(plan.receiversPerMessage)))
        publishers[index].sent = sequence + 1
        counts.published += 1
    }

    private func message(_ publisher: Int, _ sequence: UInt64) -> UnsafeMutablePointer<Message> {
        messages + publisher * Int(ringMask + 1) + Int(sequence & ringMask)
    }

    /// Steps over the messages that are acknowledged and seen by all.
    private mutating func retire(_ publisher: Int) {
        var oldest = publishers[publisher].oldest
        let sent = publishers[publisher].sent
        while oldest < sent {
            let message = message(publisher, oldest).pointee
            guard message.unseen == 0, message.stage == .acknowledged else { break }
            oldest += 1
            counts.finished += 1
        }
        guard oldest != publishers[publisher].oldest else { return }
        publishers[publisher].oldest = oldest
        list(publisher)
    }

    // MARK: Acknowledgements to publishers

    private mutating func acknowledged(
        _ publisher: Int, _ type: PacketType, _ identifier: PacketIdentifier,
        _ sockets: inout ClientSockets
    ) {
        let oldest = publishers[publisher].oldest
        let ahead =
            (UInt64(identifier.rawValue - 1) + Self.identifierCount - oldest % Self.identifierCount)
            % Self.identifierCount
        guard oldest + ahead < publishers[publisher].sent else {
            counts.strayAcknowledgements += 1
            return
        }
        let message = message(publisher, oldest + ahead)
        switch (type, message.pointee.stage) {
        case (.puback, .awaitsFirstAcknowledgement) where plan.qos == .atLeastOnce,
            (.pubcomp, .awaitsPubcomp):
            message.pointee.stage = .acknowledged
            acknowledgementLatency.record(
                sockets.now > message.pointee.time ? sockets.now - message.pointee.time : 0)
            retire(publisher)
        case (.pubrec, .awaitsFirstAcknowledgement) where plan.qos == .exactlyOnce,
            (.pubrec, .awaitsPubcomp):
            message.pointee.stage = .awaitsPubcomp
            sockets.acknowledge(publishers[publisher].client, .pubrel, identifier)
        default:
            counts.strayAcknowledgements += 1
        }
    }

    // MARK: Messages to subscribers

    private mutating func delivered(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32,
        _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        guard case .publish(let publish) = try ClientPackets.decode(frame, bytes) else { return }
        switch publish.delivery {
        case .atMostOnce: break
        case .atLeastOnce(let identifier, _):
            answer(client, .puback, identifier, &sockets)
        case .exactlyOnce(let identifier, _):
            answer(client, .pubrec, identifier, &sockets)
            // Sent again before its release: the same message, which a receiver ignores.
            guard plan.qos == .exactlyOnce, held.hold(identifier, subscriber: Int(client)) else {
                counts.duplicates += 1
                return
            }
        }
        guard publish.delivery.qos == plan.qos, !publish.retain,
            Int(publish.payload.count) == plan.payloadBytes,
            let stamp = MessageStamp(bytes[publish.payload]), stamp.run == names.run,
            let stream = plan.stream(publisher: Int(stamp.publisher), subscriber: Int(client))
        else {
            counts.foreign += 1
            return
        }
        let publisher = Int(stamp.publisher)
        guard stamp.sequence < publishers[publisher].sent else {
            counts.foreign += 1
            return
        }
        switch ledger.record(stamp.sequence, on: stream) {
        case .duplicate:
            counts.duplicates += 1
            return
        case .late:
            // Its window was given back when it was passed over.
            counts.outOfOrder += 1
            counts.delivered += 1
        case .inOrder(let skipped):
            counts.delivered += 1
            // A skipped message counts as received, since at QoS 0 nothing else would open the
            // window.
            for sequence in stamp.sequence - skipped...stamp.sequence {
                message(publisher, sequence).pointee.unseen -= 1
            }
            retire(publisher)
        }
        latency.record(sockets.now > stamp.time ? sockets.now - stamp.time : 0)
    }

    /// Acknowledges a PUBLISH at once, or after the plan's delay.
    private mutating func answer(
        _ client: UInt32, _ type: PacketType, _ identifier: PacketIdentifier,
        _ sockets: inout ClientSockets
    ) {
        guard plan.acknowledgeAfter > 0 else {
            sockets.acknowledge(client, type, identifier)
            return
        }
        owed.append(
            LateAcknowledgements.Entry(
                due: sockets.now + plan.acknowledgeAfter, client: client, type: type,
                identifier: identifier))
    }
}

extension MessageLoad: PacketHandler {
    mutating func receive(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32,
        _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        let isSubscriber = Int(client) < plan.subscribers
        switch frame.type {
        case .publish where isSubscriber:
            try delivered(frame, bytes, client, &sockets)
        case .pubrel where isSubscriber && plan.qos == .exactlyOnce:
            let identifier = try ClientPackets.identifier(frame, bytes)
            held.release(identifier, subscriber: Int(client))
            sockets.acknowledge(client, .pubcomp, identifier)
        case .puback where !isSubscriber, .pubrec where !isSubscriber,
            .pubcomp where !isSubscriber:
            acknowledged(
                Int(client) - plan.subscribers, frame.type,
                try ClientPackets.identifier(frame, bytes), &sockets)
        case .connack:
            try ClientPackets.checkAccepted(frame, bytes, client)
            if isSubscriber {
                sockets.append(client, ClientPackets.subscribe(filter(of: Int(client)), plan.qos))
            } else {
                joined += 1
            }
        case .suback where isSubscriber:
            try ClientPackets.checkGranted(plan.qos, frame, bytes, client)
            joined += 1
        default:
            throw BenchFailure("client \(client) got \(frame.type), which it did not ask for")
        }
    }

    mutating func closed(
        _ client: UInt32, _ reason: String, _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        let role = Int(client) < plan.subscribers ? "subscriber" : "publisher"
        throw BenchFailure(
            "the connection of \(role) \(client) ended: \(reason). \(counts.summary)")
    }

    mutating func endTurn(_ sockets: inout ClientSockets) throws(BenchFailure) {
        switch phase {
        case .joining: try join(&sockets)
        case .warmingUp, .measuring:
            switch plan.pace {
            case .window: publishIntoWindows(&sockets)
            case .rate(let rate):
                listed.removeAll()
                publishOnSchedule(rate, &sockets)
            }
        case .draining, .done: break
        }
        while let late = owed.removeNext(dueBy: sockets.now) {
            sockets.acknowledge(late.client, late.type, late.identifier)
        }
        try advance(sockets.now)
        progress.show(sockets.now, counts, process)
    }

    private func filter(of subscriber: Int) -> [UInt8] {
        switch plan.shape {
        case .pairs: names.topic(subscriber)
        case .fanOut: names.topic(0)
        case .fanIn: names.everyTopic
        }
    }

    /// Opens connections, few at a time: all subscribers before the first publisher.
    private mutating func join(_ sockets: inout ClientSockets) throws(BenchFailure) {
        let last =
            joined < plan.subscribers ? plan.subscribers : plan.subscribers + plan.publishers
        while opened < last, opened - joined < Self.mostJoining {
            let client = try sockets.open(address)
            precondition(Int(client) == opened, "connection \(opened) is numbered \(client)")
            let isSubscriber = opened < plan.subscribers
            sockets.append(
                client,
                ClientPackets.connect(
                    isSubscriber
                        ? names.clientID("s", opened)
                        : names.clientID("p", opened - plan.subscribers),
                    cleanSession: !(isSubscriber && plan.subscribersPersist)))
            opened += 1
        }
    }

    private mutating func advance(_ now: UInt64) throws(BenchFailure) {
        switch phase {
        case .joining where joined == plan.subscribers + plan.publishers:
            scheduleStart = now
            phaseStart = now
            for publisher in 0..<plan.publishers { list(publisher) }
            if case .time = plan.extent { phase = .warmingUp } else { try startMeasuring(now) }
        case .warmingUp:
            if case .time(let warmUp, _) = plan.extent, now - phaseStart >= warmUp {
                try startMeasuring(now)
            }
        case .measuring:
            switch plan.extent {
            case .time(_, let measured):
                guard now - phaseStart >= measured else { break }
                end = (try CPUMark(process), counts)
                phase = .draining
                phaseStart = now
            case .messages(let perPublisher):
                guard counts.published == perPublisher * UInt64(plan.publishers) else { break }
                phase = .draining
                phaseStart = now
            }
        case .draining where counts.finished == counts.published && owed.isEmpty:
            try finish()
        case .joining, .draining, .done: break
        }
        try checkAdvance(now)
    }

    /// Ends a run in which nothing has moved for too long.
    private mutating func checkAdvance(_ now: UInt64) throws(BenchFailure) {
        let advances = UInt64(joined) + counts.delivered + counts.finished
        // In an open loop at a low rate, nothing is owed while nothing is under way.
        let isIdle = counts.finished == counts.published && phase != .joining
        if advances != self.advances || isIdle {
            self.advances = advances
            lastAdvance = now
        }
        guard phase != .done, now > lastAdvance, now - lastAdvance > plan.patience else { return }
        let waited = Text.fixed(Double(plan.patience) / 1e9, digits: 0)
        switch phase {
        case .joining:
            throw BenchFailure(
                "\(joined) of \(plan.subscribers + plan.publishers) clients are connected, "
                    + "and nothing new arrived for \(waited) s.")
        case .warmingUp, .measuring:
            throw BenchFailure("nothing new arrived for \(waited) s. \(counts.summary)")
        case .draining, .done:
            // Messages that have not arrived by now are lost.
            try finish()
        }
    }

    private mutating func startMeasuring(_ now: UInt64) throws(BenchFailure) {
        phase = .measuring
        phaseStart = now
        latency.removeAll()
        acknowledgementLatency.removeAll()
        lag.removeAll()
        begin = (try CPUMark(process), counts)
    }

    private mutating func finish() throws(BenchFailure) {
        phase = .done
        if end == nil { end = (try CPUMark(process), counts) }
    }
}
