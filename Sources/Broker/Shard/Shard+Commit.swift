import MQTTCore
import Store
import Structures

extension Shard {
    /// Ends the current group of records; returns its ticket.
    @discardableResult
    mutating func commit(_ action: CommitLog.Action) -> UInt64 {
        let ticket = writes.commit()
        commits.add(ticket, action)
        if writes.byteCount + backlog.bytes >= settings.storeBacklogBytes, !isStoreBehind {
            isStoreBehind = true
            counters.limits.add(.storeBacklog)
            notices.append(.storeBehind(bytes: writes.byteCount + backlog.bytes))
        }
        return ticket
    }

    /// Ends the current group of records; nothing waits for it but the messages in it.
    mutating func commitUnwatched() { commit(.none) }

    /// Hands the turn's writes to the store, which never waits.
    package mutating func submitWrites() {
        if !writes.isEmpty {
            if writes.hasUncommittedRecords { commitUnwatched() }
            backlog.add(bytes: writes.byteCount, through: writes.lastTicket)
            store.submit(&writes)
        }
        guard !reads.isEmpty else { return }
        for read in reads { store.read(read) }
        reads.removeAll(keepingCapacity: true)
    }

    /// Releases what waited for the commits that have completed: acknowledgements, CONNACKs, answers
    /// to the admin plane, and the messages themselves.
    package mutating func takeCompletions() {
        let (refused, wasBehind) = (storeRefuses, isStoreBehind)
        storeRefuses = !store.isAccepting
        takeCommits()
        if (refused && !storeRefuses) || (wasBehind && !isStoreBehind) { resumeAwaitingStore() }
        takeSlices()
        readEnded()
        closeDoomed()
    }

    private mutating func takeCommits() {
        completions.removeAll(keepingCapacity: true)
        store.takeCompletions(&completions)
        guard !completions.isEmpty else { return }
        let ranges = completions
        for range in ranges {
            for ticket in range { perform(commits.complete(ticket), ticket) }
        }
        backlog.complete(commits)
        if backlog.bytes + writes.byteCount <= settings.storeBacklogBytes / 2 {
            isStoreBehind = false
        }
        openHeld()
        pumpCommitted()
    }

    private mutating func perform(_ action: CommitLog.Action, _ ticket: UInt64) {
        switch action {
        case .none: return
        case .acknowledge(let handle): releaseAcknowledgements(handle)
        case .open(let handle, let sessionPresent):
            heldOpenings.append((ticket, handle, sessionPresent))
        case .reply(let number):
            guard let pending = pendingReplies.removeValue(forKey: number) else { return }
            pending.reply(.success(pending.counts))
        }
    }

    /// CONNACK waits for all commits up to its own, whatever order they complete in: what the session's
    /// former connection began is then stored, and nothing of it can be answered early.
    private mutating func openHeld() {
        guard !heldOpenings.isEmpty else { return }
        let held = heldOpenings
        heldOpenings.removeAll(keepingCapacity: true)
        for opening in held {
            if commits.areCommitted(through: opening.ticket) {
                finishOpening(opening.handle, sessionPresent: opening.sessionPresent)
            } else {
                heldOpenings.append(opening)
            }
        }
    }

    /// Sessions whose next message waited for a commit look again.
    private mutating func pumpCommitted() {
        for _ in 0..<awaitingCommit.count {
            guard let session = awaitingCommit.popLast() else { return }
            stillAwaiting.append(session)
        }
        while let session = stillAwaiting.popLast() {
            sessions[session].awaitsCommit = false
            if sessions[session].generation != 0 { pump(session) }
        }
    }
}
