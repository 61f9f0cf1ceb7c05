import BrokerAPI
import BrokerCore
import Store

/// A message whose receivers are followed.
struct StoredReceipt: Hashable, Sendable {
    /// Numbers rise and are never used again.
    var number: UInt64
    /// UNIX time in milliseconds at which the message was published.
    var atMs: Int64
    var messageID: [UInt8]
    /// The token that gave the identifier.
    var owner: OwnerID
    var topic: [UInt8]

    init(number: UInt64, atMs: Int64, messageID: [UInt8], owner: OwnerID, topic: [UInt8]) {
        self.number = number
        self.atMs = atMs
        self.messageID = messageID
        self.owner = owner
        self.topic = topic
    }
}

/// One receiver of such a message.
struct StoredReceiver: Hashable, Sendable {
    var receipt: UInt64
    /// Its place among the receivers of the receipt, from 0.
    var place: UInt32
    /// The number of its session.
    var session: UInt64
    /// The message's position in the session's queue.
    var position: UInt64
    var clientID: [UInt8]

    init(
        receipt: UInt64, place: UInt32, session: UInt64, position: UInt64,
        clientID: [UInt8]
    ) {
        self.receipt = receipt
        self.place = place
        self.session = session
        self.position = position
        self.clientID = clientID
    }
}

/// What an answer tells of a receiver besides: the filter of its shared subscription, or the
/// identifier of the message that replaced its own.
struct ReceiverDetail: Hashable, Sendable {
    var receipt: UInt64
    var place: UInt32
    /// 1 to 255 bytes.
    var text: [UInt8]

    static let mostBytes = 255

    init(receipt: UInt64, place: UInt32, text: [UInt8]) {
        self.receipt = receipt
        self.place = place
        self.text = text
    }
}

/// What became of the message for a receiver.
struct ReceiverEnd: Hashable, Sendable, BitwiseCopyable {
    var receipt: UInt64
    var place: UInt32
    /// The broker's number of the outcome; 0 while the message waits or is in flight.
    var outcome: UInt8
    /// The broker's number of a drop's reason.
    var reason: UInt8
    /// UNIX time in milliseconds.
    var atMs: Int64
    /// The number of the event that tells of it; 0 for none.
    var event: UInt64
    /// The owner of the receipt.
    var owner: FactOwner

    init(
        receipt: UInt64, place: UInt32, outcome: UInt8, reason: UInt8, atMs: Int64,
        event: UInt64, owner: FactOwner = .broker
    ) {
        self.receipt = receipt
        self.place = place
        self.outcome = outcome
        self.reason = reason
        self.atMs = atMs
        self.event = event
        self.owner = owner
    }
}

/// Bounds of the receipts and of their events. Each number only rises.
struct ReceiptProgress: Hashable, Sendable, BitwiseCopyable {
    /// Receipts below this number are dropped.
    var begin: UInt64
    /// The highest number of an event when receipts were dropped last.
    var lastEvent: UInt64
    /// Events up to this number are taken.
    var taken: UInt64

    init(begin: UInt64 = 0, lastEvent: UInt64 = 0, taken: UInt64 = 0) {
        self.begin = begin
        self.lastEvent = lastEvent
        self.taken = taken
    }
}

/// Receipts belong to their message's identifier, and their receivers and ends with them.
///
/// A receipt has its number as key. A receiver's key has the number, the place and 1; its end has
/// the number, the place and 0; its detail 2. So a start reads a receipt, then for each receiver the
/// end, if there is one, the receiver, and its detail, if there is one.
extension WriteBatch {
    mutating func receipt(
        _ number: UInt64, atMs: Int64, messageID: UnsafeRawBufferPointer, owner: OwnerID,
        topic: UnsafeRawBufferPointer
    ) {
        fact(.receipt, of: FactOwner(messageID), isNew: true) {
            $0.put(number)
        } value: {
            $0.put(atMs)
            $0.putOwned(messageID, owner)
            $0.putRest(topic)
        }
    }

    /// Stores a receiver; unless `isNew`, one that has got another session and position.
    mutating func receiptReceiver(
        receipt: UInt64, of owner: FactOwner, place: UInt32, session: UInt64, position: UInt64,
        clientID: UnsafeRawBufferPointer, isNew: Bool
    ) {
        fact(.receipt, of: owner, isNew: isNew) {
            $0.put(receipt)
            $0.put(place)
            $0.put(1 as UInt8)
        } value: {
            $0.put(session)
            $0.put(position)
            $0.putRest(clientID)
        }
    }

