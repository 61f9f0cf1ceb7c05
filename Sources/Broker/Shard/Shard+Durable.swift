import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// A message for a persistent session, whose store keeps it.
struct KeptMessage {
    var message: Message
    /// Names its content in the store; 0 while it has none.
    var number: UInt64
    var qos: QoS
    var retain: Bool
    var ticket: UInt64
    var group: UInt32
}

/// Queues of persistent sessions: in the store whole, and in memory only what is sent or about to be.
extension Shard {
    /// Waiting messages, and their bytes, that one load brings or a window takes.
    private static var windowMessages: UInt32 { 64 }
    private static var windowBytes: Int { 256 * 1_024 }
    /// Below so many waiting messages the next ones are loaded.
    private static var lowWater: UInt32 { 32 }

    // MARK: Storing

    /// Stores a message in the session's order; it stays in memory only if it will be sent soon.
    mutating func deliverDurably(
        _ kept: KeptMessage, to session: UInt32, isConnected: Bool, _ counts: inout PublishCounts
    ) {
        let isInWindow = isConnected && fitsWindow(session, kept.message)
        guard isInWindow || makeRoomInStore(session, kept.message) else {
            counts.dropped += 1
            drop(session, .queueFull)
            return
        }
        if !isConnected { counts.queued += 1 }
        writes.queued(
            session: sessions[session].number, position: sessions[session].outbound.end,
            message: kept.number == 0 ? record(kept.message) : kept.number,
            qos: kept.qos.rawValue, retain: kept.retain, isInWindow: isInWindow)
        if kept.group != noIndex {
            sessions[session].holdsShared = true
            shared.text(of: kept.group).withBytes {
                writes.shared(
                    session: sessions[session].number, position: sessions[session].outbound.end,
                    filter: $0)
            }
        }
        totals.waiting += 1
        totals.waitingBytes += kept.message.count
        guard isInWindow else {
            _ = sessions[session].outbound.store(bytes: kept.message.count)
            if isConnected { loadMore(session) }
            return
        }
        kept.message.retainReference()
        sessions[session].outbound.append(
            kept.message, qos: kept.qos, retain: kept.retain, ticket: kept.ticket,
            group: kept.group, pool: pool)
        pump(session)
    }

    private func fitsWindow(_ session: UInt32, _ message: Message) -> Bool {
        let queue = sessions[session].outbound
        guard !queue.isStoring, !queue.isFull else { return false }
        return queue.loadedWaiting == 0
            || (queue.loadedWaiting < Self.windowMessages
                && queue.waitingBytes + message.count <= min(Self.windowBytes, settings.queueBytes))
    }

    /// Keeps what waits within the session's limits; false when the new message is the one to go.
    private mutating func makeRoomInStore(_ session: UInt32, _ message: Message) -> Bool {
        // No room can be made for it, so nothing is given up for it.
        guard message.count <= settings.queueBytes else {
            counters.limits.add(.queueBytes)
            return false
        }
        let mostWaiting = mostWaiting(session)
        while true {
            let queue = sessions[session].outbound
            guard
                queue.waiting >= mostWaiting
                    || queue.waitingBytes + message.count > settings.queueBytes
            else { return true }
            counters.limits.add(queue.waiting >= mostWaiting ? .queueMessages : .queueBytes)
            guard settings.queuePolicy == .dropOldest,
                let position =
                    sessions[session].outbound.dropOldestStored()
                    ?? sessions[session].outbound.dropOldestWaiting(pool: pool)
            else { return false }
            adjustTotals(session, from: queue)
            finished(session, position)
            guard queue.stored > 0 else {
                drop(session, .queueFull)
                continue
            }
            noteDropped(session, position)
            // What is on its way counts as sent: the horizon never goes back before it.
            writes.horizon(
                session: sessions[session].number,
                position: max(position + 1, sessions[session].loadBelow))
            drop(session, .queueFull)
        }
    }

