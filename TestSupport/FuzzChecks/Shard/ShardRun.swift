import BrokerCore
import BrokerFeatures
import BrokerAPI
import HermesTesting
import MQTTCodec
import Structures

/// Runs a program and compares the shard's behaviour with the model.
final class ShardRun {
    /// Fixed, so that hashes are the same in every run.
    static let seed: UInt64 = 1

    let setup: ShardSetup
    let harness: ShardHarness
    let trace: ((String) -> Void)?
    var store: StoreView
    var step = 0
    var isShutDown = false
    /// Connections whose end has not been reported.
    var connections: [Handle: Peer] = [:]
    /// The connection of each slot; `nil` when free.
    var slots: [Peer?] = [nil, nil, nil, nil]
    var publications: [NumberedMessage] = []
    /// By client identifier.
    var sessions: [[UInt8]: SessionModel] = [:]
    /// Client identifiers that have ever had a persistent session.
    var everPersistent: Set<[UInt8]> = []
    /// All topics under which messages may have been routed.
    var topics: Set<[UInt8]> = []
    /// By client identifier: all packet identifiers to which it ever sent PUBREC.
    var everReceived: [[UInt8]: Set<PacketIdentifier>] = [:]
    /// All filters that clients have subscribed to.
    var filters: Set<[UInt8]> = []
    let replies = PublishReplies()
    /// Further steps in the current turn.
    private var batched = 0
    /// Found while the shard was writing; thrown after the turn.
    private var failure: CheckFailure?

    init(_ setup: ShardSetup, _ trace: ((String) -> Void)?) {
        self.setup = setup
        self.trace = trace
        harness = ShardHarness(setup, seed: Self.seed)
        store = StoreView(harness.store)
        trace?(setup.description)
        harness.received = { [unowned self] peer, bytes in
            guard failure == nil else { return }
            do throws(CheckFailure) { try receive(peer, bytes) } catch { failure = error }
        }
    }

    func perform(_ next: ShardStep) throws(CheckFailure) {
        step += 1
        trace?("\(step). \(next)")
        try carryOut(next)
        if batched > 0 {
            batched -= 1
        } else {
            try turn()
        }
    }

    /// Ends the broker's turn and checks its results.
    func turn() throws(CheckFailure) {
        harness.turn()
        if let failure { throw failure }
        store.update()
        for notice in harness.notices { try note(notice) }
        try noteReplies()
        for index in slots.indices {
            if let peer = slots[index], peer.isClosed { slots[index] = nil }
        }
        noteRetainedServed()
        try checkConnections()
        try checkFigures()
    }

    private func carryOut(_ next: ShardStep) throws(CheckFailure) {
        switch next {
        case .open(let slot): _ = openIfFree(slot)
        case .connect(let slot, let connect): try send(slot, connect)
        case .publish(let slot, let publish): try send(slot, publish)
        case .respond(let slot, let count, let fromNewest):
            try respond(slot, count, fromNewest: fromNewest)
        case .acknowledge(let slot, let packet):
            slots[slot]?.acknowledgesFreely = true
            try send(slot, packet)
        case .subscribe(let slot, let identifier, let requests):
            try send(slot, .subscribe(identifier, requests))
        case .unsubscribe(let slot, let identifier, let filters):
            try send(slot, .unsubscribe(identifier, filters))
        case .ping(let slot): try send(slot, .pingreq)
        case .disconnect(let slot): try send(slot, .disconnect)
        case .raw(let slot, let bytes):
            slots[slot]?.acknowledgesFreely = true
            try deliver(slot, bytes)
        case .fragment(let slot, let count): slots[slot]?.fragmentSize = count
        case .lose(let slot): lose(slot)
        case .read(let slot, let limit): read(slot, limit)
        case .advance(let milliseconds): harness.advance(milliseconds: milliseconds)
        case .complete(let choice):
            let pending = harness.store.pending
            guard !pending.isEmpty else { return }
            let chosen = choice % pending.count
            for ticket in setup.completesInOrder ? pending[...chosen] : pending[chosen...chosen] {
                harness.store.complete(ticket)
            }
        case .completeAll: harness.store.completeAll()
        case .holdReads(let isHeld): harness.store.holdsReads = isHeld
        case .refuse(let isRefusing): harness.store.isAccepting = !isRefusing
        case .publishByOperator(let publish): publishByOperator(publish)
        case .query(let choice): query(choice)
        case .kick(let clientID):
            _ = harness.shard.disconnect(String(decoding: clientID, as: UTF8.self))
        case .stale(let choice, let event): raise(event, choice)
        case .verdict(let choice, let refusal): harness.decide(choice, refusal)
        case .batch(let count): batched = count
        case .shutDown:
            isShutDown = true
            harness.shard.shutDown()
            harness.shard.abandonReplies()
        }
    }

    // MARK: Peers

    func openIfFree(_ slot: Int) -> Peer {
        if let peer = slots[slot] { return peer }
        let peer = harness.open()
        connections[peer.handle] = peer
        slots[slot] = peer
        return peer
    }

