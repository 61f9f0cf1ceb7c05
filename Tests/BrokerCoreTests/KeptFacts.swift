import Store

@testable import BrokerCore
@testable import BrokerFeatures

extension StoreRecord.Fact {
    /// Lends the fact as a start would hand it over; `nil` when it makes no sense to `read`.
    func read<Value>(_ read: (StoredFact) throws(DamagedFact) -> Value) -> Value? {
        key.withUnsafeBytes { key in
            value.withUnsafeBytes {
                try? read(StoredFact(table: table, owner: owner, key: key, value: $0))
            }
        }
    }

    var receipt: ReceiptFact? {
        table == FactTable.receipt.number
            ? read { (fact) throws(DamagedFact) in try ReceiptFact(fact) } : nil
    }
}

extension StoreRecord {
    /// True for a record that stores a fact of this table.
    func isStored(in table: FactTable) -> Bool {
        if case .fact(let fact) = self { fact.table == table.number } else { false }
    }

    /// The key of a fact of this table that is removed.
    func removedKey(in table: FactTable) -> [UInt8]? {
        if case .factRemoved(table.number, _, let key) = self { key } else { nil }
    }
}
