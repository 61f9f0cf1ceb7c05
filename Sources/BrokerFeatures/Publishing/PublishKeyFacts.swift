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

    init(
        key: UInt128, digest: UInt128, messageID: UInt128, bucket: UInt64, owner: UInt32,
        matched: UInt32, online: UInt32, queued: UInt32, dropped: UInt32
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
    }
}

/// Key: the bucket, then the key. Value: digest, identifier, counts and owner, which is missing in
/// those that are older than owners.
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

extension PublishKey {
    init(_ fact: StoredFact) throws(DamagedFact) {
        var key = FactReader(fact.key)
        var value = FactReader(fact.value)
        let bucket = try key.number()
        self.init(
            key: try key.wideNumber(), digest: try value.wideNumber(),
            messageID: try value.wideNumber(), bucket: bucket, owner: 0,
            matched: try value.count(), online: try value.count(), queued: try value.count(),
            dropped: try value.count())
        if !value.isAtEnd { owner = try value.count() }
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
