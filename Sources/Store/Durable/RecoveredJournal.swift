/// The journal as a start has read it. Its segments wait for the mover as if they had just been
/// filled, and the overlay has what the database lacks.
struct RecoveredJournal: ~Copyable {
    /// Its first segment has been begun.
    var journal: Journal
    var overlay: JournalOverlay
    /// The changes of the sealed segments, oldest first.
    private(set) var sealed: [SegmentChanges]
    let report: ReplayReport

    /// Reads the segments that the database does not have yet.
    ///
    /// - Throws: ``StoreFailure``; nothing is lost then, and the next start finds the same.
    static func replay(
        _ journal: consuming Journal, beyond database: Database
    ) throws(StoreFailure) -> RecoveredJournal {
        var journal = journal
        let (progress, path) = (database.progress, database.path)
        var overlay = JournalOverlay(
            activeSegment: progress.appliedSegment, lastSession: progress.lastSession,
            lastMessage: progress.lastMessage)
        overlay.formerOwners = FormerOwners(database)
        var sealed: [SegmentChanges] = []
        let report = try journal.replayAndBegin { (segment, offset, bytes) throws(StoreFailure) in
            Self.begin(segment, &overlay, &sealed, progress)
            do throws(DamagedRecord) {
                try overlay.apply(bytes, at: offset)
            } catch {
                throw StoreFailure(
                    operation: "bring the journal into", path: path,
                    reason: "segment \(segment) of the journal holds records that make no sense",
                    kind: .damaged, cure: "Start the version of hermesd that wrote them.")
            }
        }
        guard let active = journal.activeSegment else {
            preconditionFailure("a journal without a segment after it began one")
        }
        Self.begin(active, &overlay, &sealed, progress)
        overlay.formerOwners = FormerOwners(nil)
        return RecoveredJournal(
            journal: journal, overlay: overlay, sealed: sealed, report: report)
    }

    private static func begin(
        _ segment: UInt64, _ overlay: inout JournalOverlay, _ sealed: inout [SegmentChanges],
        _ progress: Database.Progress
    ) {
        guard overlay.active.number != segment else { return }
        if overlay.active.number == progress.appliedSegment {
            overlay.skip(to: segment)
        } else {
            // Sealed even without changes: the next segment names it, so the database must know of
            // it.
            sealed.append(overlay.seal(next: segment))
        }
    }
}
