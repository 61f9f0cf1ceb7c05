import BrokerAPI
import BrokerCore
import Store

/// A key under which a message was published, and the answer that every repeat gets.
struct PublishKey: Hashable, Sendable, BitwiseCopyable {
    /// Names the publisher and its key.
    var key: UInt128
    /// Digest of the request. A repeat with another digest is refused (422).
    var digest: UInt128
    /// The identifier that was made for the message.
    var messageID: UInt128
    /// The bucket that it is dropped with. Numbers of buckets only rise.
    var bucket: UInt64
    /// Half of the ``OwnerID``, which divides the room for keys.
    var owner: UInt32
    var matched: UInt32
    var online: UInt32
    var queued: UInt32
    var dropped: UInt32
    /// Why the message was not retained, as ``NotRetained/storedNumber``; 0 when it was, and for one
    /// without RETAIN.
    var notRetained: UInt8

    init(
        key: UInt128, digest: UInt128, messageID: UInt128, bucket: UInt64, owner: UInt32,
        matched: UInt32, online: UInt32, queued: UInt32, dropped: UInt32, notRetained: UInt8
    ) {
        self.key = key
        self.digest = digest
        self.messageID = messageID
        self.bucket = bucket
        self.owner = owner
        self.matched = matched
        self.online = online
        self.queued = queued
        self.dropped = dropped
        self.notRetained = notRetained
    }
}

/// Key: the bucket, then the key. Value: digest, identifier, counts, owner, which is missing in those
/// that are older than owners, and the reason of a message that was not retained, if it was not.
extension WriteBatch {
    mutating func publishKey(_ key: PublishKey) {
        let place = withUnsafeBytes(of: key.key.bigEndian) { FactOwner($0) }
        fact(.publishKey, of: place, isNew: true) {
            $0.put(key.bucket)
            $0.put(key.key)
        } value: {
            $0.put(key.digest)
            $0.put(key.messageID)
            $0.put(key.matched)
            $0.put(key.online)
            $0.put(key.queued)
            $0.put(key.dropped)
            $0.put(key.owner)
            if key.notRetained != 0 { $0.put(key.notRetained) }
        }
    }

    /// Removes the keys of a bucket.
    mutating func publishKeysDropped(_ bucket: UInt64) {
        factsRemoved(.publishKey) {
            $0.put(bucket)
        } below: {
            $0.put(bucket + 1)
        }
    }
}

extension NotRetained {
    /// `nil` for 0, and for a number that this broker does not know.
    init?(storedNumber: UInt8) {
        switch storedNumber {
        case 1: self = .maxRetained
        case 2: self = .retainedBytes
        case 3: self = .memory
        case 4: self = .expired
        default: return nil
        }
    }

    /// The number in the store; 0 is none.
    var storedNumber: UInt8 {
        switch self {
        case .maxRetained: 1
        case .retainedBytes: 2
        case .memory: 3
        case .expired: 4
        }
    }
}

extension PublishKey {
    init(_ fact: StoredFact) throws(DamagedFact) {
        var key = FactReader(fact.key)
        var value = FactReader(fact.value)
        let bucket = try key.number()
        self.init(
            key: try key.wideNumber(), digest: try value.wideNumber(),
            messageID: try value.wideNumber(), bucket: bucket, owner: 0,
            matched: try value.count(), online: try value.count(), queued: try value.count(),
            dropped: try value.count(), notRetained: 0)
        if !value.isAtEnd { owner = try value.count() }
        if !value.isAtEnd {
            notRetained = try value.byte()
            guard NotRetained(storedNumber: notRetained) != nil else { throw DamagedFact() }
        }
        try key.finish()
        try value.finish()
    }
}

extension FactTable {
    static var publishKey: FactTable { FactTable(number: 2, name: "publish_key") }
}

extension StoredTable {
    static let publishKeys = StoredTable(
        .publishKey,
        restore: { (shard: inout Shard, fact) throws(DamagedFact) in
            shard.features.publishKeys.restore(try PublishKey(fact))
        })
}
