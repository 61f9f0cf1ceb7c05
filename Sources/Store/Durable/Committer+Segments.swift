/// Segments on their way from the first frame to the mover, and back to be used again.
extension Committer {
    /// With less than this in memory an idle segment stays as it is.
    private static let heldWeight = 1_000

    /// A segment with room for so many bytes; false when too many wait for the database.
    func prepareSegment(_ bytes: Int) throws(StoreFailure) -> Bool {
        if journal.failure == nil, !journal.isFull(for: bytes),
            overlay.activeWeight < options.maxSegmentWeight
        {
            return true
        }
        // Full ones, those that a read holds, and those that failed.
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

    /// Hands the former segment to the mover, unless nothing was synced to it.
    func seal(next number: UInt64) {
        let former = overlay.active.number
        guard journal.isNamedByNext(former) else {
            overlay.skip(to: number)
            // Unless it is freed with those before it: a disk that goes on failing must not fill up
            // with segments that nothing was written to.
            if overlay.sealed.isEmpty { reusable.append((former, readNumber)) }
            freeSegments()
            return
        }
        // Also if it has changed nothing: a start that finds a segment named wants to have it.
        move(overlay.seal(next: number))
    }

    func move(_ changes: SegmentChanges) {
        guard let reader = journal.reader(of: changes.segment) else {
            preconditionFailure("segment \(changes.segment) was freed before it was moved")
        }
        movers.post(.apply(changes, reader))
    }

    /// The database has a segment.
    func moved(_ number: UInt64) {
        overlay.applied(number)
        overlay.compact()
        reusable.append((number, readNumber))
        freeSegments()
        noteSegments()
    }

    /// The active segment's part of the overlay takes memory worth giving back, and can be sealed.
    var holdsMemory: Bool {
        overlay.activeWeight >= Self.heldWeight && unsynced.isEmpty && waiting.isEmpty
            && overlay.sealed.count < options.journal.segmentCount && journal.failure == nil
    }

    /// Lets the database have what nobody has added to for a while: it takes no memory then.
    func sealIfIdle(_ now: UInt64) {
        guard !isClosing, holdsMemory, now >= lastCommitMs + options.idleMilliseconds else {
            return
        }
        do throws(StoreFailure) {
            try beginSegment(1)
        } catch {
            // Not before something else was committed.
            lastCommitMs = now
            fail(error)
        }
    }

    /// A file for the segment after this one, made while this one fills.
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
        // New messages wait before acknowledgements have to, and before more files are needed.
        let isCongested = overlay.sealed.count >= max(2, options.journal.segmentCount - 1)
        outbox.update { figures in
            figures.isCongested = isCongested
            figures.waitingSegments = overlay.sealed.count
            figures.journalBytes = journal.diskBytes
            figures.setAsideFiles = journal.setAsideFiles
        }
    }
}
