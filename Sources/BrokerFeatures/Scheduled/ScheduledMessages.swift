import BrokerAPI
import BrokerCore
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Messages of the admin plane that are published later, by the wall clock.
///
/// They lie in memory, in a heap by due time, and are found by their identifiers. A message that is
/// due leaves the heap for a group of publications, and stays a record until it is published; until
/// then it may still be cancelled or moved.
struct ScheduledMessages: ~Copyable {
    struct Record: BitwiseCopyable {
        let number: UInt64
        var dueMs: Int64
        let expiresInMs: Int64
        let messageID: CompactBytes
        let owner: OwnerID
        let message: Message
        let isFollowed: Bool
        /// Its place in the heap; ``noIndex`` while it waits in a group.
        var heapPlace: UInt32 = noIndex
        /// False in a free place.
        var isTaken = true

        var bytes: Int { message.count + messageID.count }

        func isExpired(at now: Int64) -> Bool {
            expiresInMs > 0 && now - dueMs >= expiresInMs
        }
    }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private let hash: KeyedHash
    private(set) var records = Slab<Record>()
    private var byMessageID = HashIndex()
    /// A binary heap: the earliest first, and of one time the smallest number.
    private var heap: [UInt32] = []
    private(set) var lastNumber: UInt64 = 0
    private(set) var bytes = 0
    /// Messages by owner, and their bytes.
    private(set) var counts = OwnerShares<OwnerID>()
    private(set) var byteCounts = OwnerShares<OwnerID>()
    /// Due messages in a group of publications that has not come to them.
    var inGroup = 0
    var fired: UInt64 = 0
    var expired: UInt64 = 0

    init(hash: KeyedHash) { self.hash = hash }

    var count: Int { records.count }

    /// UNIX time in milliseconds of the earliest that waits; `nil` without one.
    var firstDueMs: Int64? { heap.first.map { records[$0].dueMs } }

    /// The message that an owner gave this identifier.
    func find(_ name: OwnedName) -> UInt32? {
        name.name.withUnsafeBytes { messageID in
            byMessageID.find(hash(messageID)) {
                records[$0].owner == name.owner && records[$0].messageID.equals(messageID)
            }
        }
    }

    /// The message that the owner, or else another one, gave this identifier.
    func findAny(_ name: OwnedName) -> UInt32? {
        find(name)
            ?? name.name.withUnsafeBytes { messageID in
                byMessageID.find(hash(messageID)) { records[$0].messageID.equals(messageID) }
            }
    }

    /// Keeps a number that the store holds from being given again.
    mutating func noteStored(_ number: UInt64) { lastNumber = max(lastNumber, number) }

    /// The number of the next message.
    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// Adds a message whose identifier no other of its owner has. One of an unknown QoS, which only damage makes,
    /// is left out.
    mutating func insert(_ stored: StoredScheduled, pool: BytePool) {
        lastNumber = max(lastNumber, stored.number)
        guard let published = StoredQoS(byte: stored.qos) else { return }
        let message = stored.topic.withUnsafeBytes { topic in
            stored.payload.withUnsafeBytes { payload in
                let content = StoredContent(payload, published)
                return Message(
                    topic: topic, payload: content.payload, qos: published.qos,
                    retain: stored.retain, wake: published.wake.rawValue,
                    forwarded: content.forwarded, forwardedSource: content.properties, pool: pool)
            }
        }
        stored.messageID.withUnsafeBytes { messageID in
            let place = records.insert(
                Record(
                    number: stored.number, dueMs: stored.dueMs, expiresInMs: stored.expiresInMs,
                    messageID: CompactBytes(messageID, pool: pool), owner: stored.owner,
                    message: message, isFollowed: stored.isFollowed))
            byMessageID.insert(hash(messageID), place)
            bytes += records[place].bytes
            counts.change(stored.owner, by: 1)
            byteCounts.change(stored.owner, by: records[place].bytes)
            wait(place)
        }
    }

    mutating func remove(_ place: UInt32, pool: BytePool) {
        leaveHeap(place)
        let record = records[place]
        byMessageID.remove(record.messageID.withBytes { hash($0) }, place)
        bytes -= record.bytes
        counts.change(record.owner, by: -1)
        byteCounts.change(record.owner, by: -record.bytes)
        record.messageID.destroy(in: pool)
        record.message.release(in: pool)
        records[place].isTaken = false
        records.remove(place)
    }

    /// Sets a new time; a message that waits in a group is not published with it.
    mutating func move(_ place: UInt32, toMs dueMs: Int64) {
        leaveHeap(place)
        records[place].dueMs = dueMs
        wait(place)
    }

    /// Takes the earliest message out of the heap, if it is due.
    mutating func popDue(at now: Int64) -> UInt32? {
        guard let first = heap.first, records[first].dueMs <= now else { return nil }
        leaveHeap(first)
        return first
    }

    /// Puts a message into the heap.
    mutating func wait(_ place: UInt32) {
        heap.append(place)
        records[place].heapPlace = UInt32(heap.count - 1)
        rise(heap.count - 1)
    }

    // MARK: Heap

    private mutating func leaveHeap(_ place: UInt32) {
        guard records[place].heapPlace != noIndex else { return }
        let hole = Int(records[place].heapPlace)
        records[place].heapPlace = noIndex
        let last = heap.removeLast()
        guard hole < heap.count else { return }
        set(hole, last)
        sink(hole)
        rise(hole)
    }

    private mutating func rise(_ start: Int) {
        var index = start
        while index > 0, isEarlier(heap[index], heap[(index - 1) / 2]) {
            exchange(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func sink(_ start: Int) {
        var index = start
        while true {
            var least = index
            for child in 2 * index + 1...2 * index + 2
            where child < heap.count && isEarlier(heap[child], heap[least]) {
                least = child
            }
            guard least != index else { return }
            exchange(index, least)
            index = least
        }
    }

    private func isEarlier(_ one: UInt32, _ other: UInt32) -> Bool {
        (records[one].dueMs, records[one].number) < (records[other].dueMs, records[other].number)
    }

    private mutating func exchange(_ one: Int, _ other: Int) {
        let place = heap[one]
        set(one, heap[other])
        set(other, place)
    }

    private mutating func set(_ index: Int, _ place: UInt32) {
        heap[index] = place
        records[place].heapPlace = UInt32(index)
    }
}

extension ScheduledMessages {
    var figures: [FeatureFigure] {
        [
            .gauge("hermes_scheduled_messages", "Messages that are published later.", count),
            .counter(
                "hermes_scheduled_fired_total", "Scheduled messages that were published.", fired),
            .counter(
                "hermes_scheduled_expired_total",
                "Scheduled messages that had expired before they could be published.", expired),
        ]
    }
}
