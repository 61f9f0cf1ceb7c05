import BrokerAPI
import BrokerCore
import Store

/// A message that is published at a later time.
struct StoredScheduled: Hashable, Sendable {
    /// Numbers rise and are never used again.
    var number: UInt64
    /// UNIX time in milliseconds at which it is published.
    var dueMs: Int64
    /// Milliseconds after ``dueMs`` at which it expires; 0 for never.
    var expiresInMs: Int64
    var messageID: [UInt8]
    /// The token that gave the identifier.
    var owner: OwnerID
    var topic: [UInt8]
    var payload: [UInt8]
    var qos: UInt8
    var retain: Bool
    /// True when its receivers are followed once it is published.
    var isFollowed: Bool

    init(
        number: UInt64, dueMs: Int64, expiresInMs: Int64, messageID: [UInt8], owner: OwnerID,
        topic: [UInt8], payload: [UInt8], qos: UInt8, retain: Bool, isFollowed: Bool
    ) {
        self.number = number
        self.dueMs = dueMs
        self.expiresInMs = expiresInMs
        self.messageID = messageID
        self.owner = owner
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.isFollowed = isFollowed
    }
}

/// A message's key has its number and 1; a time to which it was moved has the number and 0, so that
/// a start reads it before the message.
extension WriteBatch {
    mutating func scheduled(_ message: StoredScheduled) {
        fact(.scheduled, of: FactOwner(message.messageID), isNew: true) {
            $0.put(message.number)
            $0.put(1 as UInt8)
        } value: {
            $0.put(message.dueMs)
            $0.put(message.expiresInMs)
            $0.put(message.qos)
            $0.put(message.retain)
            $0.put(message.isFollowed)
            $0.putOwned(message.messageID, message.owner)
            $0.putText(message.topic)
            $0.putRest(message.payload)
        }
    }

    mutating func scheduledMoved(_ number: UInt64, of owner: FactOwner, dueMs: Int64) {
        fact(.scheduled, of: owner) {
            $0.put(number)
            $0.put(0 as UInt8)
        } value: {
            $0.put(dueMs)
        }
    }

    /// Removes a message and the time to which it was moved.
    mutating func scheduledEnded(_ number: UInt64, of owner: FactOwner) {
        for part in 0...1 as ClosedRange<UInt8> {
            factRemoved(.scheduled, of: owner) {
                $0.put(number)
                $0.put(part)
            }
        }
    }
}

/// A fact of the table of scheduled messages.
enum ScheduledFact: Hashable {
    case moved(UInt64, dueMs: Int64)
    case message(StoredScheduled)

    init(_ fact: StoredFact) throws(DamagedFact) {
        var key = FactReader(fact.key)
        var value = FactReader(fact.value)
        let number = try key.number()
        let part = try key.byte()
        try key.finish()
        switch part {
        case 0:
            self = .moved(number, dueMs: try value.time())
            try value.finish()
        case 1:
            let (dueMs, expiresInMs) = (try value.time(), try value.time())
            let (qos, retain, isFollowed) = (try value.byte(), try value.flag(), try value.flag())
            let name = try value.ownedName()
            let (topic, payload) = (try value.name(), value.rest())
            try FactReader.check(payload: payload)
            self = .message(
                StoredScheduled(
                    number: number, dueMs: dueMs, expiresInMs: expiresInMs,
                    messageID: name.name, owner: name.owner, topic: topic, payload: payload,
                    qos: qos, retain: retain, isFollowed: isFollowed))
        default: throw DamagedFact()
        }
    }
}

extension ScheduledMessages.Record {
    var factOwner: FactOwner { messageID.withBytes { FactOwner($0) } }
}

extension FactTable {
    static var scheduled: FactTable { FactTable(number: 5, name: "scheduled") }
}

extension StoredTable {
    static let scheduled = StoredTable(
        .scheduled,
        restore: { (shard: inout Shard, fact) throws(DamagedFact) in
            switch try ScheduledFact(fact) {
            case .moved(let number, let dueMs):
                shard.features.restoring.scheduledMoved = (number, dueMs)
            case .message(var stored):
                if let moved = shard.features.restoring.scheduledMoved,
                    moved.number == stored.number
                {
                    stored.dueMs = moved.dueMs
                }
                guard StoredQoS(byte: stored.qos) != nil, TopicText.isName(stored.topic) else {
                    throw DamagedFact()
                }
                shard.features.scheduled.insert(stored, pool: shard.pool)
            }
        },
        noteNumber: { shard, number in shard.features.scheduled.noteStored(number) })
}
