/// Tags and pushes in the journal.
extension JournalOverlay {
    /// Applies a record of tags or pushes; other records are none of them.
    func applyPush(_ record: RecordView, _ bytes: UnsafeRawBufferPointer) {
        active.weight += 1
        switch StoreRecord(record, in: bytes) {
        case .tag(let tag, let isSet): active.tags.isSet[tag] = isSet
        case .push(let push): active.pushes.added.append(push)
        case .pushProgress(let progress): active.pushes.progress[progress.number] = progress
        case .pushRemoved(let number): active.pushes.removed.append(number)
        default: preconditionFailure("a record of tags or pushes is \(record)")
        }
    }

    /// Hands the tags of clients to `visitor`.
    func restoreTags(
        _ database: Database, _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        var changed: [StoredTag: Bool] = [:]
        for segment in sealed + [active] { changed.merge(segment.tags.isSet) { $1 } }
        try database.forEachTag { tag in
            if changed[tag] == nil { visitor.visit(tag) }
        }
        for (tag, isSet) in changed where isSet { visitor.visit(tag) }
    }

    /// Hands pushes to `visitor`, those of the database first.
    func restorePushes(
        _ database: Database, _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        var removed: Set<UInt64> = []
        var progress: [UInt64: PushProgress] = [:]
        var last: UInt64 = 0
        let segments = (sealed + [active]).map(\.pushes)
        for changes in segments {
            removed.formUnion(changes.removed)
            progress.merge(changes.progress) { $1 }
            last = max(last, changes.added.last?.number ?? 0, changes.removed.max() ?? 0)
        }
        visitor.visit(lastPush: last)
        func restore(_ push: StoredPush) {
            guard !removed.contains(push.number) else { return }
            var push = push
            if let progress = progress[push.number] { push.advance(to: progress) }
            visitor.visit(push)
        }
        try database.forEachPush { restore($0) }
        for changes in segments { changes.added.forEach(restore) }
    }
}
