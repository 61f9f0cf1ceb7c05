import MQTTCodec
import MQTTCore
import Store
import Structures

extension Shard {
    // MARK: CONNECT

    mutating func receiveConnect(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) throws(MalformedPacket) {
        guard connections[handle.index].machine.isAwaitingConnect else {
            doom(handle, .protocolViolation(.secondConnect))
            return
        }
        guard case .connect(let connect) = try PacketDecoder.decode(frame, bytes.bytes) else {
            preconditionFailure("a CONNECT decoded as something else")
        }
        let identifierCount = Int(connect.clientIdentifier.count)
        switch connections[handle.index].machine.receive(
            connect, identifierCount: identifierCount)
        {
        case .ignore:
            return
        case .close(let violation):
            doom(handle, .protocolViolation(violation))
        case .refuse(let code):
            refuse(
                handle, code, .identifierRejected, [UInt8](bytes[connect.clientIdentifier]),
                userName: connect.userName.map { [UInt8](bytes[$0]) })
        case .authenticate:
            authenticate(handle, connect, frame, bytes)
        }
    }

    private mutating func authenticate(
        _ handle: Handle, _ connect: Connect, _ frame: PacketDecoder.Frame,
        _ bytes: UnsafeRawBufferPointer
    ) {
        guard certificateUsers.isEmpty || certificateUsers[handle] == nil else {
            finishAuthentication(handle, connect, bytes, bytes[frame.packet], nil)
            return
        }
        let allowsAnonymous = allowsAnonymous[Int(connections[handle.index].listener)]
        guard let userName = connect.userName, verifiesPasswords else {
            // Without a password file a user name proves nothing, so it counts as anonymous.
            finishAuthentication(
                handle, connect, bytes, bytes[frame.packet],
                allowsAnonymous ? nil : .notAuthorized)
            return
        }
        // The packet waits with its connection; the check takes tens of milliseconds elsewhere.
        keepConnect(handle, bytes[frame.packet])
        authenticationRequests.append(
            AuthenticationRequest(
                connection: handle, origin: connections[handle.index].origin,
                userName: [UInt8](bytes[userName]),
                password: connect.password.map { [UInt8](bytes[$0]) } ?? []))
    }

    /// The answer to an ``AuthenticationRequest``; `nil` accepts.
    package mutating func authenticated(_ handle: Handle, _ refusal: Connack.ReturnCode?) {
        guard isCurrent(handle), !connections[handle.index].isDoomed,
            !connections[handle.index].machine.isDelayed, let copy = takeConnect(handle)
        else { return }
        defer { copy.release(in: pool) }
        let (connect, bytes) = Self.decoded(copy)
        finishAuthentication(handle, connect, bytes, bytes, refusal)
    }

    /// Keeps a CONNECT packet with its connection, which has to wait.
    mutating func keepConnect(_ handle: Handle, _ packet: UnsafeRawBufferPointer) {
        let copy = SharedBytes(count: packet.count, pool: pool)
        if let base = packet.baseAddress {
            copy.bytes.copyMemory(from: base, byteCount: packet.count)
        }
        connections[handle.index].pendingConnect = copy
    }

    /// The CONNECT that was kept; the caller releases it.
    mutating func takeConnect(_ handle: Handle) -> SharedBytes? {
        defer { connections[handle.index].pendingConnect = nil }
        return connections[handle.index].pendingConnect
    }

    /// A CONNECT that was kept, with the bytes that it refers to.
    static func decoded(_ copy: SharedBytes) -> (Connect, UnsafeRawBufferPointer) {
        let bytes = UnsafeRawBufferPointer(start: copy.bytes, count: copy.count)
        guard
            case .frame(let frame)? = try? PacketDecoder.frame(
                bytes.bytes, at: 0, maximumSize: bytes.count),
            case .connect(let connect)? = try? PacketDecoder.decode(frame, bytes.bytes)
        else { preconditionFailure("a CONNECT that was decoded no longer decodes") }
        return (connect, bytes)
    }

