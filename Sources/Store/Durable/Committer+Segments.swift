/// The life of segments: from their first frame to the mover, and back to be used again.
extension Committer {
    /// An idle segment with a smaller weight than this stays in memory.
    private static let heldWeight = 1_000

    /// Begins a new segment unless the active one has room for `bytes`. False when too many
    /// segments wait for the database.
    func prepareSegment(_ bytes: Int) throws(StoreFailure) -> Bool {
        if journal.failure == nil, !journal.isFull(for: bytes),
            overlay.activeWeight < options.maxSegmentWeight
        {
            return true
        }
        // Counts full segments, those that a read holds, and those that failed.
        guard journal.segmentNumbers.count <= 2 * options.journal.segmentCount else {
            return false
        }
        try beginSegment(bytes)
        return true
    }

    func beginSegment(_ bytes: Int) throws(StoreFailure) {
        if journal.failure == nil {
            try synchronize()
            try journal.beginSegment(payloadBytes: bytes)
        } else {
            try journal.restart(payloadBytes: bytes)
        }
        guard let number = journal.activeSegment else {
            preconditionFailure("a journal without a segment after it began one")
        }
        seal(next: number)
        requestSpare()
        noteSegments()
    }

    /// Seals the former segment and hands it to the mover, unless nothing was synchronised to it.
    func seal(next number: UInt64) {
        let former = overlay.active.number
        guard journal.isNamedByNext(former) else {
            overlay.skip(to: number)
            // A segment without content is freed together with those before it, or at once without
            // any. A disk that keeps failing must not fill up with empty segments.
            if overlay.sealed.isEmpty { reusable.append((former, readNumber)) }
            freeSegments()
            return
        }
        // Handed over even without changes: when a segment is named by the next one, a start
        // demands to find it.
        move(overlay.seal(next: number))
    }

    func move(_ changes: SegmentChanges) {
        guard let reader = journal.reader(of: changes.segment) else {
            preconditionFailure("segment \(changes.segment) was freed before it was moved")
        }
        movers.post(.apply(changes, reader))
    }

    /// Handles the mover's report that the database has a segment.
    func moved(_ number: UInt64) {
        overlay.applied(number)
        overlay.compact()
        reusable.append((number, readNumber))
        freeSegments()
        noteSegments()
    }

    /// True when the active segment's part of the overlay takes memory worth freeing, and the
    /// segment can be sealed.
    var holdsMemory: Bool {
        overlay.activeWeight >= Self.heldWeight && unsynced.isEmpty && waiting.isEmpty
            && overlay.sealed.count < options.journal.segmentCount && journal.failure == nil
    }

    /// Seals a segment to which nothing was added for a while, so that the database gets it and its
    /// memory is freed.
    func sealIfIdle(_ now: UInt64) {
        guard !isClosing, holdsMemory, now >= lastCommitMs + options.idleMilliseconds else {
            return
        }
        do throws(StoreFailure) {
            try beginSegment(1)
        } catch {
            // Not tried again before something else was committed.
            lastCommitMs = now
            fail(error)
        }
    }

    /// Asks the mover to create the file of the next segment while the active one fills.
    func requestSpare() {
        if let request = journal.spareRequest() { movers.post(.spare(request)) }
    }

    func freeSegments() {
        while let first = reusable.first, first.afterRead <= readsDone {
            journal.free(through: first.segment)
            reusable.removeFirst()
        }
    }

    func noteSegments() {
        // New messages are refused a little before acknowledgements would have to wait, and before
        // more files than configured are needed.
        let isCongested = overlay.sealed.count >= max(2, options.journal.segmentCount - 1)
        outbox.update { figures in
            figures.isCongested = isCongested
            figures.waitingSegments = overlay.sealed.count
            figures.journalBytes = journal.diskBytes
            figures.setAsideFiles = journal.setAsideFiles
        }
    }
}
