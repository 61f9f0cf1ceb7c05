import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Messages leave when their time is over, wherever they wait: a queue in memory, a queue in the
/// store, the retained messages. So nothing dead takes the place of what lives.
///
/// What was sent and not acknowledged stays, since its receiver may have it [MQTT-4.4.0-1].
extension Shard {
    /// Entries that are looked at in a turn.
    private static var sweptPerTurn: Int { 512 }
    /// Entries that are looked at to make room for one message.
    private static var sweptForRoom: Int { 4_096 }
    /// Units of an entry that is looked at, whose session lies anywhere in memory.
    private static var sweepUnits: Int { 16 }
    /// Units of a message that leaves.
    private static var expiryUnits: Int { 48 }
    /// Bytes that are read of what counts as in flight for one client.
    private static var readBytes: Int { 4 * 1_024 * 1_024 }
    /// Milliseconds after which a message is looked at again that the store is reading.
    private static var retryMilliseconds: Int64 { 1_000 }

    // MARK: Beginning

    /// Notes when a message expires that has got this position in a session's queue.
    @inline(__always)
    mutating func noteExpiry(_ message: Message, _ session: UInt32, at position: UInt64) {
        let expiresAtMs = message.expiresAtMs
        if expiresAtMs != 0 {
            noteExpiry(atMs: expiresAtMs, session, position, bytes: message.contentBytes)
        }
    }

    @inline(never)
    package mutating func noteExpiry(
        atMs expiresAtMs: Int64, _ session: UInt32, _ position: UInt64, bytes: Int
    ) {
        expiries.add(
            session, sessions[session].number, at: position, bytes: bytes,
            expiresAtMs: expiresAtMs)
    }

    /// Keeps a client's message as the retained one of its topic, until it expires.
    mutating func keepRetained(_ message: Message) {
        guard let record = retained.keep(message), message.expiresAtMs != 0 else { return }
        expiries.add(retained: record, expiresAtMs: message.expiresAtMs)
    }

    // MARK: Ending

    /// Removes messages that have expired, a slice in a turn.
    package mutating func sweepExpired() {
        let (looked, _) = sweep(most: Self.sweptPerTurn, isExact: false)
        readUnsure()
        expiries.noteSweep(at: context.now, hasMore: looked == Self.sweptPerTurn)
    }

    /// Removes messages that have expired, for one that has no room; false when none had.
    mutating func sweepForRoom() -> Bool {
        guard !expiries.isEmpty else { return false }
        let (_, ended) = sweep(most: Self.sweptForRoom, isExact: true)
        expiries.restoreEarly()
        return ended > 0
    }

    /// Looks at entries whose time has come, at most so many; returns how many, and how many of them
    /// were due. With `isExact` they are due to the millisecond.
    private mutating func sweep(most: Int, isExact: Bool) -> (looked: Int, due: Int) {
        var (looked, due) = (0, 0)
        while looked < most,
            let step = expiries.next(atMs: context.wallClockMs, isExact: isExact)
        {
            looked += 1
            switch step {
            case .queued(let entry, true):
                endQueued(entry)
                due += 1
            case .retained(let entry, true):
                endRetained(entry.place)
                due += 1
            case .early: continue
            case .queued(let entry, false):
                if let session = session(of: entry), isNeeded(entry, session) {
                    expiries.putBack(step)
                }
            case .retained(let entry, false):
                if retained.message(ofRecord: entry.place).map({ $0.expiresAtMs != 0 }) ?? false {
                    expiries.putBack(step)
                }
            }
        }
        context.budget.spend(looked * Self.sweepUnits)
        return (looked, due)
    }

    /// The session of an entry; `nil` when it is gone.
    private func session(of entry: ExpiryWheel.Entry) -> UInt32? {
        guard entry.place < sessions.endIndex, sessions[entry.place].isUsed,
            UInt32(truncatingIfNeeded: sessions[entry.place].number) == entry.number
        else { return nil }
        return entry.place
    }

    /// The position of an entry in its session's queue; `nil` when that has none so high.
    private func position(of entry: ExpiryWheel.Entry, _ session: UInt32) -> UInt64? {
        let end = sessions[session].outbound.end
        // A queue has fewer than 2^32 positions, so their low halves tell them apart.
        let distance = UInt64(UInt32(truncatingIfNeeded: end) &- entry.position)
        return distance > 0 && distance <= end ? end - distance : nil
    }

    /// True while the message of an entry waits.
    private func isNeeded(_ entry: ExpiryWheel.Entry, _ session: UInt32) -> Bool {
        let queue = sessions[session].outbound
        let number = sessions[session].number
        if expiries.hasMoved(number) { return !queue.isEmpty }
        guard let position = position(of: entry, session) else { return false }
        if position >= queue.firstStored { return !sessions.holes.contains(position, of: number) }
        return queue.waitingMessage(at: position) != nil
            || queue.storedInFlight > context.limits.maxInFlight
    }

    private mutating func endQueued(_ entry: ExpiryWheel.Entry) {
        guard let session = session(of: entry) else { return }
        let number = sessions[session].number
        guard !expiries.hasMoved(number) else { return endMoved(session) }
        if let position = position(of: entry, session) {
            endQueued(session, position, bytes: entry.bytes)
        }
    }

