import MQTTCodec
import MQTTCore
import Store
import Structures

extension Shard {
    /// Closes what was doomed; wills that this publishes may doom more.
    mutating func closeDoomed() {
        while !doomed.isEmpty {
            var batch: [Doomed] = []
            swap(&batch, &doomed)
            for one in batch { close(one.handle, one.reason, one.opening) }
        }
    }

    /// Ends a connection: its will, its session's place, its memory. Fenced by the generation: a late
    /// event of this connection finds nobody, least of all its successor.
    private mutating func close(
        _ handle: Handle, _ reason: CloseReason, _ opening: ForeignProtocol?
    ) {
        guard isCurrent(handle) else { return }
        let index = handle.index
        let session = connections[index].session
        awaitingSlice[handle] = nil
        if !certificateUsers.isEmpty { certificateUsers[handle] = nil }
        if connections[index].timer != noIndex { timers.cancel(connections[index].timer) }
        connections[index].acknowledgements.removeAll(in: pool)
        connections[index].pendingConnect?.release(in: pool)
        connections[index].permit?.release(in: pool)
        let will = connections[index].will
        let wasOpen = connections[index].isOpen
        // In one group with the will's publication, if there is one.
        if will != nil, session != noIndex {
            writes.willRemoved(session: sessions[session].number)
        }
        var identifier: [UInt8]?
        let isReported = reportsLifecycle || reason.announcement != nil
        let isWillRefused = wasOpen && refusesWill(will, from: session, reason)
        if session != noIndex {
            if isReported {
                identifier = sessions[session].clientIdentifier.array
            }
            detach(session, reason)
        }
        if wasOpen { activeConnections -= 1 } else { pendingConnections -= 1 }
        counters.closed(reason, wasOpen: wasOpen)
        if connections[index].awaitsStore { awaitingStore[handle] = nil }
        if connections[index].isPaused { counters.publishersPaused -= 1 }
        if isReported {
            notices.append(
                .closed(handle, clientIdentifier: identifier, reason, opening: opening))
        }

        // What we owe the peer still leaves, unless the peer is gone or broke the protocol.
        let owesOutput = !connections[index].output.isEmpty && sendsBeforeClosing(reason)
        if !owesOutput { connections[index].output.removeAll(in: pool) }
        let output = connections[index].output
        let origin = connections[index].origin
        connections[index] = Connection()
        connections[index].output = output
        closing.append(Closing(connection: handle, afterOutput: owesOutput, origin: origin))

        if let will {
            // Deleted by DISCONNECT [MQTT-3.14.4-3], published by every other end [MQTT-3.1.2-8].
            // A client that was never accepted left none.
            if reason != .disconnect, reason != .shutdown, wasOpen, !isWillRefused {
                publishWill(will)
            }
            will.release(in: pool)
        }
    }

    /// Separates a session from its connection; a clean one ends with it [MQTT-3.1.2-6].
    private mutating func detach(_ session: UInt32, _ reason: CloseReason) {
        if sessions[session].isPersistent {
            suspendRetained(session)
        } else {
            cancelRetained(session)
        }
        releaseDelayed(session)
        sessions[session].connection = nil
        sessions[session].sinceMs = wallClockMs
        sessions[session].lastCloseReason = reason
        shared.setOnline(sessions[session].shared, false)
        guard sessions[session].isPersistent else {
            removeSession(session)
            return
        }
        if isDurable { unload(session) }
        sessions[session].expiryTimer = timers.schedule(
            TimerPayload.session(handle(ofSession: session)).encoded,
            at: now.advanced(byMilliseconds: settings.sessionExpiry.wholeMilliseconds))
    }

    mutating func publishWill(_ will: Message) {
        guard isWithinLevels(will.topic) else {
            counters.limits.add(.maxTopicLevels)
            return
        }
        if route(will, mustCommit: false).needsCommit { commitUnwatched() }
    }

    private func sendsBeforeClosing(_ reason: CloseReason) -> Bool {
        switch reason {
        case .badUserNameOrPassword, .notAuthorized, .identifierRejected, .tooManySessions,
            .unacceptableProtocolVersion, .authenticationBusy, .publishDenied, .disconnect,
            .shutdown:
            true
        case .peerClosed, .networkError, .protocolViolation, .connectTimeout, .keepAlive,
            .takenOver, .tooManyInboundQoS2, .topicLevels, .unsubscribeFilters, .outputLimit,
            .administrator, .storeFailure, .tlsHandshake, .tlsOnPlainListener, .proxyHeader,
            .memoryShortage, .unfinishedPackets, .addressLimit, .certificateRevoked, .tlsRecord:
            false
        }
    }

