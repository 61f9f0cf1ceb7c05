import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// The end of a group of records, and the backlog of those that the store has not written.
extension Shard {
    /// Ends the current group of records; returns its ticket.
    @discardableResult
    package mutating func commit(_ action: CommitLog.Action = .none) -> UInt64 {
        let ticket = commits.commit(action)
        noteBacklog()
        return ticket
    }

    @inline(__always)
    package mutating func noteBacklog() {
        guard commits.fillsBacklog(bound: context.limits.storeBacklogBytes) else { return }
        context.counters.limits.add(.storeBacklog)
        context.notices.append(.storeBehind(bytes: commits.backlogBytes))
    }
}
