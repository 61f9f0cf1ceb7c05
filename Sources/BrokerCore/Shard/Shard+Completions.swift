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
            connections.releaseStoreWaiters()
            walks.letGoOn()
            agenda.isStirred = true
        }
        if connections.hasReleased { resumeStoreWaiters() }
        takeSlices()
        readEnded()
        closeEndingWithinBudget()
    }

    /// Sessions whose messages are released each time that a turn settles.
    private static var mostReleased: Int { 1_024 }

    private mutating func takeCommits() {
        if commits.fetchCompletions() { finishCompletions() }
        guard committed.count > 0 else { return }
        // A stored message to very many is released to all of them here.
        connections.beginSource()
        connections.beginDelivery(to: committed.count)
        for _ in 0..<Self.mostReleased {
            guard let session = committed.popFirst() else { break }
            if sessions[session].generation != 0 { pump(session) }
        }
        connections.endDelivery()
    }

    private mutating func finishCompletions() {
        while let action = commits.nextCompletion(context) { carryOut(action) }
        while let action = commits.nextRepeat() { carryOut(action) }
        commits.finishCompletions(context)
        while let handle = commits.nextOpening() { finishCommit(handle) }
        sessions.takeAwaitingCommit(&committed)
    }

    /// Goes on with queues whose messages are checked under new rules, for a share of the turn.
    @inline(never)
    package mutating func continueRechecks() {
        let bound = rights.steps + 4 * WorkBudget.mostRuleSteps
        for _ in 0..<min(rechecks.count, Self.mostReleased) where rights.steps < bound {
            guard let handle = rechecks.popFirst() else { break }
            if connections.isLive(handle) { pump(connections[handle].session) }
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

    /// Clients that have waited for the store and go on each time that a turn settles; more follow
    /// then, and in the next turns.
    private static var mostResumed: Int { 256 }

    /// Resumes some of the clients that have waited for the store, in the order of waiting.
    @inline(never)
    private mutating func resumeStoreWaiters() {
        for _ in 0..<Self.mostResumed {
            guard let handle = connections.popStoreWaiter() else { return }
            resumeIfPossible(handle)
        }
    }
}