    /// The client is away: the store has all that it is owed.
    mutating func unload(_ session: UInt32) {
        let before = sessions[session].outbound
        sessions[session].isLoading = false
        sessions[session].loadBelow = 0
        sessions[session].outbound.unload(pool: pool)
        adjustTotals(session, from: before)
        let number = sessions[session].number
        droppedWhileLoading[number] = nil
        writes.horizon(session: number, position: sessions[session].outbound.firstStored)
        writes.detached(number, sinceMs: wallClockMs)
    }

    mutating func adjustTotals(_ session: UInt32, from before: OutboundQueue) {
        let after = sessions[session].outbound
        totals.waiting += Int(after.waiting) - Int(before.waiting)
        totals.waitingBytes += after.waitingBytes - before.waitingBytes
        totals.inFlight += Int(after.inFlight) - Int(before.inFlight)
    }

    // MARK: Loading

    /// Asks the store for what comes next, when the client can take it.
    mutating func loadMore(_ session: UInt32) {
        let queue = sessions[session].outbound
        guard queue.isStoring, !sessions[session].isLoading,
            let target = sessions[session].connection, connections[target.index].isOpen,
            !connections[target.index].isDoomed,
            connections[target.index].output.count < settings.outputBytes
        else { return }
        load(session, for: target)
    }

    /// Asks for what was in flight and has not come back, and for what waits behind it.
    mutating func load(_ session: UInt32, for target: Handle) {
        let queue = sessions[session].outbound
        // What was in flight first: where its identifiers begin says how far others may go.
        let count =
            queue.storedInFlight == 0 && queue.loadedWaiting < Self.lowWater
            ? queue.loadable(Self.windowMessages) : 0
        guard count > 0 || queue.storedInFlight > 0 else { return }
        let number = sessions[session].number
        guard readsUnderWay.insert(number).inserted else {
            sessions[session].isLoading = true
            postponedLoads[number] = target
            return
        }
        let below = queue.firstStored + UInt64(count)
        var ticket: UInt64 = 0
        if count > 0 {
            // Before one of them is sent, the store knows that it may have been: its identifier
            // stays [MQTT-4.4.0-1], and no limit drops it.
            writes.horizon(session: sessions[session].number, position: below)
            ticket = writes.lastTicket + 1
        }
        sessions[session].isLoading = true
        sessions[session].loadBelow = below
        reads.append(
            QueueRead(
                session: sessions[session].number, from: queue.firstUnloaded, below: below,
                maxMessages: Int(max(Self.windowMessages, settings.maxInFlight)),
                maxBytes: Self.windowBytes, tag: ReadTag.connection(target).encoded, ticket: ticket)
        )
    }

    /// Puts back what the store has read, and sends it.
    mutating func takeSlices() {
        let held = slices.count
        store.takeSlices(&slices)
        guard !slices.isEmpty else { return }
        let taken = slices
        slices.removeAll()
        for (index, slice) in taken.enumerated() {
            switch ReadTag(encoded: slice.request.tag) {
            case .connection(let handle):
                if index >= held {
                    readsUnderWay.remove(slice.request.session)
                    loadPostponed(slice.request.session)
                }
                // An answer for a connection that is gone is nobody's.
                guard isCurrent(handle), !connections[handle.index].isDoomed else { continue }
                take(slice, for: handle)
            case .question(let number): answer(number, slice)
            case .ended: takeEnded(slice)
            }
        }
    }

    /// The former connection's read is back: the present one's turn.
    private mutating func loadPostponed(_ number: UInt64) {
        guard let handle = postponedLoads.removeValue(forKey: number), isCurrent(handle),
            !connections[handle.index].isDoomed
        else { return }
        let session = connections[handle.index].session
        sessions[session].isLoading = false
        load(session, for: handle)
    }

