import Structures

/// Applies records that are durable to the overlay.
extension JournalOverlay {
    /// Applies the records of whole groups. `offset` is the position of their first byte in the
    /// active segment's file.
    ///
    /// - Throws: ``DamagedRecord`` when the bytes were not written by a ``WriteBatch``. The overlay
    ///   must not be used then.
    mutating func apply(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt32
    ) throws(DamagedRecord) {
        var reader = RecordReader(bytes)
        var start = 0
        while let record = try reader.next() {
            guard apply(record, bytes, offset) else { throw DamagedRecord(offset: start) }
            start = reader.offset
        }
        endGroup()
    }

    /// Applies one record; false when it contradicts earlier ones.
    private mutating func apply(
        _ record: RecordView, _ bytes: UnsafeRawBufferPointer, _ offset: UInt32
    ) -> Bool {
        switch record {
        case .commit: endGroup()
        case .message(let number, let topic, let payload, let qos, let retain, let expiresAtMs):
            // Message numbers must rise, because the database looks messages up by number.
            let place = activeMessages.count - 1
            guard place < 0 || activeMessages[place].number < number else { return false }
            lastMessage = max(lastMessage, number)
            let index = messages.insert(
                Message(
                    number: number, segment: active.number, expiresAtMs: expiresAtMs,
                    topicOffset: offset + UInt32(topic.offset), topicCount: UInt32(topic.count),
                    payloadOffset: offset + UInt32(payload.offset),
                    payloadCount: UInt32(payload.count), references: 1, qos: qos,
                    retain: retain))
            activeMessages.append(MessagePlace(number: number, index: index))
        case .named(let number, let messageID): return name(number, messageID, offset)
        case .queued(let session, let position, let message, let qos, let retain, let isInWindow):
            return queue(session, position, message, qos, retain, isInWindow)
        case .shared(let session, let position, let filter):
            return setShared(session, position, Self.array(filter, bytes))
        case .horizon(let session, let position):
            delta(of: session).horizon = position
        case .released(let session, let position): release(session, position)
        case .finished(let session, let position): finish(session, position)
        case .session(let number, let identifier, let userName):
            lastSession = max(lastSession, number)
            delta(of: number).newSession = SegmentChanges.NewSession(
                number: number, clientID: Self.array(identifier, bytes),
                userName: userName.map { Self.array($0, bytes) })
        case .sessionRemoved(let number): removeSession(number)
        case .sessionEnded(let number): endSession(number)
        case .attached(let number):
            delta(of: number).isAttached = true
        case .detached(let number, let sinceMs):
            let delta = delta(of: number)
            delta.isAttached = false
            delta.detachedSinceMs = sinceMs
        case .subscription(let session, let filter, let grant):
            setSubscription(session, Self.array(filter, bytes), grant)
        case .subscriptionRemoved(let session, let filter):
            setSubscription(session, Self.array(filter, bytes), nil)
        case .inbound(let session, let identifier):
            setInbound(session, identifier, true)
        case .inboundRemoved(let session, let identifier):
            setInbound(session, identifier, false)
        case .retained(let number):
            guard let index = find(number) else { return false }
            let message = messages[index]
            messages[index].references += 1
            let topic = Self.array(
                RecordView.Bytes(
                    offset: Int(message.topicOffset - offset), count: Int(message.topicCount)),
                bytes)
            setRetained(topic, index)
        case .retainedRemoved(let topic): setRetained(Self.array(topic, bytes), nil)
        case .will(let session, let number):
            guard let index = find(number) else { return false }
            messages[index].references += 1
            setWill(session, .message(index))
        case .willRemoved(let session): setWill(session, .removed)
        case .fact(let place, let value, let isNew):
            active.weight += 1
            active.facts.put(
                Self.key(place, bytes), of: place.owner, Self.part(value, bytes), isNew: isNew)
        case .factRemoved(let place):
            active.weight += 1
            active.facts.remove(Self.key(place, bytes), of: place.owner)
        case .factsRemoved(let table, let from, let below):
            active.weight += 1
            active.facts.remove(
                table, from: Self.part(from, bytes), below: Self.part(below, bytes))
        case .former(let kind, let fields): return applyFormer(kind, fields, bytes)
        }
        return true
    }

    /// Notes the identifier of the last message, whose record ends where this one begins.
    private mutating func name(
        _ number: UInt64, _ messageID: RecordView.Bytes, _ offset: UInt32
    ) -> Bool {
        let place = activeMessages.count - 1
        guard place >= groupStart, activeMessages[place].number == number,
            let count = UInt8(exactly: messageID.count), count > 0
        else { return false }
        let index = activeMessages[place].index
        guard messages[index].messageIDOffset == offset + UInt32(messageID.offset) else {
            return false
        }
        messages[index].messageIDCount = count
        return true
    }

    /// Drops the messages of the group to which no record refers; records of later groups never do.
    private mutating func endGroup() {
        while groupStart < activeMessages.count {
            dropReference(activeMessages[groupStart].index)
            groupStart += 1
        }
    }

    /// Finds a message of the current group.
    func find(_ number: UInt64) -> UInt32? {
        var place = activeMessages.count - 1
        while place >= groupStart {
            if activeMessages[place].number == number { return activeMessages[place].index }
            place -= 1
        }
        return nil
    }

    mutating func dropReference(_ index: UInt32) {
        guard index != noIndex else { return }
        messages[index].references -= 1
        if messages[index].references == 0 { messages.remove(index) }
    }

    private static func key(_ place: FactPlace, _ bytes: UnsafeRawBufferPointer) -> FactKey {
        FactKey(place.table, part(place.key, bytes))
    }

    private static func part(
        _ range: RecordView.Bytes, _ bytes: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[range.offset..<range.offset + range.count])
    }

    private static func array(
        _ range: RecordView.Bytes, _ bytes: UnsafeRawBufferPointer
    ) -> [UInt8] {
        [UInt8](bytes[range.offset..<range.offset + range.count])
    }

    // MARK: Changes of a session

    private mutating func removeSession(_ number: UInt64) {
        let index = session(number)
        var entry = sessions[index].first
        while entry != noIndex {
            let next = entries[entry].next
            removeEntry(entry)
            entry = next
        }
        sessions[index].first = noIndex
        sessions[index].last = noIndex
        let delta = delta(ofRecord: index)
        if case .message(let message) = delta.will { dropReference(message) }
        delta.will = .unchanged
        delta.isRemoved = true
        if delta.newSession == nil { active.removals += 1 }
    }

    private mutating func endSession(_ number: UInt64) {
        let delta = delta(of: number)
        if case .message(let message) = delta.will { dropReference(message) }
        delta.endSession()
    }

    private mutating func setSubscription(
        _ session: UInt64, _ filter: [UInt8], _ grant: UInt32?
    ) {
        active.weight += 1
        delta(of: session).subscriptions[filter] = .some(grant)
    }

    private mutating func setInbound(
        _ session: UInt64, _ identifier: UInt16, _ isPresent: Bool
    ) {
        delta(of: session).inbound[identifier] = isPresent
    }

    private mutating func setRetained(_ topic: [UInt8], _ message: UInt32?) {
        active.weight += 1
        if message == nil { active.removals += 1 }
        if case .some(.some(let replaced)) = active.retained[topic] { dropReference(replaced) }
        active.retained[topic] = .some(message)
    }

    private mutating func setWill(_ session: UInt64, _ state: SessionDelta.WillState) {
        let delta = delta(of: session)
        if case .message(let replaced) = delta.will { dropReference(replaced) }
        delta.will = state
    }
}
