import BrokerAPI
import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures

/// A shard with simulated sockets, on the simulation's clock.
final class SimulatedBroker {
    private var shard: Shard
    private let store: SimulatedStore
    private var nextIndex: UInt32 = 0
    /// Input that the shard has not handled.
    private var kept: [Handle: [UInt8]] = [:]
    private var sent: [(Handle, [UInt8])] = []
    private var closed: [Handle] = []

    /// Starts with what is stored.
    init(_ content: StoreModel, at now: Int64, unixMilliseconds: Int64) {
        store = SimulatedStore(content)
        shard = Shard(
            limits: BrokerLimits(), allowsAnonymous: [true], systemTopicInterval: .seconds(3_600),
            store: store, verifiesPasswords: false, seed: 1,
            now: MonotonicTime(milliseconds: UInt64(1_000_000 + now)),
            wallClockMs: unixMilliseconds)
        content.restore(to: &shard)
        shard.finishRestoring()
        run()
    }

    var hasPendingWrites: Bool { store.pendingCount > 0 }

    /// What a kill leaves, after up to `groups` more of what is being written.
    func killed(committing groups: Int) -> StoreModel {
        store.commit(groups)
        return store.committed
    }

    /// The number of the client's stored session, if it has all of `filters`.
    func session(of client: String, with filters: [String]) -> UInt64? {
        store.committed.session(of: client, with: filters)
    }

    /// The highest number that a session has had.
    var lastSession: UInt64 { store.submitted.progress.lastSession }

    var isDrained: Bool { store.pendingCount == 0 && store.committed.isDrained }

    // MARK: Events

    /// Sets the clock for what follows.
    func advance(to now: Int64, unixMilliseconds: Int64) {
        shard.beginTurn(
            at: MonotonicTime(milliseconds: UInt64(1_000_000 + now)), wallClockMs: unixMilliseconds)
    }

    /// Runs a turn, with the timers that are due.
    func turn() { run() }

    func open() -> Handle {
        let handle = Handle(index: nextIndex, generation: nextIndex + 1)
        nextIndex += 1
        shard.open(handle, listener: 0)
        return handle
    }

    func receive(_ handle: Handle, _ bytes: [UInt8]) {
        offer(handle, bytes)
        run()
    }

    func lost(_ handle: Handle) {
        kept[handle] = nil
        shard.lost(handle, .peerClosed)
        run()
    }

    func commit(_ groups: Int) {
        store.commit(groups)
        run()
    }

    func publish(_ publication: Publication, _ reply: @escaping Reply<PublishOutcome>) {
        shard.publish(publication, reply: reply)
        run()
    }

    /// Ends the client's session as another device does that has its name and wants none.
    func endSession(_ client: String) throws {
        let handle = open()
        var connect = PacketContent.Connect(clientID: client)
        connect.cleanSession = true
        receive(handle, try PacketContent.connect(connect).encoded())
        receive(handle, try PacketContent.disconnect.encoded())
    }

    /// What was sent since the last call, in order, and the connections that were closed behind it.
    func takeOutput() -> (sent: [(Handle, [UInt8])], closed: [Handle]) {
        defer { (sent, closed) = ([], []) }
        return (sent, closed)
    }

    // MARK: Turns

    private func offer(_ handle: Handle, _ bytes: [UInt8]) {
        let all = (kept[handle] ?? []) + bytes
        let consumed = all.withUnsafeBytes { shard.receive(handle, $0) }
        kept[handle] = consumed < all.count ? Array(all[consumed...]) : nil
    }

    private func run() {
        while true {
            switch shard.nextStep() {
            case .readOverdue: continue
            case .offerInput(let handle): offer(handle, [])
            case .send(let handle): flush(handle)
            case .carryOut:
                for closing in shard.takeResult().closing {
                    flush(closing.connection)
                    kept[closing.connection] = nil
                    closed.append(closing.connection)
                }
            case .finish:
                guard shard.hasTurnWaiters else { return }
            }
        }
    }

    private func flush(_ handle: Handle) {
        let pool = shard.pool
        let bytes = shard.withOutput(of: handle) { output in
            withUnsafeTemporaryAllocation(of: OutputQueue.Segment.self, capacity: 16) { segments in
                var bytes: [UInt8] = []
                while !output.isEmpty {
                    segments.initialize(repeating: OutputQueue.Segment())
                    guard let base = segments.baseAddress else { return bytes }
                    let count = output.fill(base, capacity: segments.count)
                    var written = 0
                    for segment in segments.prefix(count) {
                        bytes += UnsafeRawBufferPointer(start: segment.base, count: segment.count)
                        written += segment.count
                    }
                    output.consume(written, pool: pool)
                }
                return bytes
            }
        }
        if !bytes.isEmpty { sent.append((handle, bytes)) }
        shard.drained(handle)
    }
}
