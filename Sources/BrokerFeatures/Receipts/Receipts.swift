import BrokerAPI
import BrokerCore
import Store
import Structures

/// Receipts: what became of messages of the admin plane, for each of their receivers.
///
/// While a message waits or is in flight, only its queue knows its state: a receiver is found by its
/// queue position, once, when that ends. Receipts are kept for 24 hours; above the limit, in which
/// each receipt and each receiver counts, those go that ``ReceiptOrder`` says, in slices.
///
/// A receiver stands in one of ``ReceiverLists`` at a time: that of its session while it is open, and
/// that of the events from its end until the event is taken.
struct Receipts: ~Copyable {
    struct Record: BitwiseCopyable {
        let number: UInt64
        let atMs: Int64
        let owner: OwnerID
        var messageID: CompactBytes
        var topic: CompactBytes
        var links = ReceiptOrder.Links()
        var firstReceiver: UInt32 = noIndex
        var lastReceiver: UInt32 = noIndex
        /// False when a later message of the owner has the same identifier.
        var isNamed = true
        var counts = ReceiverCounts()
    }

    /// Receivers that are ended, and receivers and receipts that are dropped, in a turn.
    private static var perTurn: Int { 1_024 }
    private static var lifetimeMs: Int64 { 24 * 3_600_000 }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private let hash: KeyedHash
    var records = Slab<Record>()
    private var byMessageID = HashIndex()
    private var byPosition = HashIndex()
    private var bySession = HashIndex()
    var receivers = Slab<Receiver>()
    var lists = ReceiverLists()
    private var order = ReceiptOrder()
    var lastNumber: UInt64 = 0
    /// The receipt that is being dropped; ``noIndex`` for none.
    private var dropping: UInt32 = noIndex
    /// Receipts and receivers that were dropped before their time.
    private(set) var droppedEarly: UInt64 = 0
    var events = ReceiptEvents()
    /// Numbers of restored receipts, ascending, with their places.
    var restored: [(number: UInt64, place: UInt32)] = []

    init(hash: KeyedHash) { self.hash = hash }

    /// Receipts and receivers.
    var count: Int { records.count + receivers.count }

    // MARK: Adding

    /// Adds the receipt of a message; returns its place. `now` is UNIX time in milliseconds.
    mutating func add(
        messageID: UnsafeRawBufferPointer, owner: OwnerID, topic: UnsafeRawBufferPointer,
        at now: Int64,
        pool: BytePool
    ) -> UInt32 {
        lastNumber += 1
        return insert(
            Record(
                number: lastNumber, atMs: now, owner: owner,
                messageID: CompactBytes(messageID, pool: pool),
                topic: CompactBytes(topic, pool: pool)))
    }

    /// Adds a receiver with a queue position; returns its place.
    mutating func follow(
        _ receipt: UInt32, session: UInt64, position: UInt64, client: CompactBytes
    ) -> UInt32 {
        let place = append(
            Receiver(
                receipt: receipt, place: records[receipt].counts.receivers, session: session,
                position: position, client: client))
        open(place)
        return place
    }

    /// Adds a receiver whose message never had a queue position.
    mutating func add(_ receipt: UInt32, session: UInt64, client: CompactBytes) -> UInt32 {
        append(
            Receiver(
                receipt: receipt, place: records[receipt].counts.receivers, session: session,
                position: 0, client: client))
    }

    private mutating func append(_ receiver: Receiver) -> UInt32 {
        let place = receivers.insert(receiver)
        let receipt = receiver.receipt
        records[receipt].counts.receivers += 1
        order.count(records[receipt].links, by: 1)
        if records[receipt].firstReceiver == noIndex {
            records[receipt].firstReceiver = place
        } else {
            receivers[records[receipt].lastReceiver].next = place
        }
        records[receipt].lastReceiver = place
        return place
    }

