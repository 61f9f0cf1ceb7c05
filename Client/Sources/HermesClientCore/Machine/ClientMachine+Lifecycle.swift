extension ClientMachine {
    /// The app wants a connection from now on, until ``stop(at:)``.
    package mutating func start(at moment: Moment) {
        guard case .stopped = phase else { return }
        startedAt = moment.monotonicMilliseconds
        reconnect.restart()
        hasAskedForCredentials = false
        if isForeground || awakeUntil != nil { connect(at: moment) } else { suspend() }
    }

    /// The app wants no connection any longer.
    package mutating func stop(at moment: Moment) {
        if case .stopped = phase { return }
        storeCounters()
        disconnect(at: moment.monotonicMilliseconds)
        stop(.requested)
    }

    /// The system will suspend the program: the broker is told, and every socket is closed.
    package mutating func enteredBackground(at moment: Moment) {
        (isForeground, knowsLife) = (false, true)
        awakeUntil = nil
        if case .stopped = phase { return }
        storeCounters()
        if case .suspended = phase { return }
        disconnect(at: moment.monotonicMilliseconds)
        suspend()
    }

    /// The app is on the screen. A connection of before the background, or of before a suspension
    /// that nobody told of, is not trusted, because the system may have taken its socket: the client
    /// connects anew. One that the app has kept in the foreground must show that it is alive.
    package mutating func enteredForeground(at moment: Moment) {
        let wasForeground = isForeground
        (isForeground, knowsLife) = (true, true)
        awakeUntil = nil
        if wasForeground, case .connected = phase, !wasLate(at: moment.monotonicMilliseconds) {
            probe(at: moment)
        } else {
            connectAnew(at: moment)
        }
    }

    /// The user asks for a connection now: the wait ends, and the count begins anew.
    package mutating func tryNow(at moment: Moment) {
        switch phase {
        case .waiting:
            reconnect.restart()
            connect(at: moment)
        case .connected: probe(at: moment)
        case .stopped, .suspended, .awaitingCredentials, .opening, .looking, .handshaking: break
        }
    }

    /// A push notification has woken the program. In the background the connection lasts 25 s. A
    /// push that comes with the start, before the app has told of foreground or background, has
    /// launched the program in the background.
    package mutating func wokenByPush(at moment: Moment) {
        let now = moment.monotonicMilliseconds
        var isLaunch = !knowsLife && now - startedAt <= Self.launchMilliseconds
        if case .stopped(let reason) = phase {
            guard reason == .notStarted, !knowsLife else { return }
            isLaunch = true
        }
        if isLaunch { isForeground = false }
        if !isForeground { awakeUntil = now + Self.wakeMilliseconds }
        switch phase {
        case .connected: if !isLaunch { probe(at: moment) }
        case .suspended, .waiting:
            reconnect.restart()
            connect(at: moment)
        case .stopped, .awaitingCredentials, .opening, .looking, .handshaking: break
        }
    }

    /// The device uses another network, which `label` names, or none (`nil`). The label is any
    /// bytes, of which 128 count. The first label only names the network that is there.
    package mutating func networkChanged(to label: [UInt8]?, at moment: Moment) {
        let isNews = knowsNetwork && label != networkLabel
        (networkLabel, knowsNetwork) = (label, true)
        switch phase {
        case .stopped, .suspended, .awaitingCredentials: break
        case .waiting(let until): if isNews, label != nil { networkCame(until, at: moment) }
        case .opening, .looking, .handshaking:
            if isNews, label != nil { connectAnew(at: moment) }
        case .connected:
            if isNews { reconnect.restart() }
            followRhythm()
            probe(at: moment)
        }
    }

    /// Another network ends the wait, unless networks change faster than tries are of use.
    private mutating func networkCame(_ until: Int64, at moment: Moment) {
        let now = moment.monotonicMilliseconds
        let earliest = networkTryAt + Self.networkTryMilliseconds
        reconnect.restart()
        guard now < earliest else {
            networkTryAt = now
            connect(at: moment)
            return
        }
        let delay = earliest - now + random.number(in: 0...Self.networkTryMilliseconds)
        if now + delay < until { wait(delay, .retrying, at: moment) }
    }

    /// A timer came late, or is late now: the program was suspended without being told.
    private func wasLate(at now: Int64) -> Bool {
        now - lateAt <= Self.lateMilliseconds
            || (nextDeadline.map { now - $0 > Self.lateMilliseconds } ?? false)
    }

    private mutating func connectAnew(at moment: Moment) {
        switch phase {
        case .stopped, .awaitingCredentials: return
        case .suspended, .waiting, .opening, .looking, .handshaking, .connected: break
        }
        disconnect(at: moment.monotonicMilliseconds)
        reconnect.restart()
        connect(at: moment)
    }

    /// The connection must show within 3 s that it is alive.
    private mutating func probe(at moment: Moment) {
        let now = moment.monotonicMilliseconds
        if link?.heartbeat.probe(at: now) == true { sendPing(at: now) }
    }

    // MARK: Time

    /// Does what is due. A call before ``nextDeadline`` does nothing.
    package mutating func timeReached(at moment: Moment) {
        let now = moment.monotonicMilliseconds
        if let deadline = nextDeadline, now - deadline > Self.lateMilliseconds { lateAt = now }
        if let reportAt, now >= reportAt {
            self.reportAt = now + Self.reportMilliseconds
            storeCounters()
            isReportDue = true
            sendOutgoing(at: now)
        }
        if let awakeUntil, now >= awakeUntil {
            self.awakeUntil = nil
            if case .stopped = phase { return }
            disconnect(at: now)
            suspend()
            return
        }
        switch phase {
        case .stopped, .suspended: break
        case .waiting(let until):
            if now >= until { connect(at: moment) }
        case .awaitingCredentials(let until):
            guard now >= until else { return }
            // The app may answer later; the next refusal asks it again.
            credentialsFailed(at: moment)
        case .opening(_, let until):
            if now >= until { drop(.openTimeout, at: moment) }
        case .looking(_, let until):
            if now >= until { looked(isThere: false, at: moment) }
        case .handshaking(let until):
            if now >= until { drop(.connackTimeout, at: moment) }
        case .connected(let since):
            connectedTimeReached(since: since, at: moment)
        }
    }

    private mutating func connectedTimeReached(since: Int64, at moment: Moment) {
        let now = moment.monotonicMilliseconds
        if link?.isProven == false, now - since >= ReconnectRule.provenMilliseconds {
            link?.isProven = true
            reconnect.proven()
        }
        tellLosses(at: now)
        if let reminder = inbox.takeReminder(at: now) {
            perform(
                .event(
                    .unacknowledged(
                        topic: reminder.topic, milliseconds: reminder.age,
                        count: inbox.unacknowledgedCount)))
        }
        if let deadline = link?.stream.deadline, now >= deadline {
            drop(.unfinishedPacket, at: moment)
            return
        }
        if let gate = link?.gate, now >= gate.until {
            link?.gate = nil
            sendOutgoing(at: now)
        }
        retryHeld(at: now)
        if let deadline = link?.request?.deadline, now >= deadline {
            drop(.subscriptionTimeout, at: moment)
            return
        }
        switch link?.heartbeat.timeReached(now) ?? .nothing {
        case .nothing: break
        case .ping: sendPing(at: now)
        case .silent(let isProbe, let provesLimit):
            if provesLimit { noteSilence(at: now) }
            drop(isProbe ? .probeFailed : .silent, at: moment)
        }
    }

    /// Stores the counters, which change too often to be stored with each change.
    mutating func storeCounters() {
        guard uncounted != ClientCounters() else { return }
        let counters = counters
        uncounted = ClientCounters()
        record(.counters(counters))
    }
}
