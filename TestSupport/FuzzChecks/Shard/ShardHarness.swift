import BrokerAPI
import BrokerCore
import BrokerFeatures
import HermesTesting
import MQTTCodec
import Store
import Structures
import Synchronization

/// A shard with simulated sockets, driven by turns as `BrokerLoop` does.
///
/// Unlike ``ShardLink`` in `BrokerTesting` it reuses the index of a closed connection at once, has
/// peers that read slowly or not at all, and puts several events into one turn.
final class ShardHarness {
    var shard: Shard
    let store = DelayedStore()
    private(set) var peers: [Handle: Peer] = [:]
    private(set) var authentications: [AuthenticationRequest] = []
    /// The notices of the last turn.
    private(set) var notices: [BrokerNotice] = []
    /// Handles of closed connections.
    private(set) var stale: [Handle] = []
    private var freeIndices: [UInt32] = []
    private var nextIndex: UInt32 = 0
    private var generation: UInt32 = 0
    /// Called with all bytes that a peer reads.
    var received: (Peer, [UInt8]) -> Void = { _, _ in }

    init(_ setup: ShardSetup, seed: UInt64) {
        store.isImmediate = setup.isImmediate
        shard = Shard(
            limits: setup.settings, allowsAnonymous: [true],
            systemTopicInterval: setup.systemTopicInterval, store: store,
            verifiesPasswords: setup.verifiesPasswords, seed: seed,
            now: MonotonicTime(milliseconds: 1_000_000), wallClockMs: 1_700_000_000_000)
        shard.reportsLifecycle = true
    }

    var now: MonotonicTime { shard.now }

    // MARK: Sockets

    func open() -> Peer {
        generation += 1
        let index: UInt32
        if let free = freeIndices.popLast() {
            index = free
        } else {
            index = nextIndex
            nextIndex += 1
        }
        let peer = Peer(Handle(index: index, generation: generation), openedAt: now)
        peers[peer.handle] = peer
        shard.open(peer.handle, listener: 0)
        return peer
    }

    /// Bytes arrive at the broker's socket; they are read unless the shard holds input back.
    func deliver(_ peer: Peer, _ bytes: [UInt8]) {
        peer.kept += bytes
        read(peer)
    }

    /// The peer closes the connection and reads nothing more.
    func lose(_ peer: Peer) {
        peer.isGone = true
        if peer.isClosed {
            drop(peer)
        } else {
            shard.lost(peer.handle, .peerClosed)
        }
    }

    private func read(_ peer: Peer) {
        guard !peer.isClosed, !peer.kept.isEmpty, !shard.holdsInput(peer.handle) else { return }
        let framing = try? PacketDecoder.frame(peer.kept.span.bytes, at: 0, maximumSize: .max)
        let consumed = peer.kept.withUnsafeBytes { shard.receive(peer.handle, $0) }
        peer.kept.removeFirst(consumed)
        // Bytes dropped at the end of a connection do not count for the keep alive.
        if consumed > 0, case .frame? = framing { peer.heardAt = now }
    }

    // MARK: Turns

    func advance(milliseconds: UInt64) {
        shard.beginTurn(
            at: shard.now.advanced(byMilliseconds: milliseconds),
            wallClockMs: shard.wallClockMs + Int64(milliseconds))
    }

    func turn() {
        noteHeld()
        takeSteps()
        noteHeld()
    }

    private func takeSteps() {
        notices = []
        while true {
            switch shard.nextStep() {
            case .readOverdue(let handle), .offerInput(let handle):
                if let peer = peers[handle] { read(peer) }
            case .send(let handle):
                if let peer = peers[handle] { write(peer, atMost: Self.mostSentAtOnce) }
            case .carryOut:
                let result = shard.takeResult()
                authentications += result.authentications
                notices = result.notices
                for closing in result.closing { close(closing) }
            case .finish: return
            }
        }
    }

    private func noteHeld() {
        for peer in peers.values where !peer.isClosed && shard.holdsInput(peer.handle) {
            peer.heardAt = now
        }
    }

    /// Answers one waiting password check.
    func decide(_ choice: Int, _ refusal: Connack.ReturnCode?) {
        guard !authentications.isEmpty else { return }
        let request = authentications.remove(at: choice % authentications.count)
        shard.authenticated(
            request.connection, refusal == nil ? .rightPassword : .wrongPassword)
    }

    private func close(_ closing: Closing) {
        guard let peer = peers[closing.connection] else { return }
        peer.isClosed = true
        guard closing.afterOutput, !peer.isGone else {
            drop(peer)
            return
        }
        write(peer)
        // A slow peer gets its last bytes and is dropped with the rest.
        drop(peer)
    }

    /// Bytes that a turn sends of one connection before those of the next. The broker's own bound
    /// (``Shard/mostSentAtOnce``) is more than an input's messages fill, and this one ends inside most
    /// packets.
    private static let mostSentAtOnce = 61

    /// The peer reads as much of the output as its limit allows, at most so many bytes.
    func write(_ peer: Peer, atMost most: Int = .max) {
        guard !peer.isGone else { return }
        let pool = shard.pool
        var isPart = false
        let (bytes, isEmpty) = shard.withOutput(of: peer.handle) { output -> ([UInt8], Bool) in
            var bytes: [UInt8] = []
            var segment = OutputQueue.Segment()
            while !output.isEmpty, peer.readLimit ?? 1 > 0 {
                guard bytes.count < most else {
                    isPart = true
                    break
                }
                guard output.fill(&segment, capacity: 1) == 1 else { break }
                let taken = min(
                    segment.count, peer.readLimit ?? segment.count, most - bytes.count)
                bytes.append(
                    contentsOf: UnsafeRawBufferPointer(start: segment.base, count: taken))
                output.consume(taken, pool: pool)
                if let limit = peer.readLimit { peer.readLimit = limit - taken }
            }
            return (bytes, output.isEmpty)
        }
        if !bytes.isEmpty { received(peer, bytes) }
        if isEmpty {
            shard.drained(peer.handle)
        } else if isPart {
            shard.sentPart(peer.handle)
        }
    }

    private func drop(_ peer: Peer) {
        shard.discardOutput(peer.handle)
        peers[peer.handle] = nil
        freeIndices.append(peer.handle.index)
        if stale.count == 8 { stale.removeFirst() }
        stale.append(peer.handle)
    }

    // MARK: Questions

    var status: BrokerStatus { BrokerStatus(shard.figures) }

    /// Every session, by pages.
    func clients() -> [ClientSummary] {
        var clients: [ClientSummary] = []
        var query = ClientQuery(limit: 3)
        while true {
            let answer = Mutex<ClientPage?>(nil)
            shard.listClients(query) { page in answer.withLock { $0 = try? page.get() } }
            shard.continueListings(address: { "\($0.index)" }, peer: { _ in .unknown })
            // So few sessions need one step.
            guard let page = answer.withLock({ $0 }) else {
                preconditionFailure("a list of clients without an answer")
            }
            clients += page.clients
            guard let next = page.next else { return clients }
            query.cursor = next
        }
    }
}
