import MQTTCodec

extension ClientMachine {
    /// A close that comes sooner after a message has what carries them as its cause.
    static let busyMilliseconds: Int64 = 1_000

    /// Opens a new connection.
    mutating func connect(at moment: Moment) {
        if credentials == nil, settings.asksForCredentials {
            perform(.state(.connecting(attempt: reconnect.attempt)))
            askForCredentials(at: moment)
            return
        }
        addresses.begin(using: &random)
        perform(.state(.connecting(attempt: reconnect.attempt)))
        open(at: moment)
    }

    private mutating func open(at moment: Moment) {
        let number = newNumber()
        let milliseconds = addresses.isLast ? Self.openMilliseconds : Self.addressMilliseconds
        phase = .opening(number, until: moment.monotonicMilliseconds + milliseconds)
        perform(.open(number))
    }

    private mutating func newNumber() -> ConnectionNumber {
        defer { nextConnection += 1 }
        return ConnectionNumber(rawValue: nextConnection, address: addresses.current)
    }

    /// The transport, TLS included, is ready for bytes.
    package mutating func transportOpened(_ number: ConnectionNumber, at moment: Moment) {
        if case .looking(number, _) = phase {
            looked(isThere: true, at: moment)
            return
        }
        guard case .opening(number, _) = phase else { return }
        let now = moment.monotonicMilliseconds
        phase = .handshaking(
            until: now + (addresses.isLast ? Self.connackMilliseconds : Self.addressMilliseconds))
        let keepAlive = keepAliveSeconds
        link = Link(
            number: number,
            stream: PacketStream(mostPacketBytes: settings.limits.packetBytes),
            heartbeat: Heartbeat(
                intervalMilliseconds: intervalMilliseconds,
                keepAliveMilliseconds: Int64(keepAlive) * 1_000, at: now),
            isUncertain: stored.isConnecting)
        if !stored.isConnecting { record(.connecting) }
        send(encodedConnect(keepAlive: keepAlive), at: now)
    }

    /// The transport could not be opened, or has ended. `reason` is ``DropReason/closedByPeer``,
    /// ``DropReason/networkFailure`` or ``DropReason/writeFailed``.
    package mutating func transportClosed(
        _ number: ConnectionNumber, _ reason: DropReason, at moment: Moment
    ) {
        guard number == currentNumber else { return }
        if case .looking = phase {
            lastDrop = reason
            looked(isThere: false, isClosed: true, at: moment)
            return
        }
        drop(reason, isClosed: true, at: moment)
    }

    /// The connection that the machine knows of.
    var currentNumber: ConnectionNumber? {
        switch phase {
        case .opening(let number, _), .looking(let number, _): number
        case .stopped, .suspended, .waiting, .awaitingCredentials, .handshaking, .connected:
            link?.number
        }
    }

    /// Ends a connection that was wanted, and decides when the next one comes.
    mutating func drop(_ reason: DropReason, isClosed: Bool = false, at moment: Moment) {
        let now = moment.monotonicMilliseconds
        var ended: ReconnectRule.Ended?
        if case .connected(let since) = phase, let link {
            ended = ReconnectRule.Ended(
                connectedFor: now - since,
                followsPublication: noteEnd(reason, at: moment),
                wasBusy: link.stream.deadline != nil
                    || now - link.messageAt < Self.busyMilliseconds)
            uncounted.lostConnections += 1
            storeCounters()
        } else {
            refusals.tryFailed()
        }
        leaveConnection(closes: !isClosed)
        lastDrop = reason
        perform(.event(.dropped(reason)))
        if ended == nil, addresses.next() {
            open(at: moment)
            return
        }
        scheduleNext(after: reason, ended, at: moment)
    }

    mutating func scheduleNext(
        after reason: DropReason, _ ended: ReconnectRule.Ended?, at moment: Moment
    ) {
        guard isForeground || awakeUntil != nil else {
            suspend()
            return
        }
        follow(
            reconnect.next(after: reason, ended, isForeground: isForeground, using: &random),
            at: moment)
    }

    private mutating func follow(_ next: ReconnectRule.Next, at moment: Moment) {
        switch next {
        case .suspend: suspend()
        case .wait(0, _): connect(at: moment)
        case .wait(let delay, let reason): wait(delay, reason, at: moment)
        case .look:
            let number = newNumber()
            phase = .looking(number, until: moment.monotonicMilliseconds + Self.lookMilliseconds)
            perform(.state(.connecting(attempt: reconnect.attempt)))
            perform(.open(number))
        }
    }

    mutating func wait(_ delay: Int64, _ reason: WaitReason, at moment: Moment) {
        let until = moment.monotonicMilliseconds + delay
        phase = .waiting(until: until)
        perform(.state(.waiting(untilMilliseconds: until, reason)))
    }

    /// The look has found the broker, or has not.
    mutating func looked(isThere: Bool, isClosed: Bool = false, at moment: Moment) {
        if !isClosed, let number = currentNumber { perform(.close(number)) }
        follow(
            reconnect.looked(isThere: isThere, isForeground: isForeground, using: &random),
            at: moment)
    }

    /// Forgets the connection, if there is one; the caller sets the phase.
    mutating func leaveConnection(closes: Bool) {
        if closes, let number = currentNumber { perform(.close(number)) }
        link = nil
        inbox.connectionEnded(most: settings.limits.unacknowledgedMessages)
    }