    private func send(_ slot: Int, _ connect: ShardStep.Connect) throws(CheckFailure) {
        let peer = openIfFree(slot)
        var packet = PacketContent.Connect(clientID: "")
        packet.clientID = connect.clientID
        packet.version = connect.version
        packet.cleanSession = connect.cleanSession
        packet.keepAlive = connect.keepAlive
        packet.userName = connect.userName
        if let will = connect.will {
            let serial = register(
                .will(peer.handle), will.topic, qos: will.qos, retain: will.retain)
            packet.will = PacketContent.Will(
                topic: "", message: NumberedMessage.payload(serial, size: 0), qos: will.qos,
                retain: will.retain)
            packet.will?.topic = will.topic
        }
        try send(slot, .connect(packet))
    }

    private func send(_ slot: Int, _ publish: ShardStep.Publish) throws(CheckFailure) {
        guard let peer = slots[slot] else { return }
        let delivery: Delivery =
            switch publish.qos {
            case .atMostOnce: .atMostOnce
            case .atLeastOnce:
                .atLeastOnce(publish.identifier, isDuplicate: publish.isDuplicate)
            case .exactlyOnce:
                .exactlyOnce(publish.identifier, isDuplicate: publish.isDuplicate)
            }
        var packet = PacketContent.Publish(delivery, topic: "", retain: publish.retain)
        packet.topic = publish.topic
        if let size = publish.payloadSize {
            let serial = register(
                .peer(peer.handle), publish.topic, qos: publish.qos, retain: publish.retain)
            packet.payload = NumberedMessage.payload(serial, size: size)
        }
        try send(slot, .publish(packet))
    }

    /// Sends a packet after the rest of a fragment; as a fragment itself if asked.
    func send(_ slot: Int, _ packet: PacketContent) throws(CheckFailure) {
        guard let peer = slots[slot] else { return }
        guard let encoded = try? packet.encoded() else {
            throw CheckFailure("\(packet) could not be encoded")
        }
        var bytes = peer.fragment + encoded
        peer.fragment = []
        if let size = peer.fragmentSize {
            peer.fragmentSize = nil
            peer.fragment = [UInt8](bytes.dropFirst(size))
            bytes = [UInt8](bytes.prefix(size))
        }
        try deliver(slot, bytes)
    }

    private func deliver(_ slot: Int, _ bytes: [UInt8]) throws(CheckFailure) {
        guard let peer = slots[slot], !peer.isClosed, !peer.isGone else { return }
        noteSent(peer, bytes)
        harness.deliver(peer, bytes)
        if let failure { throw failure }
    }

    func respond(_ slot: Int, _ count: Int, fromNewest: Bool) throws(CheckFailure) {
        guard let peer = slots[slot] else { return }
        for _ in 0..<count {
            guard !peer.answers.isEmpty else { return }
            let answer = fromNewest ? peer.answers.removeLast() : peer.answers.removeFirst()
            try send(slot, answer)
        }
    }

    private func lose(_ slot: Int) {
        guard let peer = slots[slot] else { return }
        harness.lose(peer)
        slots[slot] = nil
    }

    private func read(_ slot: Int, _ limit: Int?) {
        guard let peer = slots[slot], !peer.isClosed else { return }
        peer.readLimit = limit
        harness.write(peer)
    }

    private func raise(_ event: ShardStep.Stale, _ choice: Int) {
        guard !harness.stale.isEmpty else { return }
        let handle = harness.stale[choice % harness.stale.count]
        switch event {
        case .lost: harness.shard.lost(handle, .peerClosed)
        case .drained: harness.shard.drained(handle)
        case .receive:
            _ = [UInt8]([0xC0, 0x00]).withUnsafeBytes { harness.shard.receive(handle, $0) }
        case .authenticated: harness.shard.authenticated(handle, .rightPassword)
        }
    }

    // MARK: The operator

    func publishByOperator(_ publish: ShardStep.Publish) {
        // The admin plane refuses it.
        guard !ShardVocabulary.isReserved(publish.topic) else { return }
        var payload: [UInt8] = []
        var serial: Int?
        if let size = publish.payloadSize {
            // The admin plane rejects payloads too large for any packet.
            let size = min(size, setup.settings.maxPacketBytes - publish.topic.count - 20)
            let number = register(
                .administrator, publish.topic, qos: publish.qos, retain: publish.retain)
            publications[number].isSent = true
            payload = NumberedMessage.payload(number, size: size)
            serial = number
        }
        topics.insert(publish.topic)
        let reply = replies.expect(serial)
        var publication = Publication(
            topic: publish.topic, payload: payload, qos: publish.qos, retain: publish.retain,
            expiresAtMs: publish.isDuplicate ? harness.shard.wallClockMs + 60_000 : nil,
            sequence: publish.identifier == 1
                ? SequenceStamp(channel: publish.topic, tag: 0x08) : nil)
        publication.messageID = Array(publish.topic.prefix(300))
        harness.shard.publish(publication, reply: reply)
    }

    private func query(_ choice: Int) {
        let identifier = ShardVocabulary.clients[choice % ShardVocabulary.clients.count]
        _ = harness.shard.client(String(decoding: identifier, as: UTF8.self)) { "\($0.index)" }
    }

    func register(
        _ origin: NumberedMessage.Origin, _ topic: [UInt8], qos: QoS, retain: Bool
    ) -> Int {
        publications.append(
            NumberedMessage(origin: origin, topic: topic, qos: qos, retain: retain, step: step))
        return publications.count - 1
    }
}
