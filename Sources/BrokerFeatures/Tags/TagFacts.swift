import BrokerCore
import Store

/// A tag of a client.
struct StoredTag: Hashable, Sendable {
    var clientID: [UInt8]
    var tag: [UInt8]

    init(clientID: [UInt8], tag: [UInt8]) {
        self.clientID = clientID
        self.tag = tag
    }
}

/// Key: the client identifier behind its length, then the tag. There is no value.
extension WriteBatch {
    mutating func tag(
        _ tag: UnsafeRawBufferPointer, of clientID: UnsafeRawBufferPointer, isSet: Bool
    ) {
        let owner = FactOwner(clientID)
        let key: (inout FactBytes) -> Void = {
            $0.putText(clientID)
            $0.putRest(tag)
        }
        if isSet {
            fact(.tag, of: owner, key: key) { _ in }
        } else {
            factRemoved(.tag, of: owner, key: key)
        }
    }
}

extension StoredTag {
    init(_ fact: StoredFact) throws(DamagedFact) {
        var key = FactReader(fact.key)
        self.init(clientID: try key.name(), tag: try key.restName())
    }
}

extension FactTable {
    static var tag: FactTable { FactTable(number: 7, name: "tag") }
}

extension StoredTable {
    static let tags = StoredTable(
        .tag,
        restore: { (shard: inout Shard, fact) throws(DamagedFact) in
            let tag = try StoredTag(fact)
            let isKept = tag.clientID.withUnsafeBytes { client in
                tag.tag.withUnsafeBytes {
                    shard.features.tagged.add($0, to: client, pool: shard.pool)
                }
            }
            guard isKept else { throw DamagedFact() }
        })
}