    /// Ends the connection on purpose: DISCONNECT tells the broker, which then sends no will.
    mutating func disconnect(at now: Int64) {
        if case .connected = phase {
            var bytes: [UInt8] = []
            PacketEncoder.append(
                .disconnect, fieldsIn: UnsafeRawBufferPointer(start: nil, count: 0), to: &bytes)
            send(bytes, at: now)
        }
        leaveConnection(closes: true)
    }

    mutating func suspend() {
        awakeUntil = nil
        // An answer that was awaited may not come any more.
        hasAskedForCredentials = false
        phase = .suspended
        perform(.state(.suspended))
    }

    mutating func stop(_ reason: StopReason) {
        awakeUntil = nil
        reportAt = nil
        phase = .stopped(reason)
        perform(.state(.stopped(reason)))
    }

    // MARK: CONNECT and CONNACK

    private func encodedConnect(keepAlive: UInt16) -> [UInt8] {
        var source = settings.clientID
        let identifier = ByteRange(offset: 0, count: source.count)
        var userName: ByteRange?
        var password: ByteRange?
        if let credentials {
            userName = ByteRange(offset: source.count, count: credentials.userName.count)
            source += credentials.userName
            password = ByteRange(offset: source.count, count: credentials.password.count)
            source += credentials.password
        }
        var connect = Connect(
            version: .v3_1_1, cleanSession: !settings.keepsSession, keepAlive: keepAlive,
            clientID: identifier, userName: userName, password: password)
        if let will = settings.will {
            let topic = ByteRange(offset: source.count, count: will.topic.count)
            let message = ByteRange(offset: topic.end, count: will.payload.count)
            source += will.topic + will.payload
            connect.will =
                (try? source.read { bytes throws(MalformedPacket) in
                    try TopicName(validating: topic, in: bytes)
                }).map {
                    Connect.Will(topic: $0, message: message, qos: will.qos, retain: will.retain)
                }
        }
        var bytes: [UInt8] = []
        source.withUnsafeBytes {
            PacketEncoder.append(.connect(connect), fieldsIn: $0, to: &bytes)
        }
        return bytes
    }

    mutating func receive(_ connack: Connack, at moment: Moment) {
        guard case .handshaking = phase else {
            drop(.violation(.unexpectedConnack), at: moment)
            return
        }
        switch connack.returnCode {
        case .accepted: accepted(sessionPresent: connack.sessionPresent, at: moment)
        case .serverUnavailable: drop(.serverUnavailable, at: moment)
        case .unacceptableProtocolVersion: refused(.unacceptableProtocolVersion)
        case .identifierRejected: refused(.identifierRejected)
        case .badUserNameOrPassword, .notAuthorized:
            guard !hasAskedForCredentials else {
                refused(.credentialsRefused)
                return
            }
            hasAskedForCredentials = true
            leaveConnection(closes: true)
            askForCredentials(at: moment)
        }
    }

    private mutating func askForCredentials(at moment: Moment) {
        phase = .awaitingCredentials(
            until: moment.monotonicMilliseconds + Self.credentialsMilliseconds)
        perform(.requestCredentials)
    }

    private mutating func refused(_ reason: StopReason) {
        leaveConnection(closes: true)
        stop(reason)
    }

    /// The app's answer to ``ClientAction/requestCredentials``; `nil` stops the client.
    package mutating func credentialsProvided(
        _ credentials: ClientCredentials?, at moment: Moment
    ) {
        guard let credentials else {
            if case .awaitingCredentials = phase { stop(.credentialsRefused) }
            return
        }
        self.credentials = credentials
        if case .awaitingCredentials = phase { connect(at: moment) }
    }

    /// The app could not get credentials now: the next try follows as after a failed connection.
    package mutating func credentialsFailed(at moment: Moment) {
        guard case .awaitingCredentials = phase else { return }
        hasAskedForCredentials = false
        scheduleNext(after: .serverUnavailable, nil, at: moment)
    }

    private mutating func accepted(sessionPresent: Bool, at moment: Moment) {
        let now = moment.monotonicMilliseconds
        // A clean session is never present [MQTT-3.2.2-1].
        let sessionPresent = sessionPresent && settings.keepsSession
        phase = .connected(since: now)
        hasAskedForCredentials = false
        addresses.served()
        if counters.sinceUnixMilliseconds == 0 {
            uncounted.sinceUnixMilliseconds = moment.unixMilliseconds
            storeCounters()
        }
        if reportAt == nil { reportAt = now + Self.reportMilliseconds }
        perform(.state(.connected(sessionPresent: sessionPresent)))
        if sessionPresent {
            record(.sessionResumed(isCertain: link?.isUncertain == false))
        } else {
            startSession()
        }
        losses.connected(at: now)
        noteQuickReconnect(at: moment)
        if let refused = refusals.connected() { holdBack(refused, at: moment) }
        if refusals.hasSuspects { closeGate(at: now) }
        refusals.holdAgain(stored.outbox.held.map(\.topic), at: now)
        sendOutgoing(at: now)
    }

    /// The broker has no session. Messages that had their PUBREC are the broker's, the others are
    /// published anew; all subscriptions are asked for again.
    private mutating func startSession() {
        if stored.hasSession, settings.keepsSession { perform(.event(.sessionLost)) }
        let takenOver = stored.outbox.messages.filter(\.isReleased).map(\.key)
        let unwanted = stored.subscriptions.all.filter { $0.state == .unwanted }
        record(settings.keepsSession ? .sessionStarted : .cleanSessionStarted)
        for subscription in unwanted {
            forgetBaselines(of: subscription.filter)
            perform(.subscriptionAnswered(subscription.filter, .unsubscribed))
        }
        inbox.sessionLost()
        attempted = []
        for key in takenOver {
            perform(.published(key))
        }
    }
}