    private mutating func take(_ slice: QueueSlice, for handle: Handle) {
        let session = connections[handle.index].session
        if !connections[handle.index].isOpen {
            // CONNACK leaves first [MQTT-3.2.0-1], and waits for its commit.
            guard let sessionPresent = awaitingSlice.removeValue(forKey: handle) else {
                slices.append(slice)
                return
            }
            finishLoading(handle, session, sessionPresent: sessionPresent)
        }
        let before = sessions[session].outbound
        sessions[session].isLoading = false
        let dropped = droppedWhileLoading.removeValue(forKey: sessions[session].number)
        var next = slice.next
        slice.forEach { item in
            if dropped?.contains(item.position) == true {
                return
            } else if item.position < before.firstStored, item.qos == QoS.atMostOnce.rawValue {
                // It may have been sent, and QoS 0 is not sent twice.
                sessions[session].outbound.skipSent()
                finished(session, item.position)
            } else if item.position < before.firstStored, !item.isReleased,
                !mayStillReceive(item.topic, session)
            {
                sessions[session].outbound.skipSent()
                revoke(session, item.topic, item.position)
            } else if item.position < before.firstStored {
                placeSent(item, session, handle)
            } else if item.position < next, belongsToOthers(item, session) {
                finished(session, item.position)
                pass(item)
            } else if item.position < next,
                !placeWaiting(item, session, slice.request.ticket)
            {
                next = item.position
            }
        }
        if slice.failure == nil, next >= before.firstStored {
            sessions[session].outbound.finishPlacingSent()
        }
        sessions[session].outbound.finishPlacingWaiting(below: next)
        adjustTotals(session, from: before)
        guard let failure = slice.failure else {
            pump(session)
            return
        }
        // What was not read stays in the store; the client asks again when it comes again.
        notices.append(
            .unreadable(
                clientIdentifier: sessions[session].clientIdentifier.array, "\(failure)"))
        doom(handle, .storeFailure)
    }

    /// False when it is too far from what is in flight: then it comes with a later load.
    private mutating func placeWaiting(
        _ item: QueueSlice.Item, _ session: UInt32, _ ticket: UInt64
    ) -> Bool {
        guard sessions[session].outbound.canPlace(item.position) else { return false }
        sessions[session].outbound.placeWaiting(loaded(item, session), ticket: ticket, pool: pool)
        return true
    }

    /// Sent before, so it goes out again at once: DUP 1 [MQTT-3.3.1-1], in the old order
    /// [MQTT-4.6.0-1]; after PUBREC only PUBREL is owed [MQTT-4.3.3-1].
    private mutating func placeSent(_ item: QueueSlice.Item, _ session: UInt32, _ handle: Handle) {
        let loaded = loaded(item, session)
        sessions[session].outbound.placeSent(loaded, pool: pool)
        let identifier = PacketIdentifier(position: item.position)
        if let message = loaded.message {
            message.append(
                to: &connections[handle.index].output, qos: loaded.qos, retain: loaded.retain,
                isDuplicate: true, packetIdentifier: identifier.rawValue, pool: pool)
            sessions[session].publishesSent += 1
            counters.publishSent(loaded.qos, payloadBytes: message.payload.count)
        } else {
            connections[handle.index].output.append(4, pool: pool).storeBytes(
                of: PacketEncoder.fourBytes(.pubrel, identifier).littleEndian, as: UInt32.self)
            counters.otherPacketsSent += 1
        }
        connections[handle.index].resentBytes = UInt32(
            clamping: connections[handle.index].output.count)
        markDirty(handle)
    }

    /// Whether the session has left the group that gave it the message, which another member can have.
    private func belongsToOthers(_ item: QueueSlice.Item, _ session: UInt32) -> Bool {
        guard !item.shared.isEmpty, let group = shared.group(item.shared) else { return false }
        return !shared.contains(sessions[session].shared, group)
    }

    private func loaded(_ item: QueueSlice.Item, _ session: UInt32) -> OutboundQueue.Loaded {
        var group = noIndex
        if !item.shared.isEmpty, let found = shared.group(item.shared),
            shared.contains(sessions[session].shared, found)
        {
            group = found
        }
        return OutboundQueue.Loaded(
            message: item.isReleased ? nil : message(item), position: item.position,
            qos: QoS(rawValue: item.qos) ?? .atLeastOnce, retain: item.retain, group: group)
    }
}