    /// `connect` refers to `bytes`, in which `packet` is the whole CONNECT.
    private mutating func finishAuthentication(
        _ handle: Handle, _ connect: Connect, _ bytes: UnsafeRawBufferPointer,
        _ packet: UnsafeRawBufferPointer, _ refusal: Connack.ReturnCode?
    ) {
        switch connections[handle.index].machine.authenticated(refusal) {
        case .ignore:
            return
        case .refuse(let code):
            let reason: CloseReason =
                switch code {
                case .badUserNameOrPassword: .badUserNameOrPassword
                case .serverUnavailable: .authenticationBusy
                case .accepted, .unacceptableProtocolVersion, .identifierRejected,
                    .notAuthorized:
                    .notAuthorized
                }
            refuse(
                handle, code, reason, [UInt8](bytes[connect.clientIdentifier]),
                userName: connect.userName.map { [UInt8](bytes[$0]) })
        case .open:
            openSession(handle, connect, bytes, packet)
        }
    }

    // MARK: Sessions

    mutating func openSession(
        _ handle: Handle, _ connect: Connect, _ bytes: UnsafeRawBufferPointer,
        _ packet: UnsafeRawBufferPointer
    ) {
        guard !certificateUsers.isEmpty,
            let userName = certificateUsers.removeValue(forKey: handle)
        else {
            let user = connect.userName.map {
                SessionUser(name: bytes[$0], proof: verifiesPasswords ? .password : .none)
            }
            openSession(handle, connect, bytes, packet, user: user)
            return
        }
        userName.withUnsafeBytes {
            openSession(
                handle, connect, bytes, packet, user: SessionUser(name: $0, proof: .certificate))
        }
        if connections[handle.index].machine.isDelayed { certificateUsers[handle] = userName }
    }

    private mutating func openSession(
        _ handle: Handle, _ connect: Connect, _ bytes: UnsafeRawBufferPointer,
        _ packet: UnsafeRawBufferPointer, user: SessionUser?
    ) {
        guard connect.clientIdentifier.isEmpty else {
            openSession(
                handle, connect, bytes, packet, identifier: bytes[connect.clientIdentifier],
                user: user)
            return
        }
        // Made up as if the client had sent it [MQTT-3.1.3-6].
        let generated = generateIdentifier()
        generated.withUnsafeBytes {
            openSession(handle, connect, bytes, packet, identifier: $0, user: user)
        }
    }

    private mutating func openSession(
        _ handle: Handle, _ connect: Connect, _ bytes: UnsafeRawBufferPointer,
        _ packet: UnsafeRawBufferPointer, identifier: UnsafeRawBufferPointer, user: SessionUser?
    ) {
        var existing = findSession(identifier)
        if let index = existing {
            // A session belongs to its client identifier and user name; nobody else takes it over.
            guard isOwner(user, of: index) else {
                refuse(
                    handle, .notAuthorized, .notAuthorized, [UInt8](identifier),
                    userName: user.map { [UInt8]($0.name) })
                return
            }
            // The existing client goes first [MQTT-3.1.4-2]; its will is published.
            if let old = sessions[index].connection {
                guard !delaysTakeOver(handle, from: old, session: index, packet) else { return }
                doom(old, .takenOver)
                closeDoomed()
                existing = findSession(identifier)
            }
        }
        var needsCommit = false
        if let index = existing,
            connect.cleanSession || sessions[index].isUserProven != (user?.isProven ?? false)
        {
            // Any earlier session is thrown away [MQTT-3.1.2-6]; so is one that somebody made who only
            // claimed to be this user.
            removeSession(index)
            existing = nil
            needsCommit = true
        }
        let session: UInt32
        let sessionPresent: Bool
        if let existing {
            // [MQTT-3.1.2-4] [MQTT-3.2.2-2]
            session = existing
            sessionPresent = true
            cancelExpiry(existing)
            // The former connection may have left writes under way that this one must not outrun.
            needsCommit = needsCommit || commits.pendingCount > 0
        } else {
            guard connect.cleanSession || persistentSessions < settings.maxSessions else {
                refuse(
                    handle, .serverUnavailable, .tooManySessions, [UInt8](identifier),
                    userName: user.map { [UInt8]($0.name) })
                return
            }
            session = addSession(identifier, user, isPersistent: !connect.cleanSession)
            sessionPresent = false
            if !connect.cleanSession {
                write(session, identifier, user)
                needsCommit = true
            }
        }
        if sessions[session].isPersistent { writes.attached(sessions[session].number) }
        sessions[session].connection = handle
        sessions[session].version = connect.version
        sessions[session].keepAlive = connect.keepAlive
        sessions[session].sinceMs = wallClockMs
        connections[handle.index].session = session
        if isDurable, sessions[session].outbound.isStoring {
            // Read while CONNACK waits for its commit, so that both leave together.
            load(session, for: handle)
            needsCommit = true
        }
        connections[handle.index].keepAliveMs = effectiveKeepAlive(connect.keepAlive)
        if connections[handle.index].keepAliveMs != UInt32(connect.keepAlive) * 1_000 {
            counters.limits.add(.maxKeepAlive)
        }
        if let will = connect.will {
            storeWill(will, bytes, handle, session)
            needsCommit = true
        }
        if needsCommit {
            commit(.open(handle, sessionPresent: sessionPresent))
        } else {
            finishOpening(handle, sessionPresent: sessionPresent)
        }
    }

