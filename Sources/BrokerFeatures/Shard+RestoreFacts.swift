import BrokerCore
import Store
import Structures

/// A table of facts, and what a start does with each. It lies in the folder of the feature that keeps
/// the facts; ``Features`` lists all.
struct StoredTable: Sendable {
    let table: FactTable
    /// Hands a fact back to its feature. Throws for one that cannot be read.
    let restore: @Sendable (inout Shard, StoredFact) throws(DamagedFact) -> Void
    /// Keeps the number with which the keys of the table begin from being given again, whether or not
    /// the fact can be read: what is left of a lost message must not become part of a new one. `nil` for
    /// a table without numbers.
    let noteNumber: (@Sendable (inout Shard, UInt64) -> Void)?

    init(
        _ table: FactTable,
        restore: @escaping @Sendable (inout Shard, StoredFact) throws(DamagedFact) -> Void,
        noteNumber: (@Sendable (inout Shard, UInt64) -> Void)? = nil
    ) {
        self.table = table
        self.restore = restore
        self.noteNumber = noteNumber
    }

    /// By the number of the table.
    private static let byNumber: [UInt8: StoredTable] = Dictionary(
        uniqueKeysWithValues: all.map { ($0.table.number, $0) })

    static func find(_ number: UInt8) -> StoredTable? { byNumber[number] }
}

extension FactTable {
    /// All of them.
    public static var all: [FactTable] { StoredTable.all.map(\.table) }
}

/// Hands the facts of a start to the features that keep them.
extension Shard: StoreVisitor {
    public mutating func visit(_ fact: StoredFact) -> Bool {
        guard let stored = StoredTable.find(fact.table) else { return false }
        if let note = stored.noteNumber {
            var key = FactReader(fact.key)
            if let number = try? key.number() { note(&self, number) }
        }
        do throws(DamagedFact) {
            try stored.restore(&self, fact)
            return true
        } catch {
            return false
        }
    }
}

/// Facts of a start that wait for the one after them, to which they belong.
struct RestoringFacts {
    var receiverEnd: ReceiverEnd?
    var scheduledMoved: (number: UInt64, dueMs: Int64)?
    var push = PushParts()
}
