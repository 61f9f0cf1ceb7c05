import BrokerAPI
import MQTTCore
import Structures

/// The end of a connection and of a session: will, session state, memory.
extension Shard {
    /// Closes the connections that end with this turn. Wills may end further ones.
    @inline(__always)
    package mutating func closeEnding() {
        if connections.hasEnding { closeAllEnding() }
    }

    @inline(never)
    private mutating func closeAllEnding() {
        while let ending = connections.popEnding() { close(ending) }
    }

    /// As ``closeEnding()``, until wills have spent the turn's work; the rest follow in the next one.
    /// A connection whose will's receivers are not all found waits behind the others.
    @inline(__always)
    package mutating func closeEndingWithinBudget() {
        if connections.hasEnding { closeSomeEnding() }
    }

    @inline(never)
    private mutating func closeSomeEnding() {
        var waiting = 0
        while waiting < connections.endingCount, !context.budget.isSpent,
            let ending = connections.popEnding()
        {
            guard isWillMatched(ending) else {
                connections.putBack(ending)
                waiting += 1
                continue
            }
            close(ending)
            endMatch(of: .connection(ending.handle))
            if rights.hasWork { chargeRights() }
        }
    }

    /// True when the receivers of the will are found, or none is to be published.
    private mutating func isWillMatched(_ ending: Connections.Ending) -> Bool {
        guard connections.isCurrent(ending.handle) else { return true }
        let connection = connections[ending.handle]
        guard let will = connection.will, firesWill(connection, ending.reason),
            context.isWithinLevels(will.topic), !delaysWill(of: connection.session)
        else { return true }
        context.budget.beginShare()
        return isMatched(will.topic, qos: will.qos, for: .connection(ending.handle))
    }

    /// DISCONNECT deletes the will [MQTT-3.14.4-3]; any other end publishes it [MQTT-3.1.2-8]. A client
    /// without CONNACK has no will.
    private func firesWill(_ connection: Connection, _ reason: CloseReason) -> Bool {
        connection.machine.isOpen && reason != .disconnect && reason != .shutdown
    }

    /// Closes a connection. Its generation makes late events of the same index find no connection.
    private mutating func close(_ ending: Connections.Ending) {
        let (handle, reason) = (ending.handle, ending.reason)
        guard connections.isCurrent(handle) else { return }
        // Unsent packets are still sent, unless the peer closed or broke the protocol; and what tells a
        // client of 5.0 why.
        let isTold =
            connections[handle].outlet.speaks5
            && (connections[handle].machine.isOpen
                ? disconnect5(handle, reason) : reason.isFaultOfConnect)
        let owesOutput =
            !connections[handle].outlet.isEmpty && (reason.sendsOutputFirst || isTold)
        let connection = connections.close(handle, reason, owesOutput: owesOutput, pool: pool)
        if !logins.isEmpty { logins.remove(handle) }
        if !filterRequests.isEmpty { filterRequests.remove(handle, pool: pool) }
        if connection.outlet.speaks5 { clients5.remove(handle) }
        let (session, wasOpen) = (connection.session, connection.machine.isOpen)
        var will = connection.will
        var willExpiry: UInt32?
        if let waiting = will, session != noIndex, firesWill(connection, reason),
            delay(waiting, of: session)
        {
            will = nil
        }
        if let will, session != noIndex {
            willExpiry = terms[session]?.will.expiry
            sessions.count(session, -SessionBytes.of(will: will))
            // In one group with the will's publication, which after a shutdown is the next start's.
            if !(wasOpen && reason == .shutdown) {
                commits.records.willRemoved(session: sessions[session].number)
            }
        }
        let isWillAllowed =
            firesWill(connection, reason)
            && will.map { mayPublishWill($0, of: session) } ?? false
        let isReported = reportsLifecycle || reason.announcement != nil
        var (identifier, userName): ([UInt8]?, [UInt8]?)
        if session != noIndex {
            if isReported {
                identifier = sessions.identifier(of: session)
                userName = sessions[session].claimedUserName
            }
            if wasOpen { followers.connectionEnded(&self, connection, reason) }
            detach(session, reason)
        }
        context.counters.closed(reason, wasOpen: wasOpen, listener: connection.listener)
        if connection.intake.isPausedAtLimit { context.counters.publishersPaused -= 1 }
        if isReported {
            context.notices.append(
                .closed(
                    handle, clientID: identifier, userName: userName, reason,
                    opening: ending.opening))
        }
        if let will {
            if isWillAllowed {
                publishWill(
                    will, of: identifier, session: session == noIndex ? nil : session,
                    expiry: willExpiry)
            }
            will.release(in: pool)
        }
    }

    /// Separates a session from its connection; a clean session ends with it [MQTT-3.1.2-6].
    private mutating func detach(_ session: UInt32, _ reason: CloseReason) {
        if sessions[session].isPersistent {
            if let walk = walks.suspend(session) { retained.end(walk.cursor) }
        } else {
            cancelRetained(session)
        }
        releaseDelayed(session)
        sessions[session].detach(reason, atMs: context.wallClockMs)
        sessions.countIdentifiers(of: session, areKept: true)
        let expiry = expiryMilliseconds(of: session)
        let isShutdown = reason == .shutdown
        // The will that the next start publishes needs its times.
        if isShutdown, !sessions[session].isPersistent { terms[session] = nil }
        // A session that ends with its connection ends at the next start, after its will.
        guard sessions[session].isPersistent, expiry > 0 || isShutdown else {
            removeSession(session, because: .clean)
            return
        }
        subscriptions.setOnline(sessions[session].subscriptions, false)
        if commits.isDurable { unload(session) }
        if sessions[session].isWatched { followers.detached(&self, session) }
        sessions.scheduleExpiry(
            session, at: context.now.advanced(byMilliseconds: expiry))
    }

