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
    var matched: UInt32
    var online: UInt32
    var queued: UInt32
    var dropped: UInt32

    init(
        key: UInt128, digest: UInt128, messageID: UInt128, bucket: UInt64, matched: UInt32,
        online: UInt32, queued: UInt32, dropped: UInt32
    ) {
        self.key = key
        self.digest = digest
        self.messageID = messageID
        self.bucket = bucket
        self.matched = matched
        self.online = online
        self.queued = queued
        self.dropped = dropped
    }
}

/// Key: the bucket, then the key. Value: digest, identifier and counts.
extension WriteBatch {
    mutating func publishKey(_ key: PublishKey) {
        let owner = withUnsafeBytes(of: key.key.bigEndian) { FactOwner($0) }
        fact(.publishKey, of: owner, isNew: true) {
            $0.put(key.bucket)
            $0.put(key.key)
        } value: {
            $0.put(key.digest)
            $0.put(key.messageID)
            $0.put(key.matched)
            $0.put(key.online)
            $0.put(key.queued)
            $0.put(key.dropped)
        }
    }

    /// Removes the keys of all buckets below this one.
    mutating func publishKeysDropped(below bucket: UInt64) {
        factsRemoved(.publishKey) { $0.put(bucket) }
    }
}

extension PublishKey {
    init(_ fact: StoredFact) throws(DamagedFact) {
        var key = FactReader(fact.key)
        var value = FactReader(fact.value)
        let bucket = try key.number()
        self.init(
            key: try key.wideNumber(), digest: try value.wideNumber(),
            messageID: try value.wideNumber(), bucket: bucket, matched: try value.count(),
            online: try value.count(), queued: try value.count(), dropped: try value.count())
        try key.finish()
        try value.finish()
    }
}
