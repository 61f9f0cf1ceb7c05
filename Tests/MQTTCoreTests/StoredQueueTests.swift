import HermesTesting
import MQTTCodec
import Testing

@testable import MQTTCore
@testable import Structures

/// A queue whose end is in a store, and a model of what its receiver must get.
@Suite("Outbound queue with a store behind it")
struct StoredQueueTests {
    @Test("a message in the store comes before those that come later, and takes its position")
    func order() throws {
        let session = StoredSession()
        session.isAttached = true
        session.publish(window: 1)
        session.publish(window: 1)
        session.publish(window: 1)
        #expect(session.queue.stored == 2)
        #expect(session.queue.isStoring)
        #expect(session.queue.end == 3)
        session.pump(limit: 1)
        session.acknowledge(0)
        session.load(10)
        session.pump(limit: 10)
        #expect(session.sent == [0, 1, 2])
        #expect(session.queue.waitingBytes == 0)
    }

    @Test(
        "unloading forgets the messages and keeps the counts; loading gives all back, in flight first"
    )
    func unload() {
        let session = StoredSession()
        session.isAttached = true
        for _ in 0..<5 { session.publish(window: 10) }
        session.pump(limit: 2)
        session.acknowledge(0)
        let (waiting, bytes) = (session.queue.waiting, session.queue.waitingBytes)
        session.detach()
        #expect(session.queue.inFlight == 1)
        #expect(session.queue.waiting == waiting)
        #expect(session.queue.waitingBytes == bytes)
        session.attach()
        #expect(session.redelivered == [1])
        session.load(10)
        session.pump(limit: 10)
        #expect(session.sent == [0, 1, 2, 3, 4])
    }

    @Test("the oldest that waits in the store is dropped, never one that was sent")
    func dropping() {
        let session = StoredSession()
        session.isAttached = true
        for _ in 0..<3 { session.publish(window: 10) }
        session.pump(limit: 1)
        session.detach()
        #expect(session.dropOldest() == 1)
        #expect(session.dropOldest() == 2)
        #expect(session.dropOldest() == nil)
        #expect(session.queue.inFlight == 1)
        #expect(session.queue.waitingBytes == 0)
        session.publish(window: 10)
        session.attach()
        session.load(10)
        session.pump(limit: 10)
        #expect(session.redelivered == [0])
        #expect(session.sent == [0, 3])
    }

    @Test(
        "messages that were never sent stay so behind holes that other members left",
        arguments: [false, true])
    func holes(isRestarted: Bool) {
        let session = StoredSession()
        session.isAttached = true
        for number in 0..<8 {
            session.publish(window: 10, isShared: number == 3 || number == 5 || number == 7)
        }
        session.pump(limit: 2)
        session.leaveGroup()
        if isRestarted { session.restart() } else { session.detach() }
        #expect(session.queue.inFlight + session.queue.waiting == 5)
        session.publish(window: 10)
        session.attach()
        #expect(session.redelivered == [0, 1])
        session.load(10)
        session.pump(limit: 10)
        #expect(session.sent == [0, 1, 2, 4, 6, 8])
        #expect(session.queue.waiting == 0 && session.queue.inFlight == 6)
    }

    @Test("identifiers stay unique however far positions have moved on behind one in flight")
    func farApart() {
        let session = StoredSession()
        session.isAttached = true
        session.publish(window: 1)
        session.pump(limit: 1)
        session.detach()
        for _ in 0..<70_000 {
            session.publish(window: 1)
            _ = session.dropOldest()
        }
        session.publish(window: 1)
        session.attach()
        #expect(session.queue.loadable(1) == 0, "position 70,001 shares no window with position 0")
        session.acknowledge(0)
        #expect(session.queue.loadable(1) == 1)
        session.load(1)
        session.pump(limit: 10)
        #expect(session.sent == [0, 70_001])
    }

    @Test("a random life agrees with its model", arguments: 0..<40)
    func model(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let session = StoredSession()
        session.attach()
        for _ in 0..<3_000 {
            switch random.number(in: 0...9) {
            case 0...3:
                session.publish(
                    window: 8, qos: random.once(in: 2) ? .exactlyOnce : .atLeastOnce,
                    isShared: random.once(in: 3))
            case 4: session.load(UInt32(random.number(in: 1...16)))
            case 5...6:
                if let position = session.inFlight.randomElement(using: &random) {
                    session.acknowledge(position)
                }
            case 7: if random.once(in: 4) { session.dropOldest() }
            case 8 where random.once(in: 10): session.detach()
            case 8 where random.once(in: 20): session.restart()
            case 8 where random.once(in: 6): session.leaveGroup()
            case 9 where random.once(in: 3): session.attach()
            default: session.pump(limit: UInt32(random.number(in: 1...6)))
            }
            session.check()
        }
        session.attach()
        while !session.queue.isEmpty {
            session.load(16)
            session.pump(limit: 20)
            session.inFlight.forEach(session.acknowledge)
            session.check()
        }
        #expect(session.disk.isEmpty)
    }
}

/// One session, its stored queue, and everything that its client has received.
private final class StoredSession {
    struct Row {
        var payload: [UInt8]
        var qos: QoS
        var isReleased: Bool
        var isShared: Bool
    }

    let pool = TestPool()
    var queue = OutboundQueue()
    /// The store's content by position.
    var disk: [UInt64: Row] = [:]
    var inFlight: Set<UInt64> = []
    /// First deliveries, in order.
    var sent: [UInt64] = []
    var redelivered: [UInt64] = []
    var isAttached = false
    /// Holes in the store that were dropped as if they were messages.
    private var droppedHoles = 0
    /// Until all is loaded, messages in flight may count as waiting.
    private var isRestarted = false

