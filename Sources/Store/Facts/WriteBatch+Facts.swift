/// Records of facts: what a feature keeps under a key of one of its tables.
///
/// A fact is replaced or removed as a whole, and records count in their order. What changes apart
/// from the rest therefore has a key of its own.
extension WriteBatch {
    /// Stores a fact in place of an earlier one of the same key.
    ///
    /// - Parameters:
    ///   - table: The feature's table.
    ///   - owner: What the fact is about. A key has the same owner at all times.
    ///   - isNew: True only if no fact of this key is stored. A new fact that is removed before its
    ///     journal segment moves to the database costs the database nothing.
    ///   - key: Writes the key.
    ///   - value: Writes the value.
    public mutating func fact(
        _ table: FactTable, of owner: FactOwner, isNew: Bool = false,
        key: (inout FactBytes) -> Void, value: (inout FactBytes) -> Void
    ) {
        guard begin(isNew ? .newFact : .fact) else { return }
        put(table.number)
        put(owner.partition)
        write {
            $0.putMeasured(key)
            $0.putMeasured(value)
        }
    }

    /// Removes a fact, if there is one of this key.
    public mutating func factRemoved(
        _ table: FactTable, of owner: FactOwner, key: (inout FactBytes) -> Void
    ) {
        guard begin(.factRemoved) else { return }
        put(table.number)
        put(owner.partition)
        write { $0.putMeasured(key) }
    }

    /// Removes all facts of a table from one key on up to another one, which stays.
    public mutating func factsRemoved(
        _ table: FactTable, from: (inout FactBytes) -> Void = { _ in },
        below: (inout FactBytes) -> Void
    ) {
        guard begin(.factsRemoved) else { return }
        put(table.number)
        write {
            $0.putMeasured(from)
            $0.putMeasured(below)
        }
    }
}

extension RecordReader {
    mutating func fact(isNew: Bool) throws(DamagedRecord) -> RecordView {
        .fact(
            FactPlace(
                table: try byte(), owner: FactOwner(partition: try byte()), key: try measured()),
            value: try measured(), isNew: isNew)
    }

    mutating func factRemoved() throws(DamagedRecord) -> RecordView {
        .factRemoved(
            FactPlace(
                table: try byte(), owner: FactOwner(partition: try byte()), key: try measured()))
    }

    mutating func factsRemoved() throws(DamagedRecord) -> RecordView {
        .factsRemoved(table: try byte(), from: try measured(), below: try measured())
    }
}

/// Table, owner and key of a fact in the bytes of a record.
public struct FactPlace: BitwiseCopyable {
    let table: UInt8
    let owner: FactOwner
    let key: RecordView.Bytes
}
