import CLinux

/// The life of segments: from their first frame to the mover, and back to be used again.
extension Committer {
    /// An idle segment with a smaller weight than this stays in memory.
    private static let heldWeight = 1_000
    /// On a disk that is nearly full, the active segment moves at most once in this time.
    private static let tightMilliseconds: UInt64 = 50

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
        let written = activeGrowth
        activeGrowth = 0
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
        move(overlay.seal(next: number), written: written)
    }

    func move(_ changes: SegmentChanges, written: Int = .max) {
        guard let reader = journal.reader(of: changes.segment) else {
            preconditionFailure("segment \(changes.segment) was freed before it was moved")
        }
        moves.append(
            DiskDemand.Move(
                growth: min(changes.growth, written), sessions: changes.sessionCount,
                fileBytes: reader.file.capacity))
        movers.post(.apply(changes, reader))
    }

    /// Handles the mover's report that the database has a segment.
    func moved(_ number: UInt64) {
        overlay.applied(number)
        overlay.compact()
        moves.removeFirst()
        reusable.append((number, readNumber))
        freeSegments()
        checkRoom(hermes_monotonic_ms())
        requestSpare()
        noteSegments()
    }

    /// The time from which the active segment moves although it is not full, in milliseconds; `nil`
    /// when it stays until then.
    ///
    /// When nothing was added to it for a while, it moves if its part of the overlay takes memory
    /// worth freeing. If it removes what the database has, it moves so that the database can shrink:
    /// now and then, and on a disk that is nearly full as soon as the last move has ended. There it
    /// also moves while it grows, because little waits then for the room of a move.
    var earlySealMs: UInt64? {
        guard unsynced.isEmpty, waiting.isEmpty, journal.failure == nil, !isClosing,
            overlay.sealed.count < options.journal.segmentCount
        else { return nil }
        if room.isTight {
            guard overlay.sealed.isEmpty, !overlay.isActiveEmpty,
                overlay.activeRemovals > 0
                    || activeGrowth >= options.journal.segmentBytes / 4
            else { return nil }
            return sealedEarlyMs + Self.tightMilliseconds
        }
        let idleMs = lastCommitMs + options.idleMilliseconds
        if overlay.activeWeight >= Self.heldWeight { return idleMs }
        guard overlay.activeRemovals > 0 else { return nil }
        return max(idleMs, sealedEarlyMs + options.removalMilliseconds)
    }

    /// Seals the active segment before it is full, if that is due.
    func sealEarly(_ now: UInt64) {
        guard let time = earlySealMs, now >= time else { return }
        sealedEarlyMs = now
        do throws(StoreFailure) {
            try beginSegment(1)
        } catch {
            // Not tried again before something else was committed.
            lastCommitMs = now
            fail(error)
        }
    }

    /// Asks the mover to create the file of the next segment while the active one fills. On a disk
    /// that is nearly full, the file of a segment that moves is used again instead.
    func requestSpare() {
        if room.isTight {
            guard overlay.sealed.isEmpty, room.hasRoom(for: options.journal.segmentBytes) else {
                return
            }
        }
        if let request = journal.spareRequest() { movers.post(.spare(request)) }
    }

    // MARK: Room

    /// Looks at the file system, and at what the store still needs of it. While there is little
    /// room, free files of the journal are given back, and the mover keeps the database small.
    func checkRoom(_ now: UInt64) {
        let wasTight = room.isTight
        let active = DiskDemand.Move(
            growth: activeGrowth + unsynced.reduce(0) { $0 + $1.batch.growth } + waiting.growth,
            sessions: overlay.activeSessions)
        let demand = DiskDemand(
            moves: moves + [active], databaseBytes: databaseBytes,
            journalBytes: journal.missingBytes(beside: waiting.bytes) + missingBallast)
        room.check(now, demand, submitted: submittedGrowth, outbox)
        if room.isTight {
            journal.keepFreeFiles(atMost: 1)
            if !wasTight { movers.post(.makeRoom) }
        }
        if missingBallast > 0, room.hasRoom(for: ballast.bytes) { ballast.make() }
    }

    private var missingBallast: Int { ballast.exists ? 0 : ballast.bytes }

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
