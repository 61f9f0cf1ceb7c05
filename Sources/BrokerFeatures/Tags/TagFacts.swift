import Store

/// A tag of a client.
struct StoredTag: Hashable, Sendable {
    var clientIdentifier: [UInt8]
    var tag: [UInt8]

    init(clientIdentifier: [UInt8], tag: [UInt8]) {
        self.clientIdentifier = clientIdentifier
        self.tag = tag
    }
}

/// Key: the client identifier behind its length, then the tag. There is no value.
extension WriteBatch {
    mutating func tag(
        _ tag: UnsafeRawBufferPointer, of clientIdentifier: UnsafeRawBufferPointer, isSet: Bool
    ) {
        let owner = FactOwner(clientIdentifier)
        let key: (inout FactBytes) -> Void = {
            $0.putText(clientIdentifier)
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
        self.init(clientIdentifier: try key.text(), tag: key.rest())
    }
}