    mutating func insert(_ record: Record) -> UInt32 {
        let place = records.insert(record)
        order.append(place, to: &records)
        // A receipt is found by its identifier until a later message of the owner has the same one.
        if let former = record.messageID.withBytes({ find(messageID: $0, of: record.owner) }) {
            removeName(former)
        }
        byMessageID.insert(record.messageID.withBytes { hash($0) }, place)
        return place
    }

    // MARK: Finding

    /// The receipt of the last message that an owner gave this identifier.
    func find(_ name: OwnedName) -> UInt32? {
        name.name.withUnsafeBytes { find(messageID: $0, of: name.owner) }
    }

    /// The receipt of the last message that the owner, or else another one, gave this identifier.
    func findAny(_ name: OwnedName) -> UInt32? {
        find(name)
            ?? name.name.withUnsafeBytes { messageID in
                byMessageID.find(hash(messageID)) { records[$0].messageID.equals(messageID) }
            }
    }

    private func find(messageID: UnsafeRawBufferPointer, of owner: OwnerID) -> UInt32? {
        byMessageID.find(hash(messageID)) {
            records[$0].owner == owner && records[$0].messageID.equals(messageID)
        }
    }

    /// The open receiver of a queue position.
    func find(session: UInt64, position: UInt64) -> UInt32? {
        byPosition.find(hash(ofPosition: position, session)) {
            receivers[$0].session == session && receivers[$0].position == position
        }
    }

    /// True unless the receipt is being dropped, and so takes no receivers.
    func mayGrow(_ receipt: UInt32) -> Bool { receipt != dropping }

    // MARK: The end of a receiver

    /// Ends an open receiver, at a UNIX time in milliseconds; returns the end for the store. An event
    /// is told once `ticket` is committed.
    mutating func end(
        _ place: UInt32, _ outcome: ReceiverOutcome, _ reason: ReceiverReason, at now: Int64,
        ticket: UInt64, keepsEvents: Bool
    ) -> ReceiverEnd {
        if receivers[place].list != noIndex { close(place) }
        receivers[place].outcome = outcome
        receivers[place].reason = reason
        receivers[place].atMs = now
        records[receivers[place].receipt].counts.add(outcome)
        if keepsEvents, outcome.event != nil {
            receivers[place].event = events.newNumber()
            // The position is not needed any more.
            receivers[place].position = ticket
            appendEvent(place)
        }
        return ReceiverEnd(
            receipt: records[receivers[place].receipt].number, place: receivers[place].place,
            outcome: outcome.rawValue, reason: reason.number, atMs: now,
            event: receivers[place].event, owner: records[receivers[place].receipt].factOwner)
    }

    /// Changes the position of an open receiver.
    mutating func move(_ session: UInt64, from old: UInt64, to new: UInt64) {
        guard let place = find(session: session, position: old) else { return }
        byPosition.remove(hash(ofPosition: old, session), place)
        receivers[place].position = new
        byPosition.insert(hash(ofPosition: new, session), place)
    }

    /// Gives an open receiver a position in the queue of another session.
    mutating func move(_ place: UInt32, session: UInt64, position: UInt64) {
        let former = receivers[place].session
        close(place)
        receivers[place].session = session
        receivers[place].position = position
        open(place)
        _ = freesSession(former)
    }

    // MARK: Sessions

    /// The list of a session's open receivers.
    private func list(of session: UInt64) -> UInt32? {
        bySession.find(hash(ofSession: session)) { lists.session(of: $0) == session }
    }

    private mutating func makeList(of session: UInt64) -> UInt32 {
        let list = lists.make(session)
        bySession.insert(hash(ofSession: session), list)
        return list
    }

    /// True when a session has no open receivers left.
    mutating func freesSession(_ session: UInt64) -> Bool {
        guard let list = list(of: session) else { return true }
        guard lists.isEmpty(list) else { return false }
        bySession.remove(hash(ofSession: session), list)
        lists.free(list)
        return true
    }

