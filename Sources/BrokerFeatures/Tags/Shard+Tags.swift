import BrokerAPI
import BrokerCore
import MQTTCore
import Store
import Structures

/// Tags of clients.
extension Shard {
    /// Places that a page looks at.
    private static var placesPerPage: UInt32 { 16_384 }

    /// The tags of a client, in the order of their bytes.
    public func tags(of clientID: String) -> [String] {
        Array(clientID.utf8).withUnsafeBytes { features.tagged.texts(of: $0) }
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// Adds tags, then removes tags of a client, and answers once that is stored.
    public mutating func changeTags(
        of clientID: String, add added: [String], remove removed: [String],
        reply: @escaping Reply<TagChange>
    ) {
        let client = Array(clientID.utf8)
        let removed = Set(removed.map { Array($0.utf8) })
        let added = Set(added.map { Array($0.utf8) }).subtracting(removed)
        let present = Set(client.withUnsafeBytes { features.tagged.texts(of: $0) })
        guard present.union(added).subtracting(removed).count <= TagChange.mostTags else {
            reply(.success(.tooManyTags))
            return
        }
        let new = Array(added.subtracting(present))
        let bytes = client.withUnsafeBytes { features.tagged.mostBytes(adding: new, to: $0) }
        guard new.isEmpty || features.tagged.bytes + bytes <= context.limits.tagBytes else {
            reply(.success(.full))
            return
        }
        guard !commits.isBacklogFull, new.isEmpty || !commits.holdsMessages else {
            reply(.failure(.storeRefuses))
            return
        }
        for tag in present.intersection(removed) { setTag(tag, of: client, isSet: false) }
        for tag in new { setTag(tag, of: client, isSet: true) }
        let answer = TagChange.changed(tags(of: clientID))
        guard commits.records.hasUncommittedRecords else {
            reply(.success(answer))
            return
        }
        commit(answer, reply)
    }

    private mutating func setTag(_ tag: [UInt8], of client: [UInt8], isSet: Bool) {
        client.withUnsafeBytes { client in
            tag.withUnsafeBytes { tag in
                let isChanged =
                    isSet
                    ? features.tagged.add(tag, to: client, pool: pool)
                    : features.tagged.remove(tag, from: client, pool: pool)
                if isChanged { commits.records.tag(tag, of: client, isSet: isSet) }
            }
        }
    }

    /// A page of tags. It looks at a bounded number of places, so it may be short.
    public func tagList(from first: UInt32, limit: Int) -> TagPage {
        features.tagged.summaries(from: first, most: limit, places: Self.placesPerPage)
    }

    /// A page of clients with a tag. It looks at a bounded number of places, so it may be short.
    public func taggedClients(
        _ tag: String, from first: UInt32, limit: Int
    ) -> TaggedClientPage {
        features.tagged.clients(
            with: TagExpression(all: [Array(tag.utf8)]), from: first, most: limit,
            places: Self.placesPerPage)
    }
}

extension ShowTags: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<[String]>) {
        reply(.success(shard.tags(of: clientID)))
    }
}

extension ChangeTags: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<TagChange>) {
        shard.changeTags(of: clientID, add: add, remove: remove, reply: reply)
    }
}

extension ListTags: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<TagPage>) {
        reply(.success(shard.tagList(from: from, limit: limit)))
    }
}

extension ListTaggedClients: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<TaggedClientPage>) {
        reply(.success(shard.taggedClients(tag, from: from, limit: limit)))
    }
}
