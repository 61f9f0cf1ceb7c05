import BrokerAPI
import MQTTCore
import Store
import Structures

/// What arrives from the store: completed commits, and parts of queues. Their waiters go on.
extension Shard {
    /// Releases all that waited for completed commits: acknowledgements, CONNACKs, answers to the
    /// admin plane, and messages.
    package mutating func takeCompletions() {
        let (wasRefusing, wasFull) = (commits.isRefusing, commits.isBacklogFull)
        commits.updateRefusal()
        takeCommits()
        if (wasRefusing && !commits.isRefusing) || (wasFull && !commits.isBacklogFull) {
            resumeStoreWaiters()
            agenda.isStirred = true
        }
        takeSlices()
        readEnded()
        closeEndingWithinBudget()
    }

    private mutating func takeCommits() {
        guard commits.fetchCompletions() else { return }
        while let action = commits.nextCompletion(context) { carryOut(action) }
        while let action = commits.nextRepeat() { carryOut(action) }
        commits.finishCompletions(context)
        while let handle = commits.nextOpening() { finishCommit(handle) }
        sessions.takeAwaitingCommit(&committed)
        // A stored message to very many is released to all of them here.
        connections.beginSource()
        connections.beginDelivery(to: committed.count)
        while let session = committed.popLast() {
            if sessions[session].generation != 0 { pump(session) }
        }
        connections.endDelivery()
    }

    /// Goes on with queues whose messages are checked under new rules, for a share of the turn.
    @inline(never)
    package mutating func continueRechecks() {
        let bound = rights.steps + 4 * WorkBudget.mostRuleSteps
        for handle in rechecks.take() {
            guard connections.isLive(handle) else { continue }
            if rights.steps < bound {
                pump(connections[handle].session)
            } else {
                rechecks.add(handle)
            }
        }
        chargeRights()
    }

    private mutating func carryOut(_ action: CommitLog.Action) {
        switch action {
        case .none: return
        case .acknowledge(let handle): releaseAcknowledgements(handle)
        case .follower(let number): followers.committed(number)
        }
    }

    /// Resumes waiting clients in the order of waiting, because the store accepts messages again.
    private mutating func resumeStoreWaiters() {
        for handle in connections.takeStoreWaiters() { resumeIfPossible(handle) }
        walks.letGoOn()
    }
}
