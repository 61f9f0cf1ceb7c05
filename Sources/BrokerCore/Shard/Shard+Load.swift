import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Asks the store for parts of queues, through the states of ``QueueLoad``.
extension Shard {
    /// Requests the next messages from the store if the client can take them.
    package mutating func loadMore(_ session: UInt32) {
        guard sessions[session].outbound.isStoring,
            !sessions.loads.isLoading(sessions[session].number),
            let target = sessions[session].connection, connections[target].machine.isActive,
            connections[target].outlet.count < context.limits.outputBytes
        else { return }
        load(session, for: target)
    }

    /// Requests the messages that were in flight, as far as the in-flight window has room for them,
    /// and the waiting ones after them.
    package mutating func load(_ session: UInt32, for target: Handle) {
        passHoles(session)
        let queue = sessions[session].outbound
        let count = QueueWindow.waitingToLoad(queue)
        let limit = context.limits.maxInFlight
        guard count > 0 || QueueWindow.resends(queue, limit: limit) else { return }
        let number = sessions[session].number
        let below = queue.firstStored + UInt64(count)
        guard sessions.loads[number].begin(for: target, below: below) == .read else { return }
        var ticket: UInt64 = 0
        if count > 0 {
            // Recorded before any of them is sent: a message that may have been sent keeps its
            // identifier [MQTT-4.4.0-1], and no limit drops it.
            commits.records.horizon(session: number, position: below)
            ticket = commits.nextTicket
        }
        commits.read(
            QueueRead(
                session: number, from: queue.firstUnloaded, below: below,
                maxMessages: Int(max(QueueWindow.messages, limit)), maxBytes: QueueWindow.bytes,
                tag: ReadTag.load.encoded, ticket: ticket))
    }

    /// Removes the queue of an offline client from memory; the store has all of it.
    package mutating func unload(_ session: UInt32) {
        let before = sessions[session].outbound
        let number = sessions[session].number
        sessions.loads.connectionClosed(number)
        rememberHoles(session)
        sessions[session].outbound.unload(pool: context.pool)
        sessions.totals.replace(before, by: sessions[session].outbound)
        commits.records.horizon(
            session: number, position: sessions[session].outbound.firstStored)
        commits.records.detached(number, sinceMs: context.wallClockMs)
    }
}
