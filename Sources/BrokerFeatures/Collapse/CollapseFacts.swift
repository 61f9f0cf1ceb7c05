import BrokerCore
import Store

/// A queue position whose message a later one may replace.
struct StoredCollapsible: Hashable, Sendable {
    var session: UInt64
    var position: UInt64
    /// Names the topic and the collapse key.
    var key: UInt128
    /// The sequence of the message, and those that it superseded; empty without sequences.
    var sequences: [UInt64]

    /// As many as ``CollapseIndex`` holds of one position.
    private static var mostSequences: Int { Int(UInt16.max) / MemoryLayout<UInt64>.size }

    init(session: UInt64, position: UInt64, key: UInt128, sequences: [UInt64]) {
        self.session = session
        self.position = position
        self.key = key
        self.sequences = sequences
    }
}

/// Key: session and position. Value: the key, then the sequences. The owner is the session's client.
extension WriteBatch {
    /// Must be in the group of the record of its queue position.
    mutating func collapsible(_ position: StoredCollapsible, of owner: FactOwner) {
        fact(.collapsible, of: owner, isNew: true) {
            $0.put(position.session)
            $0.put(position.position)
        } value: {
            $0.put(position.key)
            for sequence in position.sequences { $0.put(sequence) }
        }
    }

    /// The queue position has ended, or a later one has its key.
    mutating func collapsibleEnded(session: UInt64, position: UInt64, of owner: FactOwner) {
        factRemoved(.collapsible, of: owner) {
            $0.put(session)
            $0.put(position)
        }
    }

    /// The session has ended, with all its positions.
    mutating func collapsiblesEnded(session: UInt64) {
        factsRemoved(.collapsible) {
            $0.put(session)
        } below: {
            $0.put(session + 1)
        }
    }
}

extension StoredCollapsible {
    init(_ fact: StoredFact) throws(DamagedFact) {
        var key = FactReader(fact.key)
        var value = FactReader(fact.value)
        self.init(
            session: try key.number(), position: try key.number(), key: try value.wideNumber(),
            sequences: [])
        try key.finish()
        while !value.isAtEnd { sequences.append(try value.number()) }
        guard sequences.count <= Self.mostSequences else { throw DamagedFact() }
    }
}

extension FactTable {
    static var collapsible: FactTable { FactTable(number: 6, name: "collapsible") }
}

extension StoredTable {
    static let collapsible = StoredTable(
        .collapsible,
        restore: { (shard: inout Shard, fact) throws(DamagedFact) in
            shard.restoreCollapsible(try StoredCollapsible(fact), of: fact.owner)
        })
}