    /// What CONNACK speaks of is stored: it leaves, with what the session is owed behind it.
    mutating func finishOpening(_ handle: Handle, sessionPresent: Bool) {
        guard isCurrent(handle), !connections[handle.index].isDoomed else { return }
        let session = connections[handle.index].session
        guard !sessions[session].isLoading else {
            awaitingSlice[handle] = sessionPresent
            return
        }
        finishLoading(handle, session, sessionPresent: sessionPresent)
    }

    /// The connection opens; a durable session has the first part of its queue, or is about to.
    mutating func finishLoading(_ handle: Handle, _ session: UInt32, sessionPresent: Bool) {
        guard connections[handle.index].machine.opened() else { return }
        pendingConnections -= 1
        activeConnections += 1
        counters.admitted(connected: activeConnections)
        counters.otherPacketsSent += 1
        connections[handle.index].isOpen = true
        shared.setOnline(sessions[session].shared, true)
        let word = PacketEncoder.fourBytes(.accepted(sessionPresent: sessionPresent))
        connections[handle.index].output.append(4, pool: pool)
            .storeBytes(of: word.littleEndian, as: UInt32.self)
        markDirty(handle)
        // Its keep alive counts from here: while CONNACK waited, the silence was ours.
        connections[handle.index].lastPacket = now
        setKeepAliveTimer(handle)
        resumed.append(handle)
        if reportsLifecycle {
            notices.append(
                .opened(
                    handle, clientIdentifier: sessions[session].clientIdentifier.array,
                    cleanSession: !sessions[session].isPersistent, sessionPresent: sessionPresent))
        }
        // A durable queue comes back from the store instead, what was in flight first.
        if sessionPresent, !isDurable { resend(session, handle) }
        pump(session)
        resumeRetained(session)
    }

    /// CONNACK with a code that is not 0, then the end [MQTT-3.2.2-5].
    mutating func refuse(
        _ handle: Handle, _ code: Connack.ReturnCode, _ reason: CloseReason,
        _ identifier: [UInt8], userName: [UInt8]?
    ) {
        let word = PacketEncoder.fourBytes(.refused(code))
        connections[handle.index].output.append(4, pool: pool)
            .storeBytes(of: word.littleEndian, as: UInt32.self)
        counters.connectionsRefused += 1
        counters.otherPacketsSent += 1
        notices.append(
            .refused(handle, clientIdentifier: identifier, userName: userName, reason))
        doom(handle, reason)
    }

    private mutating func storeWill(
        _ will: Connect.Will, _ bytes: UnsafeRawBufferPointer, _ handle: Handle, _ session: UInt32
    ) {
        let message = Message(
            topic: bytes[will.topic.range], payload: bytes[will.message], qos: will.qos,
            retain: will.retain, pool: pool)
        connections[handle.index].will = message
        writes.will(session: sessions[session].number, message: record(message))
    }

