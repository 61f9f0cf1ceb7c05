/// Queue positions that may be replaced, in the journal.
extension JournalOverlay {
    func applyCollapse(_ record: RecordView, _ bytes: UnsafeRawBufferPointer) {
        active.weight += 1
        switch record {
        case .collapsible(let view):
            let stored = StoredCollapsible(view, in: bytes)
            set(stored.session, stored.position, stored)
        case .collapsibleEnded(let session, let position): set(session, position, nil)
        default: preconditionFailure("a record of a collapse key is \(record)")
        }
    }

    private func set(_ session: UInt64, _ position: UInt64, _ stored: StoredCollapsible?) {
        let place = CollapseChanges.Place(session: session, position: position)
        active.collapse.positions.updateValue(stored, forKey: place)
    }

    /// The active segment's changes, without those of sessions that it removed.
    func collectCollapse() -> CollapseChanges {
        var changes = active.collapse
        guard !changes.isEmpty else { return changes }
        let removed = Set(active.deltas.lazy.filter(\.isRemoved).map(\.session))
        if !removed.isEmpty {
            changes.positions = changes.positions.filter { !removed.contains($0.key.session) }
        }
        return changes
    }

    /// Hands the positions to `visitor`; sessions of some may be gone.
    func restoreCollapse(
        _ database: Database, _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        var changed: [CollapseChanges.Place: StoredCollapsible?] = [:]
        for segment in sealed + [active] { changed.merge(segment.collapse.positions) { $1 } }
        try database.forEachCollapsible { stored in
            let place = CollapseChanges.Place(session: stored.session, position: stored.position)
            if changed[place] == nil { visitor.visit(stored) }
        }
        for case .some(let stored) in changed.values { visitor.visit(stored) }
    }
}
