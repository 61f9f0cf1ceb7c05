import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// A session opens: from an admitted CONNECT to the CONNACK and the messages that wait, through the
/// states of ``ConnectionMachine``.
extension Shard {
    package mutating func openSession(_ judged: JudgedConnect) {
        // It may have come while the password was checked, or the take-over was delayed.
        if let ban = ban(of: judged) {
            refuse(judged, by: ban)
            return
        }
        guard !drain.isActive else {
            refuseConnect(judged, .serverUnavailable, .draining)
            return
        }
        let user =
            judged.provenUser
            ?? judged.userName.map {
                SessionUser(name: $0, proof: verifiesPasswords ? .password : .none)
            }
        guard judged.connect.clientID.isEmpty else {
            openSession(judged, judged.clientID, user)
            return
        }
        // As if the client had sent this identifier [MQTT-3.1.3-6].
        let generated = sessions.generateIdentifier()
        generated.withUnsafeBytes { openSession(judged, $0, user) }
    }

    /// Processes a CONNECT again after its delay.
    package mutating func resumeDelayed(_ handle: Handle) {
        guard let held = connections[handle].machine.endDelay() else { return }
        defer { held.release(in: pool) }
        openSession(JudgedConnect(handle, held))
    }

    private mutating func openSession(
        _ judged: JudgedConnect, _ identifier: UnsafeRawBufferPointer, _ user: SessionUser?
    ) {
        let (handle, connect) = (judged.handle, judged.connect)
        var existing = sessions.find(identifier)
        if let session = existing {
            // A session belongs to its client identifier and user name; no other user may have it.
            guard sessions[session].isOwned(by: user) else {
                refuseConnect(
                    handle, .notAuthorized, .notAuthorized, [UInt8](identifier),
                    userName: user.map { [UInt8]($0.name) })
                return
            }
        }
        let isKept = existing.map { sessions[$0].isPersistent } ?? false
        if let limit = limitExceeded(by: judged, identifier, user, isNew: !isKept) {
            refuseConnect(
                handle, .serverUnavailable,
                limit == .maxSessions ? .tooManySessions : .noRoom(limit), [UInt8](identifier),
                userName: user.map { [UInt8]($0.name) })
            return
        }
        if let session = existing {
            // Closes the client's former connection [MQTT-3.1.4-2], whose will is published.
            if let old = sessions[session].connection {
                guard !delaysTakeOver(judged, from: old, session: session) else { return }
                end(old, .takenOver)
                closeEnding()
                existing = sessions.find(identifier)
            }
        }
        var needsCommit = false
        if let session = existing,
            connect.cleanSession || sessions[session].isUserProven != (user?.isProven ?? false)
        {
            // Clean session 1 removes an earlier session [MQTT-3.1.2-6]. A session whose owner only
            // claimed the user name is removed too.
            removeSession(session, because: .clean)
            existing = nil
            needsCommit = true
        }
        let session: UInt32
        if let existing {
            // [MQTT-3.1.2-4] [MQTT-3.2.2-2]
            session = existing
            sessions.cancelExpiry(session)
            forgetDelayedWill(session)
            // The former connection's writes may be incomplete; this one must wait for them.
            needsCommit = needsCommit || commits.pendingCount > 0
        } else {
            session = sessions.add(
                identifier, user, isPersistent: judged.isPersistent,
                accessGeneration: rights.generation, pool: pool)
            if judged.isPersistent {
                record(session, identifier, user)
                needsCommit = true
            }
        }
        if sessions[session].isPersistent { commits.records.attached(sessions[session].number) }
        needsCommit = take(judged.terms, for: session) || needsCommit
        if existing != nil { sessions.countIdentifiers(of: session, areKept: false) }
        sessions[session].attach(handle, connect, atMs: context.wallClockMs)
        followers.attached(&self, session)
        setAllowance(logins.allowance(of: handle), of: session, isNew: existing == nil)
        connections[handle].session = session
        connections[handle].machine.attached(sessionPresent: existing != nil)
        if commits.isDurable, sessions[session].outbound.isStoring {
            // Read while CONNACK waits for its commit, so that both are sent together.
            load(session, for: handle)
            needsCommit = true
        }
        let keepAlive = context.effectiveKeepAlive(connect.keepAlive)
        connections[handle].keepAlive.begin(interval: keepAlive)
        if keepAlive != UInt32(connect.keepAlive) * 1_000 {
            context.counters.limits.add(.maxKeepAlive)
        }
        if let will = connect.will, mayKeepWill(judged.bytes[will.topic.range], session) {
            keepWill(will, judged.terms, judged.bytes, handle, session)
            needsCommit = true
        }
        if needsCommit {
            commits.commitOpening(of: handle)
            noteBacklog()
        } else {
            finishCommit(handle)
        }
    }

