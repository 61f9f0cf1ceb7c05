/// Scheduled messages in the journal.
extension JournalOverlay {
    /// Applies a record of scheduled messages; other records are none of them.
    func applyScheduled(_ record: RecordView, _ bytes: UnsafeRawBufferPointer) {
        active.weight += 1
        switch StoreRecord(record, in: bytes) {
        case .scheduled(let message): active.scheduled.added.append(message)
        case .scheduledMoved(let number, let dueMs): active.scheduled.moved[number] = dueMs
        case .scheduledEnded(let number): active.scheduled.ended.append(number)
        default: preconditionFailure("a record of scheduled messages is \(record)")
        }
    }

    /// Hands scheduled messages to `visitor`, those of the database first.
    func restoreScheduled(
        _ database: Database, _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        var ended: Set<UInt64> = []
        var moved: [UInt64: Int64] = [:]
        var last: UInt64 = 0
        let segments = (sealed + [active]).map(\.scheduled)
        for changes in segments {
            ended.formUnion(changes.ended)
            moved.merge(changes.moved) { $1 }
            last = max(last, changes.added.last?.number ?? 0, changes.ended.max() ?? 0)
        }
        visitor.visit(lastScheduled: last)
        try database.forEachScheduled { message in
            guard !ended.contains(message.number) else { return }
            visitor.visit(message, dueMs: moved[message.number] ?? message.dueMs)
        }
        for changes in segments {
            for message in changes.added where !ended.contains(message.number) {
                visitor.visit(message, dueMs: moved[message.number] ?? message.dueMs)
            }
        }
    }
}
