import HermesTesting

@testable import Store

/// What a broker of the simulation starts with.
extension StoreModel {
    /// True when nothing waits for any client.
    var isDrained: Bool { sessions.values.allSatisfy { $0.queue.isEmpty && $0.inbound.isEmpty } }

    /// The number of the client's session, if it has all of `filters`.
    func session(of client: String, with filters: [String]) -> UInt64? {
        sessions.first { _, session in
            session.clientID.elementsEqual(client.utf8)
                && filters.allSatisfy { session.subscriptions[Array($0.utf8)] != nil }
        }?.key
    }

    /// Hands over what the simulation uses: sessions with their queues, and facts.
    func restore(to visitor: inout (some StoreVisitor & ~Copyable)) {
        precondition(
            retained.isEmpty && sessions.values.allSatisfy { $0.will == nil },
            "the simulation restores sessions and facts only")
        visitor.visit(lastSession: progress.lastSession, lastMessage: progress.lastMessage)
        let sorted = sessions.sorted { $0.key < $1.key }
        for (number, session) in sorted { Self.restore(number, session, to: &visitor) }
        for (number, session) in sorted {
            for (filter, qos) in session.subscriptions.sorted(by: {
                $0.key.lexicographicallyPrecedes($1.key)
            }) {
                filter.withUnsafeBytes {
                    _ = visitor.visit(subscription: $0, of: number, grant: qos)
                }
            }
        }
        for (number, session) in sorted {
            for identifier in session.inbound.sorted() {
                visitor.visit(packetIdentifier: identifier, of: number)
            }
        }
        for (name, fact) in facts.sorted(by: { $0.key < $1.key }) {
            name.key.withUnsafeBytes { key in
                fact.value.withUnsafeBytes {
                    _ = visitor.visit(
                        StoredFact(table: name.table, owner: fact.owner, key: key, value: $0))
                }
            }
        }
    }

    private static func restore(
        _ number: UInt64, _ session: Session, to visitor: inout (some StoreVisitor & ~Copyable)
    ) {
        session.clientID.withUnsafeBytes { identifier in
            (session.userName ?? []).withUnsafeBytes { userName in
                _ = visitor.visit(
                    StoredSession(
                        number: number, clientID: identifier,
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