    /// Removes a session; its client must be offline. Counts and tells what it loses, other than what
    /// other members of shared subscriptions get.
    package mutating func removeSession(_ session: UInt32, because end: SessionEnd) {
        precondition(sessions[session].connection == nil, "a connected session was removed")
        let delayedWill = takeDelayedWill(of: session)
        var leavesQueue = false
        if sessions[session].isPersistent {
            if commits.isDurable, let ended = EndedSession(sessions[session]) {
                commits.records.sessionEnded(ended.number)
                endedSessions.add(ended)
                leavesQueue = true
            } else {
                commits.records.sessionRemoved(sessions[session].number)
            }
        }
        if sessions[session].isWatched { followers.sessionEnds(&self, session) }
        if terms[session] != nil { setTerms(nil, of: session) }
        cancelRetained(session)
        let wereShared = sessions[session].subscriptions.hasShared
        let bytesBefore = sessions[session].subscriptions.byteCount
        let isEmptied = subscriptions.removeAll(session, &sessions[session].subscriptions)
        sessions.countSubscriptions(of: session, before: bytesBefore)
        // Other members get the messages that the client has not acknowledged.
        if wereShared { handOver(session, nil, unacknowledged: true) }
        if sessions[session].isPersistent {
            let lost = leavesQueue ? 0 : UInt64(sessions[session].outbound.unfinished)
            if lost > 0 || reportsLifecycle {
                tellEnd(end, of: sessions.identifier(of: session), lost: lost)
            }
        }
        if sessions[session].follows {
            followers.sessionEnded(&self, session, leavesQueue: leavesQueue)
        }
        forgetPositions(of: session)
        dropAllowance(of: session)
        sessions.remove(session, keepsIndex: !isEmptied, pool: pool)
        publish(delayedWill)
    }

    /// Counts and tells the end of a persistent session, with the messages that its client will not
    /// get; `nil` for an end that was told before, while its queue was left to be read.
    package mutating func tellEnd(_ end: SessionEnd?, of clientID: [UInt8], lost: UInt64) {
        context.counters.lostWithSessions += lost
        guard lost > 0 || reportsLifecycle && end != nil else { return }
        context.notices.appendBounded(.sessionEnded(clientID: clientID, end, lost: lost))
    }

    /// Forgets what is known of single positions of a session's queue, which is removed.
    private mutating func forgetPositions(of session: UInt32) {
        let (number, queue) = (sessions[session].number, sessions[session].outbound)
        sessions.holes.forget(number, from: queue.firstStored, below: queue.end)
        expiries.forgetMoved(number)
    }

    /// Goes on with subscriptions that earlier turns have left to be removed or moved. It counts as
    /// work of the next turn: so clients that subscribe and go make no more than is removed.
    package mutating func continueSubscriptions() {
        subscriptions.beginTurn()
        while let session = subscriptions.nextEmptied() { sessions.freeIndex(session) }
        context.budget.spend(WorkBudget.matchStep * subscriptions.takeWork())
    }

    /// Ends an expired session.
    package mutating func expire(_ session: UInt32) {
        context.counters.sessionsExpired += 1
        // The time that a client of 5.0 chose is no limit of the broker's.
        if expiryMilliseconds(of: session) == context.limits.sessionExpiry.wholeMilliseconds {
            context.counters.limits.add(.sessionExpiry)
        }
        removeSession(session, because: .expired)
    }

    // MARK: Many at once

    /// Ends every connection for a shutdown; unsent output is still sent.
    public mutating func shutDown() {
        var handles: [Handle] = []
        connections.forEach { handle, _ in handles.append(handle) }
        for handle in handles { end(handle, .shutdown) }
        closeEnding()
        // Messages of shared groups that closed members had not acknowledged go to offline members.
        while !handOvers.isEmpty { runHandOvers() }
    }

    /// Closes connections that wait for CONNECT, a password check or a delayed take-over, because
    /// memory is short.
    public mutating func shedNewcomers() {
        guard connections.pendingCount > 0 else { return }
        var newcomers: [Handle] = []
        connections.forEach { handle, connection in
            if connection.machine.isNewcomer { newcomers.append(handle) }
        }
        for handle in newcomers { end(handle, .memoryShortage) }
        closeEnding()
    }

    /// Less than this does not show a slow reader.
    private static var slowReaderBytes: Int { 64 * 1_024 }

    /// The memory that closing a connection frees: its unsent output, and the messages that wait for
    /// its acknowledgements.
    private func bytesHeld(by connection: Connection) -> Int {
        guard connection.machine.isOpen else { return connection.outlet.count }
        let session = sessions[connection.session]
        // An offline client's queue stays in memory if nothing is stored.
        let isFreed = commits.isDurable || !session.isPersistent
        return connection.outlet.count + (isFreed ? session.outbound.loadedBytes : 0)
    }

    /// Closes the connections that hold the most because memory is short, until their sum reaches
    /// `bytes`. Returns the sum.
    public mutating func shedReaders(bytes: Int) -> Int {
        var readers: [(handle: Handle, bytes: Int)] = []
        connections.forEach { handle, connection in
            guard !connection.machine.isEnding else { return }
            let bytes = bytesHeld(by: connection)
            if bytes >= Self.slowReaderBytes { readers.append((handle, bytes)) }
        }
        readers.sort { $0.bytes > $1.bytes }
        var shed = 0
        for reader in readers {
            guard shed < bytes else { break }
            end(reader.handle, .memoryShortage)
            shed += reader.bytes
        }
        closeEnding()
        return shed
    }
}
