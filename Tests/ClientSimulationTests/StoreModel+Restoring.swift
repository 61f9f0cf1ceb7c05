import HermesTesting

@testable import Store

/// What a broker of the simulation starts with.
extension StoreModel {
    /// True when nothing waits for any client.
    var isDrained: Bool { sessions.values.allSatisfy { $0.queue.isEmpty && $0.inbound.isEmpty } }

    /// The number of the client's session, if it has all of `filters`.
    func session(of client: String, with filters: [String]) -> UInt64? {
        sessions.first { _, session in
            session.clientIdentifier.elementsEqual(client.utf8)
                && filters.allSatisfy { session.subscriptions[Array($0.utf8)] != nil }
        }?.key
    }

    /// Hands over what the simulation uses: sessions with their queues, sequences, keys of publishes
    /// and replaceable positions.
    func restore(to visitor: inout (some StoreVisitor & ~Copyable)) {
        precondition(
            retained.isEmpty && receipts == ReceiptModel() && scheduled.isEmpty && tags.isEmpty
                && pushes.isEmpty && sessions.values.allSatisfy { $0.will == nil },
            "the simulation restores sessions, sequences and keys only")
        visitor.visit(lastSession: progress.lastSession, lastMessage: progress.lastMessage)
        let sorted = sessions.sorted { $0.key < $1.key }
        for (number, session) in sorted { Self.restore(number, session, to: &visitor) }
        for (number, session) in sorted {
            for (filter, qos) in session.subscriptions.sorted(by: {
                $0.key.lexicographicallyPrecedes($1.key)
            }) {
                filter.withUnsafeBytes { visitor.visit(subscription: $0, of: number, qos: qos) }
            }
        }
        for (number, session) in sorted {
            for identifier in session.inbound.sorted() {
                visitor.visit(packetIdentifier: identifier, of: number)
            }
        }
        for (channel, number) in sequences {
            channel.withUnsafeBytes { visitor.visit(channel: $0, number: number) }
        }
        visitor.visit(publishKeysFrom: 0)
        for key in publishKeys { visitor.visit(key) }
        for position in collapsible.sorted(by: {
            ($0.session, $0.position) < ($1.session, $1.position)
        }) {
            visitor.visit(position)
        }
    }

    private static func restore(
        _ number: UInt64, _ session: Session, to visitor: inout (some StoreVisitor & ~Copyable)
    ) {
        session.clientIdentifier.withUnsafeBytes { identifier in
            (session.userName ?? []).withUnsafeBytes { userName in
                visitor.visit(
                    StoredSession(
                        number: number, clientIdentifier: identifier,
                        userName: session.userName == nil ? nil : userName,
                        isAttached: session.isAttached, detachedSinceMs: session.detachedSinceMs,
                        horizon: session.horizon, end: session.end,
                        waitingMessages: session.queue.count,
                        waitingBytes: session.waitingBytes,
                        holdsShared: false, hasEnded: false))
            }
        }
    }
}