    /// Has the open receivers of a session ended in slices, because the session has.
    mutating func sessionEnded(_ session: UInt64) {
        guard let list = list(of: session) else { return }
        bySession.remove(hash(ofSession: session), list)
        lists.orphan(list)
    }

    private mutating func open(_ place: UInt32) {
        let session = receivers[place].session
        byPosition.insert(hash(ofPosition: receivers[place].position, session), place)
        lists.append(place, to: list(of: session) ?? makeList(of: session), &receivers)
    }

    private mutating func close(_ place: UInt32) {
        byPosition.remove(
            hash(ofPosition: receivers[place].position, receivers[place].session), place)
        lists.remove(place, &receivers)
    }

    // MARK: Dropping

    /// For the store: receipts below the oldest are dropped.
    var progress: ReceiptProgress {
        ReceiptProgress(
            begin: order.oldest == noIndex
                ? lastNumber + 1
                : records[order.oldest].number + (order.oldest == dropping ? 1 : 0),
            lastEvent: events.last, taken: events.taken)
    }

    /// True when the next turn has receivers to end, or receipts to drop.
    func hasWork(limit: Int) -> Bool {
        dropping != noIndex || count > limit || lists.hasOrphans
    }

    /// Drops receipts that are too old or too many, a slice; returns what the store has to drop.
    mutating func drop(limit: Int, at now: Int64, pool: BytePool) -> ReceiptDrops {
        var drops = ReceiptDrops()
        var left = Self.perTurn
        order.compareOwners()
        while left > 0, dropping != noIndex || beginToDrop(limit, now, &drops) {
            while left > 0, records[dropping].firstReceiver != noIndex {
                dropReceiver(records[dropping].firstReceiver, pool)
                left -= 1
            }
            guard left > 0 else { break }
            dropRecord(pool)
            left -= 1
        }
        return drops
    }

    /// Chooses the next receipt to drop; false when none has to go.
    private mutating func beginToDrop(
        _ limit: Int, _ now: Int64, _ drops: inout ReceiptDrops
    ) -> Bool {
        guard order.oldest != noIndex else { return false }
        let isExpired = records[order.oldest].atMs + Self.lifetimeMs <= now
        guard isExpired || count > limit else { return false }
        dropping = isExpired ? order.oldest : order.takeLoser()
        if !isExpired { droppedEarly += 1 + UInt64(records[dropping].counts.receivers) }
        drops.hasBegun = true
        if dropping != order.oldest { drops.numbers.append(records[dropping].number) }
        return true
    }

    private mutating func dropReceiver(_ place: UInt32, _ pool: BytePool) {
        let receiver = receivers[place]
        if receiver.outcome == .open {
            close(place)
        } else if receiver.list != noIndex {
            removeEvent(place)
            events.dropped += 1
        }
        records[receiver.receipt].firstReceiver = receiver.next
        order.count(records[receiver.receipt].links, by: -1)
        receivers[place].client.destroy(in: pool)
        receivers[place].detail.destroy(in: pool)
        receivers.remove(place)
    }

    private mutating func dropRecord(_ pool: BytePool) {
        let place = dropping
        order.remove(place, from: &records)
        removeName(place)
        records[place].messageID.destroy(in: pool)
        records[place].topic.destroy(in: pool)
        records.remove(place)
        dropping = noIndex
    }

    private mutating func removeName(_ place: UInt32) {
        guard records[place].isNamed else { return }
        records[place].isNamed = false
        byMessageID.remove(records[place].messageID.withBytes { hash($0) }, place)
    }

    // MARK: Hashes

    private func hash(ofSession session: UInt64) -> UInt64 {
        withUnsafeBytes(of: session) { hash($0) }
    }

    private func hash(ofPosition position: UInt64, _ session: UInt64) -> UInt64 {
        withUnsafeBytes(of: (session, position)) { hash($0) }
    }
}