    mutating func receiptEnded(_ end: ReceiverEnd) {
        fact(.receipt, of: end.owner, isNew: true) {
            $0.put(end.receipt)
            $0.put(end.place)
            $0.put(0 as UInt8)
        } value: {
            $0.put(end.outcome)
            $0.put(end.reason)
            $0.put(end.atMs)
            $0.put(end.event)
        }
    }

    mutating func receiptDetail(
        receipt: UInt64, of owner: FactOwner, place: UInt32, _ text: UnsafeRawBufferPointer
    ) {
        fact(.receipt, of: owner, isNew: true) {
            $0.put(receipt)
            $0.put(place)
            $0.put(2 as UInt8)
        } value: {
            $0.putRest(text)
        }
    }

    /// Removes a receipt that is dropped although older ones stay, with all that belongs to it.
    mutating func receiptDropped(_ number: UInt64) {
        factsRemoved(.receipt) {
            $0.put(number)
        } below: {
            $0.put(number + 1)
        }
    }

    /// Stores the bounds, and removes the receipts that are dropped, with all that belongs to them.
    mutating func receiptProgress(_ progress: ReceiptProgress) {
        fact(.receiptBounds, of: .broker) { _ in
        } value: {
            $0.put(progress.begin)
            $0.put(progress.lastEvent)
            $0.put(progress.taken)
        }
        factsRemoved(.receipt) { $0.put(progress.begin) }
    }
}

extension ReceiptProgress {
    init(_ fact: StoredFact) throws(DamagedFact) {
        var value = FactReader(fact.value)
        self.init(
            begin: try value.number(), lastEvent: try value.number(), taken: try value.number())
        try value.finish()
    }
}

/// A fact of the table of receipts.
enum ReceiptFact: Hashable {
    case receipt(StoredReceipt)
    case end(ReceiverEnd)
    case receiver(StoredReceiver)
    case detail(ReceiverDetail)

    init(_ fact: StoredFact) throws(DamagedFact) {
        var key = FactReader(fact.key)
        var value = FactReader(fact.value)
        let number = try key.number()
        guard !key.isAtEnd else {
            let atMs = try value.time()
            let name = try value.ownedName()
            self = .receipt(
                StoredReceipt(
                    number: number, atMs: atMs, messageID: name.name, owner: name.owner,
                    topic: try value.restName()))
            return
        }
        let place = try key.count()
        let part = try key.byte()
        try key.finish()
        switch part {
        case 0:
            self = .end(
                ReceiverEnd(
                    receipt: number, place: place, outcome: try value.byte(),
                    reason: try value.byte(), atMs: try value.time(), event: try value.number(),
                    owner: fact.owner))
            try value.finish()
        case 1:
            self = .receiver(
                StoredReceiver(
                    receipt: number, place: place, session: try value.number(),
                    position: try value.number(), clientID: try value.restName()))
        case 2:
            let text = value.rest()
            guard (1...ReceiverDetail.mostBytes).contains(text.count) else { throw DamagedFact() }
            self = .detail(ReceiverDetail(receipt: number, place: place, text: text))
        default: throw DamagedFact()
        }
    }
}

extension StoredReceiver {
    /// The end that was read before this receiver, if it is its own; else none, with the outcome 0.
    func end(_ end: ReceiverEnd?) -> ReceiverEnd {
        if let end, end.receipt == receipt, end.place == place { return end }
        return ReceiverEnd(
            receipt: receipt, place: place, outcome: 0, reason: 0, atMs: 0, event: 0)
    }
}

extension Receipts.Record {
    var factOwner: FactOwner { messageID.withBytes { FactOwner($0) } }
}

extension FactTable {
    static var receiptBounds: FactTable { FactTable(number: 3, name: "receipt_bounds") }
    static var receipt: FactTable { FactTable(number: 4, name: "receipt") }
}

extension StoredTable {
    static let receiptBounds = StoredTable(
        .receiptBounds,
        restore: { (shard: inout Shard, fact) throws(DamagedFact) in
            shard.features.receipts.restore(try ReceiptProgress(fact))
        })

    static let receipts = StoredTable(
        .receipt,
        restore: { (shard: inout Shard, fact) throws(DamagedFact) in
            switch try ReceiptFact(fact) {
            case .receipt(let receipt): shard.features.receipts.restore(receipt, pool: shard.pool)
            case .end(let end):
                shard.features.receipts.events.noteStored(end.event)
                shard.features.restoring.receiverEnd = end
            case .receiver(let receiver):
                let end = shard.features.restoring.receiverEnd.take()
                shard.restoreReceiver(receiver, receiver.end(end))
            case .detail(let detail):
                shard.features.receipts.restore(detail, pool: shard.pool)
            }
        },
        noteNumber: { shard, number in shard.features.receipts.noteStored(number) })
}