    deinit { queue.removeAll(in: pool.pool) }

    func publish(window: UInt32, qos: QoS = .atLeastOnce, isShared: Bool = false) {
        let position = queue.end
        let payload = [UInt8](repeating: 1, count: Int(position % 7) + 1)
        disk[position] = Row(payload: payload, qos: qos, isReleased: false, isShared: isShared)
        let message = pool.message(payload: payload, qos: qos)
        if isAttached, !queue.isStoring, !queue.isFull,
            queue.loadedWaiting + queue.inFlight < window
        {
            queue.append(
                message, qos: qos, retain: false, ticket: 0, group: isShared ? 1 : noIndex,
                pool: pool.pool)
        } else {
            #expect(queue.store(bytes: message.count) == position)
            message.release(in: pool.pool)
        }
    }

    func pump(limit: UInt32) {
        guard isAttached else { return }
        while case .send(let item) = queue.next(
            limit: limit, pool: pool.pool, isCommitted: { _ in true })
        {
            #expect(!inFlight.map { $0 % 65_535 }.contains(item.position % 65_535))
            inFlight.insert(item.position)
            sent.append(item.position)
        }
    }

    func acknowledge(_ position: UInt64) {
        guard isAttached else { return }
        let identifier = PacketIdentifier(position: position)
        if disk[position]?.qos == .exactlyOnce {
            guard case .accepted(position, _) = queue.markReceived(identifier, pool: pool.pool)
            else {
                // Released before; only PUBCOMP is missing.
                complete(identifier, position)
                return
            }
            disk[position]?.isReleased = true
            if position.isMultiple(of: 2) { return }
            complete(identifier, position)
        } else {
            guard case .accepted(position, _) = queue.acknowledge(identifier, pool: pool.pool)
            else {
                Issue.record("position \(position) was in flight")
                return
            }
            disk[position] = nil
            inFlight.remove(position)
        }
    }

    private func complete(_ identifier: PacketIdentifier, _ position: UInt64) {
        guard case .accepted(position, _) = queue.complete(identifier, pool: pool.pool) else {
            Issue.record("position \(position) was released")
            return
        }
        disk[position] = nil
        inFlight.remove(position)
    }

    @discardableResult
    func dropOldest() -> UInt64? {
        guard
            let position = queue.dropOldestWaiting(pool: pool.pool) ?? queue.dropOldestStored()
        else { return nil }
        #expect(!inFlight.contains(position))
        if disk.removeValue(forKey: position) == nil { droppedHoles += 1 }
        return position
    }

    func detach() {
        guard isAttached else { return }
        isAttached = false
        queue.unload(pool: pool.pool)
        let unsent = disk.keys.filter { !inFlight.contains($0) }
        #expect(unsent.allSatisfy { $0 >= queue.firstStored }, "what was never sent stays so")
    }

    /// All that the store holds, as after a restart.
    func restart() {
        detach()
        let (horizon, end) = (queue.firstStored, queue.end)
        queue.removeAll(in: pool.pool)
        queue = OutboundQueue(
            horizon: horizon, end: end, messages: UInt32(disk.count),
            bytes: disk.values.reduce(0) { $0 + $1.payload.count })
        (isRestarted, droppedHoles) = (true, 0)
    }

    /// Other members get the waiting messages of the group.
    func leaveGroup() {
        for returned in queue.takeShared(
            unacknowledged: false, pool: pool.pool, fate: { _ in .giveBack })
        {
            #expect(!inFlight.contains(returned.position))
            disk[returned.position] = nil
            returned.message.release(in: pool.pool)
        }
    }

    func attach() {
        guard !isAttached else { return }
        isAttached = true
        let expected = inFlight.sorted()
        #expect(Int(queue.storedInFlight) == expected.count || isRestarted)
        redelivered = []
        for (position, row) in disk.sorted(by: { $0.key < $1.key })
        where position < queue.firstStored {
            queue.placeSent(loaded(position, row), pool: pool.pool)
            redelivered.append(position)
        }
        queue.finishPlacingSent()
        #expect(redelivered == expected)
    }

    func load(_ count: UInt32) {
        let count = queue.loadable(count)
        guard isAttached, count > 0 else { return }
        let below = queue.firstStored + UInt64(count)
        let rows = disk.filter { $0.key >= queue.firstStored && $0.key < below }
        for (position, row) in rows.sorted(by: { $0.key < $1.key }) {
            queue.placeWaiting(loaded(position, row), ticket: 0, pool: pool.pool)
        }
        queue.finishPlacingWaiting(below: below)
    }

    private func loaded(_ position: UInt64, _ row: Row) -> OutboundQueue.Loaded {
        OutboundQueue.Loaded(
            message: row.isReleased ? nil : pool.message(payload: row.payload, qos: row.qos),
            position: position, qos: row.qos, retain: false, group: row.isShared ? 1 : noIndex)
    }

    func check() {
        let waiting = disk.count - inFlight.count
        if queue.stored == 0 {
            (droppedHoles, isRestarted) = (0, isRestarted && queue.storedInFlight > 0)
        }
        if !isRestarted {
            #expect((waiting - droppedHoles...waiting).contains(Int(queue.waiting)))
            #expect(Int(queue.inFlight) == inFlight.count)
        }
        #expect(sent == sent.sorted(), "each is sent for the first time in order")
        #expect(queue.stored > 0 || queue.waitingBytes >= 0)
    }
}