    /// Ends all expired messages of a queue in memory whose messages have other positions than their
    /// entries say.
    private mutating func endMoved(_ session: UInt32) {
        let number = sessions[session].number
        guard expiries.mustLookThrough(number, atMs: context.wallClockMs) else { return }
        var expired: [UInt64] = []
        let (queue, now) = (sessions[session].outbound, context.wallClockMs)
        queue.forEachListed(from: 0) { listed in
            if listed.state == .waiting, listed.message?.isExpired(atMs: now) == true {
                expired.append(listed.position)
            }
            return true
        }
        for position in expired { endQueued(session, position, bytes: 0) }
        if sessions[session].outbound.isEmpty { expiries.forgetMoved(number) }
    }

    private mutating func endQueued(_ session: UInt32, _ position: UInt64, bytes: Int) {
        let queue = sessions[session].outbound
        if position < queue.firstStored {
            guard let message = queue.waitingMessage(at: position) else {
                noteInFlight(session)
                return
            }
            guard message.isExpired(atMs: context.wallClockMs) else { return }
            drop(session, .expired, message)
            _ = removeWaiting(session, position)
        } else if position < sessions.loads.below(of: sessions[session].number) {
            expiries.add(
                session, sessions[session].number, at: position, bytes: bytes,
                expiresAtMs: context.wallClockMs + Self.retryMilliseconds)
            return
        } else {
            guard removeWaiting(session, position, bytes: bytes) else { return }
            drop(session, .expired)
        }
        finished(session, position, .dropped(.expired))
        if sessions[session].isWatched { followers.expired(&self, session, position) }
        if position == queue.firstStored { passKnownHoles(session) }
        context.budget.spend(Self.expiryUnits)
        let left = sessions[session].outbound
        if sessions[session].connection != nil, left.loadedWaiting == 0, left.isStoring {
            expiries.noteStarved(
                Handle(index: session, generation: sessions[session].generation))
        }
    }

    // MARK: After a crash

    /// Has the queue of an offline client read whose message in flight has expired, if more count as
    /// in flight than can have been sent.
    private mutating func noteInFlight(_ session: UInt32) {
        guard sessions[session].connection == nil,
            sessions[session].outbound.storedInFlight > context.limits.maxInFlight
        else { return }
        expiries.noteUnsure(Handle(index: session, generation: sessions[session].generation))
    }

    /// Reads what counts as in flight of further queues.
    private mutating func readUnsure() {
        while let handle = expiries.nextUnsure() {
            guard sessions.isCurrent(handle), sessions[handle.index].connection == nil else {
                continue
            }
            let session = sessions[handle.index]
            expiries.beginReading(session.number, handle, sinceMs: session.sinceMs)
            commits.read(
                QueueRead(
                    session: session.number, from: 0, below: session.outbound.firstStored,
                    maxMessages: Int(OutboundQueue.mostPositions), maxBytes: Self.readBytes,
                    tag: ReadTag.unsure.encoded, ticket: 0))
        }
    }

    /// Ends messages in flight that have expired and cannot have been sent, unless their client has
    /// come back meanwhile.
    mutating func takeUnsure(_ slice: QueueSlice) {
        guard let read = expiries.endReading(slice.request.session), slice.failure == nil,
            sessions.isCurrent(read.session)
        else { return }
        let session = read.session.index
        guard sessions[session].connection == nil, sessions[session].sinceMs == read.sinceMs else {
            return
        }
        let before = sessions[session].outbound
        var left = context.limits.maxInFlight
        slice.forEach { item in
            guard item.qos != QoS.atMostOnce.rawValue else { return }
            guard left == 0 else {
                left -= 1
                return
            }
            guard item.isExpired(atMs: context.wallClockMs) else { return }
            var item = item
            endUnsent(&item, session)
            if !item.isReleased { sessions[session].outbound.dropInFlight() }
        }
        sessions.totals.replace(before, by: sessions[session].outbound)
    }

    /// Ends a message that counts as perhaps sent and never was. Of QoS 2 the packet identifier stays
    /// taken until PUBREL and PUBCOMP: a receiver that knows it, after all, would take a later message
    /// for a repetition.
    mutating func endUnsent(_ item: inout QueueSlice.Item, _ session: UInt32) {
        drop(session, .expired)
        if item.qos == QoS.exactlyOnce.rawValue {
            positionEnded(session, item.position, .dropped(.expired))
            commits.records.released(
                session: sessions[session].number, position: item.position)
            item.release()
        } else {
            finished(session, item.position, .dropped(.expired))
        }
    }

    private mutating func endRetained(_ record: UInt32) {
        guard let message = retained.message(ofRecord: record),
            message.isExpired(atMs: context.wallClockMs)
        else { return }
        message.retainReference()
        retained.remove(message.topic)
        commits.records.retainedRemoved(topic: message.topic)
        message.release(in: pool)
        context.budget.spend(Self.expiryUnits)
    }
}

extension QueueSlice.Item {
    /// True for content whose time was over at a UNIX time in milliseconds.
    func isExpired(atMs wallClock: Int64) -> Bool {
        expiresAtMs != 0 && expiresAtMs <= wallClock && !isReleased
    }
}