    /// Ends every connection, for a stop; output that waits is still sent.
    package mutating func shutDown() {
        for index in 0..<connections.endIndex where connections[index].generation != 0 {
            doom(Handle(index: index, generation: connections[index].generation), .shutdown)
        }
        closeDoomed()
        // Who is away and stays gets what those who are gone were owed.
        while !handOvers.isEmpty { runHandOvers() }
    }

    // MARK: Timers

    /// Timers of one turn: many sessions may have the same time, and nobody else is to notice.
    private static var expiriesPerTurn: Int { 1_000 }

    /// Judges what is due: CONNECT deadlines and session expiry at once, keep alives after a last look
    /// at the socket (``takeOverdue()``). What is too much for one turn is due in the next.
    package mutating func expireTimers() {
        for _ in 0..<Self.expiriesPerTurn {
            guard let payload = timers.popExpired(now: now) else { break }
            switch TimerPayload(encoded: payload) {
            case .connection(let handle): connectionTimerFired(handle)
            case .session(let handle): sessionTimerFired(handle)
            }
        }
        publishDueSystemTopics()
        closeDoomed()
    }

    private mutating func connectionTimerFired(_ handle: Handle) {
        guard isCurrent(handle) else { return }
        connections[handle.index].timer = noIndex
        if connections[handle.index].machine.isAwaitingConnect {
            // A CONNECT that waits for the store has come in time.
            if !connections[handle.index].awaitsStore { doom(handle, .connectTimeout) }
            return
        }
        if connections[handle.index].machine.isDelayed {
            resumeDelayed(handle)
            return
        }
        // Its CONNECT came in time; what it waits for now is ours.
        guard connections[handle.index].isOpen else { return }
        if isOverdue(handle) { overdue.append(handle) } else { setKeepAliveTimer(handle) }
    }

    /// The socket of an overdue connection has been read: it closes unless a packet came.
    package mutating func judge(_ handle: Handle) {
        guard isCurrent(handle), !connections[handle.index].isDoomed else { return }
        if isOverdue(handle) { doom(handle, .keepAlive) } else { setKeepAliveTimer(handle) }
    }

    /// One and a half times the keep alive without a packet [MQTT-3.1.2-24]; not while we are the
    /// ones who do not read.
    private func isOverdue(_ handle: Handle) -> Bool {
        let connection = connections[handle.index]
        guard connection.keepAliveMs > 0, !connection.isPaused else { return false }
        return now.milliseconds(since: connection.lastPacket)
            >= UInt64(connection.keepAliveMs) * 3 / 2
    }

    mutating func setKeepAliveTimer(_ handle: Handle) {
        let connection = connections[handle.index]
        guard connection.keepAliveMs > 0 else {
            if connection.timer != noIndex { timers.cancel(connection.timer) }
            connections[handle.index].timer = noIndex
            return
        }
        let last = connection.isPaused ? now : connection.lastPacket
        let deadline = last.advanced(byMilliseconds: UInt64(connection.keepAliveMs) * 3 / 2)
        if connection.timer != noIndex {
            timers.reschedule(connection.timer, at: deadline)
        } else {
            connections[handle.index].timer = timers.schedule(
                TimerPayload.connection(handle).encoded, at: deadline)
        }
    }

    private mutating func sessionTimerFired(_ handle: Handle) {
        guard isCurrent(session: handle) else { return }
        sessions[handle.index].expiryTimer = noIndex
        counters.sessionsExpired += 1
        counters.limits.add(.sessionExpiry)
        if reportsLifecycle {
            note(.sessionExpired(clientIdentifier: sessions[handle.index].clientIdentifier.array))
        }
        removeSession(handle.index)
    }

    mutating func cancelExpiry(_ session: UInt32) {
        guard sessions[session].expiryTimer != noIndex else { return }
        timers.cancel(sessions[session].expiryTimer)
        sessions[session].expiryTimer = noIndex
    }
}
