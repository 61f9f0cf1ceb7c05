import HermesTesting
import MQTTCodec
import Store

/// The shard's writes, reduced to facts that a client may learn only after the commit.
struct StoreView {
    private struct SubscriptionKey: Hashable {
        let session: UInt64
        let filter: [UInt8]
    }

    private struct IdentifierKey: Hashable {
        let session: UInt64
        let identifier: PacketIdentifier
    }

    private let store: DelayedStore
    private var groupsSeen = 0
    /// In the group being read: serial numbers by message number.
    private var serials: [UInt64: Int] = [:]
    /// The first group that stored a message for a receiver of QoS 1 or 2, or as retained.
    private var messages: [Int: UInt64] = [:]
    private var sessions: [[UInt8]: (number: UInt64, ticket: UInt64)] = [:]
    private var subscriptions: [SubscriptionKey: UInt64] = [:]
    private var released: [IdentifierKey: UInt64] = [:]
    private var inboundRemoved: [IdentifierKey: UInt64] = [:]

    init(_ store: DelayedStore) { self.store = store }

    /// Reads the groups submitted since the last call.
    mutating func update() {
        while groupsSeen < store.groups.count {
            let (ticket, records) = store.groups[groupsSeen]
            groupsSeen += 1
            serials = [:]
            for record in records { note(record, ticket) }
        }
    }

    /// True when a message's first group is committed, or none was needed.
    func isStored(serial: Int) -> Bool { isComplete(messages[serial]) }

    func isSessionStored(_ clientID: [UInt8]) -> Bool {
        guard let session = sessions[clientID] else { return false }
        return isComplete(session.ticket)
    }

    func isSubscriptionStored(_ clientID: [UInt8], _ filter: [UInt8]) -> Bool {
        guard let session = sessions[clientID] else { return true }
        return isComplete(
            subscriptions[SubscriptionKey(session: session.number, filter: filter)])
    }

    /// True when PUBREC of a receiver is stored, so that only PUBREL is due.
    func isReleaseStored(_ clientID: [UInt8], _ identifier: PacketIdentifier) -> Bool {
        isComplete(clientID, identifier, released)
    }

    /// True when the end of an inbound QoS 2 exchange is stored.
    func isInboundEndStored(_ clientID: [UInt8], _ identifier: PacketIdentifier) -> Bool {
        isComplete(clientID, identifier, inboundRemoved)
    }

    private func isComplete(
        _ clientID: [UInt8], _ identifier: PacketIdentifier,
        _ tickets: [IdentifierKey: UInt64]
    ) -> Bool {
        guard let session = sessions[clientID] else { return true }
        return isComplete(
            tickets[IdentifierKey(session: session.number, identifier: identifier)])
    }

    private func isComplete(_ ticket: UInt64?) -> Bool {
        guard let ticket else { return true }
        return !store.pending.contains(ticket)
    }

    private mutating func keep(_ number: UInt64, _ ticket: UInt64) {
        guard let serial = serials[number], messages[serial] == nil else { return }
        messages[serial] = ticket
    }

    private mutating func note(_ record: StoreRecord, _ ticket: UInt64) {
        switch record {
        case .session(let number, let clientID, _):
            sessions[clientID] = (number, ticket)
        case .message(let number, _, let payload, _, _, _):
            serials[number] = NumberedMessage.serial(payload)
        case .queued(_, _, let number, let qos, _, _) where qos > 0: keep(number, ticket)
        case .retained(let number): keep(number, ticket)
        case .subscription(let session, let filter, _):
            subscriptions[SubscriptionKey(session: session, filter: filter)] = ticket
        case .released(let session, let position):
            released[
                IdentifierKey(
                    session: session, identifier: PacketIdentifier(position: position))] = ticket
        case .inboundRemoved(let session, let identifier):
            guard let identifier = PacketIdentifier(identifier) else { return }
            inboundRemoved[IdentifierKey(session: session, identifier: identifier)] = ticket
        default: return
        }
    }
}