    private mutating func record(
        _ session: UInt32, _ identifier: UnsafeRawBufferPointer, _ user: SessionUser?
    ) {
        let number = sessions[session].number
        guard let user else {
            commits.records.session(number, clientID: identifier, userName: nil)
            return
        }
        user.stored.withUnsafeBytes {
            commits.records.session(number, clientID: identifier, userName: $0)
        }
    }

    /// Keeps what a CONNECT of MQTT 5.0 says of the session; one of an earlier version ends it. True when
    /// it is to be stored.
    private mutating func take(_ terms: ClientTerms?, for session: UInt32) -> Bool {
        guard let terms else {
            let hadTerms = self.terms[session] != nil
            if hadTerms { setTerms(nil, of: session) }
            return hadTerms
        }
        let former = self.terms[session]
        // A session that ends with its connection has terms only for its will.
        guard sessions[session].isPersistent || terms.willTimes != .none else { return false }
        let new = SessionTerms(expiry: terms.sessionExpiry, will: terms.willTimes)
        setTerms(new, of: session)
        return former != new
    }

    private mutating func keepWill(
        _ will: Connect.Will, _ terms: ClientTerms?, _ bytes: UnsafeRawBufferPointer,
        _ handle: Handle, _ session: UInt32
    ) {
        let message = Message(
            topic: bytes[will.topic.range], payload: bytes[will.message], qos: will.qos,
            retain: will.retain,
            forwarded: terms.map { ForwardedProperties($0.willProperties, in: bytes.bytes) },
            forwardedSource: bytes, pool: pool)
        connections[handle].will = message
        sessions.count(session, SessionBytes.of(will: message))
        let number = record(message)
        commits.records.will(session: sessions[session].number, message: number)
    }

    // MARK: CONNACK

    /// CONNACK's commit is complete: sends CONNACK unless a part of the queue is being read.
    package mutating func finishCommit(_ handle: Handle) {
        guard connections.isLive(handle) else { return }
        let session = connections[handle].session
        let number = sessions[session].number
        guard
            let sessionPresent = connections[handle].machine.committed(
                isLoading: sessions.loads.isUnderWay(number))
        else { return }
        finishOpening(handle, sessionPresent: sessionPresent)
        if sessions.loads.isLoading(number),
            let (slice, dropped) = sessions.loads[number].takeHeld()
        {
            place(slice, for: handle, dropped: dropped)
        }
    }

    /// Sends CONNACK, with the session's messages after it.
    package mutating func finishOpening(_ handle: Handle, sessionPresent: Bool) {
        let session = connections[handle].session
        connections.noteOpened()
        context.counters.admitted(
            connected: connections.activeCount, listener: connections[handle].listener)
        context.counters.otherPacketsSent += 1
        subscriptions.setOnline(sessions[session].subscriptions, true)
        if connections[handle].outlet.speaks5 {
            guard accept5(handle, sessionPresent: sessionPresent) else {
                // Without CONNACK there is no will.
                if let will = connections[handle].will {
                    sessions.count(session, -SessionBytes.of(will: will))
                    commits.records.willRemoved(session: sessions[session].number)
                    will.release(in: pool)
                    connections[handle].will = nil
                }
                end(handle, .outputLimit)
                return
            }
        } else {
            connections[handle].outlet.append(
                word: PacketEncoder.fourBytes(.accepted(sessionPresent: sessionPresent)),
                pool: pool)
        }
        connections.markDirty(handle)
        connections.resume(handle, now: context.now)
        connections.setKeepAliveTimer(handle, now: context.now)
        if reportsLifecycle {
            context.notices.append(
                .opened(
                    handle, clientID: sessions.identifier(of: session),
                    userName: sessions[session].claimedUserName,
                    cleanSession: !sessions[session].isPersistent, sessionPresent: sessionPresent))
        }
        // A stored queue is loaded instead, messages in flight first.
        if sessionPresent, !commits.isDurable { resend(session, handle) }
        pump(session)
        resumeRetained(session)
    }
}
