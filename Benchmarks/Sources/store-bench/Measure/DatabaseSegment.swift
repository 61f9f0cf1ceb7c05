import Store

/// Changes as a full segment leaves them behind, with the bytes that their locations name.
struct DatabaseSegment {
    private(set) var changes: SegmentChanges
    private var bytes: [UInt8] = []

    init(_ number: UInt64) { changes = SegmentChanges(segment: number) }

    mutating func session(_ number: UInt64, end: UInt64) {
        changes.newSessions.append(
            SegmentChanges.NewSession(
                number: number, clientID: Array("phone-\(number)-0123456789".utf8),
                userName: Array("user-\(number)".utf8)))
        changes.sessionStates.append(
            SegmentChanges.SessionState(
                number: number, isAttached: false, detachedSinceMs: 1_700_000_000_000, horizon: 1,
                end: end))
        changes.lastSession = max(changes.lastSession, number)
    }

    mutating func subscription(_ session: UInt64, _ filter: String) {
        changes.subscriptions.append(
            SegmentChanges.SubscriptionChange(
                session: session, filter: Array(filter.utf8), grant: 1))
    }

    mutating func message(_ number: UInt64, topic: [UInt8], payload: [UInt8]) {
        func append(_ content: [UInt8]) -> SegmentChanges.Location {
            bytes += [0, 0, 0, 0]
            bytes += content
            return SegmentChanges.Location(
                segment: changes.segment, offset: UInt32(bytes.count - content.count),
                count: UInt32(content.count))
        }
        changes.messages.append(
            SegmentChanges.SurvivingMessage(
                number: number, topic: append(topic), payload: append(payload), qos: 1,
                retain: false, expiresAtMs: 0, references: 1))
        changes.lastMessage = max(changes.lastMessage, number)
    }

    mutating func queued(_ session: UInt64, _ position: UInt64, message: UInt64) {
        changes.queued.append(
            SegmentChanges.QueuedPosition(
                session: session, position: position, message: message, qos: 1, retain: false,
                isReleased: false))
    }

    mutating func finished(_ session: UInt64, through position: UInt64) {
        changes.finished.append(
            SegmentChanges.PositionRange(session: session, first: 1, last: position))
    }

    mutating func retained(_ topic: [UInt8], message: UInt64) {
        changes.retained.append(SegmentChanges.RetainedChange(topic: topic, message: message))
    }

    mutating func will(_ session: UInt64, message: UInt64) {
        changes.wills.append(SegmentChanges.WillChange(session: session, message: message))
    }

    /// Brings the queue's rows into the order of their keys, as the store hands them over.
    mutating func sort() {
        changes.queued.sort { ($0.session, $0.position) < ($1.session, $1.position) }
    }

    func apply(to database: Database) throws {
        // The pointers stay within the bytes, which outlive the call.
        try bytes.withUnsafeBytes { bytes in
            _ = try database.apply(changes) { location in
                UnsafeRawBufferPointer(
                    rebasing: bytes[Int(location.offset)...].prefix(Int(location.count)))
            }
        }
    }
}