    func findSession(_ identifier: UnsafeRawBufferPointer) -> UInt32? {
        sessionIndex.find(hash(identifier)) { index in
            sessions[index].clientIdentifier.equals(identifier)
        }
    }

    /// `number` names it in the store; a new session gets the next one.
    mutating func addSession(
        _ identifier: UnsafeRawBufferPointer, _ user: SessionUser?,
        isPersistent: Bool, number: UInt64? = nil
    ) -> UInt32 {
        generation = generation == UInt32.max >> 1 ? 1 : generation + 1
        if number == nil { sessionNumber += 1 }
        var session = Session()
        session.generation = generation
        session.number = number ?? sessionNumber
        session.isPersistent = isPersistent
        session.accessGeneration = number == nil ? accessGeneration : 0
        session.clientIdentifier = CompactBytes(identifier, pool: pool)
        if let user {
            session.hasUserName = true
            session.isUserProven = user.isProven
            session.userName = CompactBytes(user.name, pool: pool)
        }
        let index = sessions.insert(session)
        sessionIndex.insert(hash(identifier), index)
        if isPersistent { persistentSessions += 1 }
        return index
    }

    /// Forgets a session with all it holds; its connection must be gone.
    mutating func removeSession(_ index: UInt32) {
        precondition(sessions[index].connection == nil, "a connected session was removed")
        if sessions[index].isPersistent {
            if leavesShared(index) {
                endSession(index)
            } else {
                writes.sessionRemoved(sessions[index].number)
            }
            persistentSessions -= 1
        }
        cancelExpiry(index)
        cancelRetained(index)
        trie.removeAll(&sessions[index].subscriptions)
        leaveGroups(index)
        totals.waiting -= Int(sessions[index].outbound.waiting)
        totals.waitingBytes -= sessions[index].outbound.waitingBytes
        totals.inFlight -= Int(sessions[index].outbound.inFlight)
        sessions[index].outbound.removeAll(in: pool)
        sessions[index].inbound.removeAll(in: pool)
        sessions[index].clientIdentifier.withBytes { identifier in
            sessionIndex.remove(hash(identifier), index)
        }
        sessions[index].clientIdentifier.destroy(in: pool)
        sessions[index].userName.destroy(in: pool)
        if sessions[index].drops != noIndex { sessionDrops.remove(sessions[index].drops) }
        sessions[index] = Session()
        sessions.remove(index)
    }

    private mutating func write(
        _ session: UInt32, _ identifier: UnsafeRawBufferPointer, _ user: SessionUser?
    ) {
        let number = sessions[session].number
        guard let user else {
            writes.session(number, clientIdentifier: identifier, userName: nil)
            return
        }
        user.stored.withUnsafeBytes {
            writes.session(number, clientIdentifier: identifier, userName: $0)
        }
    }

    /// Whether a client may have a session: it is of the same user, and proves it if that user did.
    private func isOwner(_ user: SessionUser?, of index: UInt32) -> Bool {
        guard let user else { return !sessions[index].hasUserName }
        return sessions[index].hasUserName && sessions[index].userName.equals(user.name)
            && (user.isProven || !sessions[index].isUserProven)
    }

    private mutating func generateIdentifier() -> [UInt8] {
        while true {
            identifierSeed &+= 0x9E37_79B9_7F4A_7C15
            var value = withUnsafeBytes(of: identifierSeed) { hash($0) }
            var identifier = [UInt8]("hermes-".utf8)
            for _ in 0..<16 {
                let digit = UInt8(truncatingIfNeeded: value & 0xF)
                identifier.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
                value >>= 4
            }
            if identifier.withUnsafeBytes({ findSession($0) }) == nil { return identifier }
        }
    }

    private func effectiveKeepAlive(_ seconds: UInt16) -> UInt32 {
        let asked = UInt32(seconds) * 1_000
        guard let limit = settings.maxKeepAlive else { return asked }
        let most = UInt32(clamping: limit.wholeMilliseconds)
        return asked == 0 ? most : min(asked, most)
    }
}
