@testable import Store

/// A journal segment in memory: the changes, and the bytes at their locations.
struct SegmentBuilder {
    var changes: SegmentChanges
    private(set) var bytes: [UInt8] = []

    init(_ segment: UInt64) { changes = SegmentChanges(segment: segment) }

    mutating func session(_ number: UInt64, _ clientID: String, user: String? = nil) {
        changes.newSessions.append(
            SegmentChanges.NewSession(
                number: number, clientID: Array(clientID.utf8),
                userName: user.map { Array($0.utf8) }))
        changes.lastSession = max(changes.lastSession, number)
    }

    mutating func state(
        _ session: UInt64, isAttached: Bool? = nil, detachedSinceMs: Int64? = nil,
        horizon: UInt64? = nil, end: UInt64? = nil
    ) {
        changes.sessionStates.append(
            SegmentChanges.SessionState(
                number: session, isAttached: isAttached, detachedSinceMs: detachedSinceMs,
                horizon: horizon, end: end))
    }

    /// Appends content as in a journal: the topic, the payload's length, the payload, and the
    /// record of the identifier if there is one.
    mutating func message(
        _ number: UInt64, topic: [UInt8], payload: [UInt8], qos: UInt8 = 1, retain: Bool = false,
        expiresAtMs: Int64 = 0, messageID: [UInt8] = []
    ) {
        func append(_ content: [UInt8]) -> SegmentChanges.Location {
            withUnsafeBytes(of: UInt32(content.count).littleEndian) { bytes += $0 }
            bytes += content
            return SegmentChanges.Location(
                segment: changes.segment, offset: UInt32(bytes.count - content.count),
                count: UInt32(content.count))
        }
        var message = SegmentChanges.SurvivingMessage(
            number: number, topic: append(topic), payload: append(payload), qos: qos,
            retain: retain, expiresAtMs: expiresAtMs, references: 1)
        if !messageID.isEmpty {
            bytes += [UInt8](repeating: 0, count: 9)
            message.messageID = append(messageID)
        }
        changes.messages.append(message)
        changes.lastMessage = max(changes.lastMessage, number)
    }

    mutating func message(_ number: UInt64, _ topic: String, _ payload: String) {
        message(number, topic: Array(topic.utf8), payload: Array(payload.utf8))
    }

    mutating func queued(
        _ session: UInt64, _ position: UInt64, message: UInt64, qos: UInt8 = 1,
        retain: Bool = false, isReleased: Bool = false, shared: String? = nil
    ) {
        if let shared { changes.sharedFilters.append(Array(shared.utf8)) }
        changes.queued.append(
            SegmentChanges.QueuedPosition(
                session: session, position: position, message: message, qos: qos, retain: retain,
                isReleased: isReleased,
                shared: shared == nil
                    ? SegmentChanges.QueuedPosition.none
                    : UInt32(changes.sharedFilters.count - 1)))
    }

    mutating func finished(_ session: UInt64, _ positions: ClosedRange<UInt64>) {
        changes.finished.append(
            SegmentChanges.PositionRange(
                session: session, first: positions.lowerBound, last: positions.upperBound))
    }

    mutating func released(_ session: UInt64, _ positions: ClosedRange<UInt64>) {
        changes.released.append(
            SegmentChanges.PositionRange(
                session: session, first: positions.lowerBound, last: positions.upperBound))
    }

    mutating func retained(_ topic: String, message: UInt64?) {
        changes.retained.append(
            SegmentChanges.RetainedChange(topic: Array(topic.utf8), message: message))
    }

    mutating func will(_ session: UInt64, message: UInt64?) {
        changes.wills.append(SegmentChanges.WillChange(session: session, message: message))
    }

    mutating func subscription(_ session: UInt64, _ filter: String, qos: UInt32?) {
        changes.subscriptions.append(
            SegmentChanges.SubscriptionChange(
                session: session, filter: Array(filter.utf8), grant: qos))
    }

    mutating func inbound(_ session: UInt64, _ packetIdentifier: UInt16, isPresent: Bool = true) {
        changes.inbound.append(
            SegmentChanges.InboundChange(
                session: session, packetIdentifier: packetIdentifier, isPresent: isPresent))
    }

    /// A change of a fact that the segment has not changed yet; `nil` removes it.
    mutating func fact(_ table: UInt8, _ key: String, _ value: [UInt8]?) {
        let name = Array(key.utf8)
        var entry = FactChanges.Entry(
            keyOffset: UInt32(changes.facts.bytes.count), keyCount: UInt32(name.count),
            order: UInt32(changes.facts.entries.count), table: table, owner: FactOwner(name),
            state: value == nil ? .removed : .stored, isNew: false)
        changes.facts.bytes += name
        entry.valueOffset = UInt32(changes.facts.bytes.count)
        entry.valueCount = UInt32(value?.count ?? 0)
        changes.facts.bytes += value ?? []
        changes.facts.entries.append(entry)
    }

    /// Applies the segment with a content buffer that each call overwrites, as the contract allows.
    @discardableResult
    func apply(to database: Database, largestRead: Int = .max) throws -> Bool {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(bytes.count, 1), alignment: 1)
        defer { buffer.deallocate() }
        return try database.apply(changes) { location in
            precondition(location.segment == changes.segment, "content of another segment")
            precondition(Int(location.count) <= largestRead, "asked for \(location.count) bytes")
            bytes.withUnsafeBytes {
                buffer.copyMemory(
                    from: UnsafeRawBufferPointer(
                        rebasing: $0[Int(location.offset)...].prefix(Int(location.count))))
            }
            return UnsafeRawBufferPointer(rebasing: buffer[..<Int(location.count)])
        }
    }
}
